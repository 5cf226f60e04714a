# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the role gpu_containerd, in the order in which it makes them."""

from __future__ import annotations

from collections.abc import Iterator

from ...model.facts import UNKNOWN, Reader, each, or_none
from ...model.plan import Change
from ...rules.context import Context
from . import files

ROLE = "gpu_containerd"


def changes(context: Context) -> Iterator[Change]:
    """Yield what differs. With one restart at the end, whatever it is for."""
    decision = context.containerd
    if decision.version is None and not decision.packages and not decision.archive:
        return
    moves = list(_packages(context))
    if moves:
        for repository in decision.repositories:
            if repository["missing"]:
                yield Change(ROLE, "repository", repository["name"], None, repository["path"])
    yield from moves
    for one in decision.registry:
        if files.differs(context, one["path"], one["content"]):
            yield Change(ROLE, "registry", one["path"], files.before(context, one["path"]), "registry hosts")
    yield from _configuration(context)
    yield from _holds(context)


def _packages(context: Context) -> Iterator[Change]:
    host, decision = context.host, context.containerd
    if host.containers.containerd is UNKNOWN:
        return
    for name, version in decision.packages.items():
        there = host.packages.version(name)
        if not isinstance(there, str):
            yield Change(ROLE, "install", name, None, version, "daemon_reload")
        elif version is not None and there != version:
            yield Change(ROLE, "upgrade", name, there, version, "restart")
    for part, item in decision.archive.items():
        here = host.containers.containerd if part == "containerd" else host.containers.runc
        if part != "cni" and here != item["version"]:
            there = here if isinstance(here, str) else None
            yield Change(ROLE, "archive", part, there, item["version"], "none" if there is None else "restart")


def _configuration(context: Context) -> Iterator[Change]:
    host, decision = context.host, context.containerd
    moved = any(change.action in ("upgrade", "archive") and change.before is not None for change in _packages(context))
    if decision.restart and decision.strategy in ("drop_in", "edit", "remove") and decision.files:
        target = decision.drop_in_path if decision.strategy == "drop_in" else decision.path
        words = "taken out" if decision.strategy == "remove" else f"runtime nvidia ({decision.strategy})"
        # it waits with its restart: until then any start of containerd would take it, with nobody there to take it back
        yield Change(ROLE, "config", str(decision.files[0] if len(decision.files) == 1 else target), None, words,
                     "none" if host.containers.active is False and not decision.disturbs else "restart")
    if (decision.restart or moved or _cut_off(context)) and host.containers.active is not False:
        unit = decision.units[0] if decision.units else "containerd.service"
        yield Change(ROLE, "restart", unit, None, "restarted", "restart")


def _cut_off(context: Context) -> bool:
    """Say whether a run ended between writing the file and the restart."""
    here = Reader(context.host.open_transaction)
    return here.text("role") == ROLE and bool(or_none(here.get("steps")))


def _holds(context: Context) -> Iterator[Change]:
    host = context.host.packages
    if not isinstance(host.installed, dict) or host.held is UNKNOWN:
        return
    held = set(each(host.held))
    for name in context.containerd.hold:
        if name in host.installed and name not in held:
            yield Change(ROLE, "hold", name, "free", f"held at {host.installed[name]}")
