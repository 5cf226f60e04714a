# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the role gpu_toolkit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...model.facts import UNKNOWN, each
from ...model.plan import Change
from ...rules.context import Context
from .. import devices, repositories
from . import files

TOOLKIT = "gpu_toolkit"


def changes(context: Context) -> Iterator[Change]:
    """Yield the changes in the order in which the roles make them."""
    if not context.has_gpus or context.toolkit.version is None:
        return
    yield from _toolkit(context)


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
    yield from _unit(context)
    yield from moves
    yield from _settings(context)
    yield from _cdi(context)
    yield from _dev_char(context)
    yield from _engines(context)
    yield from _holds(context, TOOLKIT, decision.hold)


def _unit(context: Context) -> Iterator[Change]:
    """Yield the drop-in by which the refresh unit waits for the driver at boot.

    It counts from the next boot on, which is when the fault is: no reload of systemd's units for it.
    """
    cdi = context.toolkit.cdi
    unit = cdi["unit"] if cdi is not None else None
    if unit is not None and files.differs(context, unit["path"], unit["content"]) and files.entry(
            context, unit["path"]) is not UNKNOWN:
        yield Change(TOOLKIT, "cdi_unit", unit["path"], files.before(context, unit["path"]), "waits for the driver")


def _settings(context: Context) -> Iterator[Change]:
    """Yield each setting of the toolkit's config.toml; it is read anew whenever a container starts."""
    for name, (before, after) in devices.differing(context).items():
        yield Change(TOOLKIT, "config", name, _shown(before), _shown(after))


def _shown(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _cdi(context: Context) -> Iterator[Change]:
    """Yield the spec that has to be made, or made again, for the driver that answers."""
    driver, specs, decision = context.host.driver, context.host.containers.cdi, context.toolkit
    if driver.smi_status != "ok" or not isinstance(driver.loaded, str) or decision.cdi is None:
        return
    target = decision.cdi["path"]
    failed = (_service(context, devices.REFRESH) or {}).get("failed") is True
    if not isinstance(specs, tuple):
        return
    told = [version for _where, version in specs if isinstance(version, str)]
    if told and driver.loaded not in told:
        yield Change(TOOLKIT, "cdi", target, ", ".join(told), driver.loaded)
    elif failed:
        yield Change(TOOLKIT, "cdi", devices.REFRESH, "failed", driver.loaded)
    elif not specs and (context.wishes.container_mode == "cdi" or _service(context, devices.REFRESH) is not None):
        yield Change(TOOLKIT, "cdi", target, None, driver.loaded)


def _service(context: Context, unit: str) -> dict[str, Any] | None:
    services = context.host.services
    one = services.get(unit) if isinstance(services, dict) else None
    return one if isinstance(one, dict) else None


def _dev_char(context: Context) -> Iterator[Change]:
    rule = context.toolkit.dev_char
    if rule is None:
        return
    missing = context.host.containers.dev_char_missing
    differs = files.differs(context, rule["path"], rule["content"]) and files.entry(
        context, rule["path"]) is not UNKNOWN
    if rule["content"] and isinstance(missing, (int, float)) and missing > 0:
        yield Change(TOOLKIT, "dev_char", rule["path"], f"{int(missing)} devices without a link", "all linked")
    elif differs:
        yield Change(TOOLKIT, "dev_char", rule["path"], files.before(context, rule["path"]),
                     "links for the driver's devices" if rule["content"] else None)


def _engines(context: Context) -> Iterator[Change]:
    """Yield what Docker and CRI-O have to learn. Docker takes it without a restart."""
    for name, engine in context.toolkit.engines.items():
        if engine["differs"]:
            active = getattr(context.host.containers.engine(name), "active", None)
            restarts = name == "crio" and active is not False
            yield Change(TOOLKIT, name, engine["path"], None, ", ".join(engine["differs"]),
                         "restart" if restarts else "none")


def _holds(context: Context, role: str, names: list[str]) -> Iterator[Change]:
    host = context.host.packages
    if not isinstance(host.installed, dict) or host.held is UNKNOWN:
        return
    held = set(each(host.held))
    for name in names:
        if name in host.installed and name not in held:
            yield Change(role, "hold", name, "free", f"held at {host.installed[name]}")
