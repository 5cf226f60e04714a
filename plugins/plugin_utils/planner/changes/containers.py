# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the roles gpu_toolkit and gpu_containerd."""

from __future__ import annotations

from collections.abc import Iterator

from ...model.facts import UNKNOWN, Reader, each, or_none
from ...model.plan import Change
from ...rules.context import Context
from .. import repositories
from . import files

TOOLKIT = "gpu_toolkit"
CONTAINERD = "gpu_containerd"


def changes(context: Context) -> Iterator[Change]:
    """Yield the changes in the order in which the roles make them."""
    if not context.has_gpus or context.toolkit.version is None:
        return
    yield from _toolkit(context)
    yield from _containerd(context)


def _toolkit(context: Context) -> Iterator[Change]:
    host, decision = context.host.packages, context.toolkit
    moves = []
    for name, version in decision.packages.items():
        there = host.version(name)
        if not isinstance(there, str) or (version is not None and there != version):
            before = there if isinstance(there, str) else None
            moves.append(Change(TOOLKIT, "install", name, before, version, "daemon_reload"))
    if moves:
        for repository in decision.repositories:
            if repository["missing"]:
                yield Change(TOOLKIT, "repository", repository["name"], None, repository["path"])
    else:
        for repository in decision.repositories:
            there = files.before(context, repository["path"])
            if there is not None and there != files.digest(repository["content"]):
                yield Change(TOOLKIT, "repository", repository["name"], there, repository["path"])
    for path in repositories.twins(context, decision.repositories):
        yield Change(TOOLKIT, "repository", path, path, None, why="it names the same repository a second time")
    yield from moves
    yield from _cdi(context)
    yield from _holds(context, TOOLKIT, decision.hold)


def _cdi(context: Context) -> Iterator[Change]:
    """Yield the spec that has to be made again for the driver that answers."""
    driver, specs = context.host.driver, context.host.containers.cdi
    if driver.smi_status != "ok" or not isinstance(driver.loaded, str) or not isinstance(specs, tuple):
        return
    told = [version for _where, version in specs if isinstance(version, str)]
    if told and driver.loaded not in told:
        yield Change(TOOLKIT, "cdi", "/var/run/cdi/nvidia.yaml", ", ".join(told), driver.loaded)


def _holds(context: Context, role: str, names: list[str]) -> Iterator[Change]:
    host = context.host.packages
    if not isinstance(host.installed, dict) or host.held is UNKNOWN:
        return
    held = set(each(host.held))
    for name in names:
        if name in host.installed and name not in held:
            yield Change(role, "hold", name, "free", f"held at {host.installed[name]}")


def _containerd(context: Context) -> Iterator[Change]:
    host, decision = context.host, context.containerd
    for name, version in decision.packages.items():
        if not isinstance(host.packages.version(name), str) and host.containers.containerd is not UNKNOWN:
            yield Change(CONTAINERD, "install", name, None, version, "daemon_reload")
    restart = decision.restart or _cut_off(context)
    if decision.restart and decision.strategy != "none":
        target = decision.drop_in_path if decision.strategy == "drop_in" else decision.path
        yield Change(CONTAINERD, "config", str(target), None, f"runtime nvidia ({decision.strategy})")
    if restart and host.containers.active is not False:
        yield Change(CONTAINERD, "restart", "containerd.service", None, "restarted", "restart")
    yield from _holds(context, CONTAINERD, decision.hold)


def _cut_off(context: Context) -> bool:
    """Say whether a run ended between writing the file and the restart."""
    here = Reader(context.host.open_transaction)
    return here.text("role") == CONTAINERD and bool(or_none(here.get("steps")))
