# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of a host as its facts tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .facts import UNKNOWN, Maybe, Reader, or_none


@dataclass(frozen=True, slots=True)
class Pin:
    """An apt preference."""

    package: str
    pin: str
    priority: float
    file: str


@dataclass(frozen=True, slots=True)
class Command:
    """A package command that moved kernel or driver names, as the package manager's own log has it."""

    when: str
    command: str
    user: Maybe[str]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repository:
    """A package source that is configured on the host."""

    id: str
    url: str
    suites: tuple[str, ...]
    components: Maybe[tuple[str, ...]]
    signed_by: Maybe[str]
    file: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Packages:
    """What the package manager knows."""

    manager: Maybe[str]
    installed: Maybe[dict[str, str]]
    available: Maybe[dict[str, tuple[str, ...]]]
    origins: Maybe[dict[str, Any]]
    held: Maybe[tuple[str, ...]]
    pins: Maybe[tuple[Pin, ...]]
    repositories: Maybe[tuple[Repository, ...]]
    broken: Maybe[tuple[str, ...]]
    auto_enabled: Maybe[bool]
    auto_excluded: Maybe[tuple[str, ...]]
    locked: bool
    lock_holder: str
    cache_age: Maybe[float]
    manual: Maybe[tuple[str, ...]]
    history: Maybe[tuple[Command, ...]]
    guard: Maybe[dict[str, Any]]
    advisories: Maybe[dict[str, Any]]  # dnf, zypper: kernel package → version → {since, cves} of security fixes
    made_for: Maybe[dict[str, Any]]  # Ubuntu: package of ready modules → version → driver
    modules: Maybe[dict[str, Any]]  # dnf's: {nvidia-driver: {stream, state}}

    def version(self, name: str) -> Maybe[str]:
        """Return the installed version of a package, None if it is not installed."""
        return self.installed.get(name) if isinstance(self.installed, dict) else UNKNOWN

    def offers(self, name: str) -> Maybe[tuple[str, ...]]:
        """Return the versions that the sources offer, newest first; None if the package is not on offer."""
        return self.available.get(name) if isinstance(self.available, dict) else UNKNOWN

    def is_held(self, name: str) -> Maybe[bool]:
        """Say whether a package is held."""
        return name in self.held if isinstance(self.held, tuple) else UNKNOWN


def read_packages(reader: Reader) -> Packages:
    """Return the view of the packages; takes anything, raises nothing."""
    lock = or_none(reader.get("packages.locked_by"))
    return Packages(
        manager=reader.text("packages.manager"),
        installed=_installed(reader),
        available=_available(reader),
        origins=reader.table("packages.origins"),
        held=reader.texts("packages.held"),
        pins=_pins(reader),
        repositories=_repositories(reader),
        broken=reader.texts("packages.broken"),
        auto_enabled=reader.flag("packages.auto_upgrades.enabled"),
        auto_excluded=reader.texts("packages.auto_upgrades.excluded"),
        locked=bool(lock),
        lock_holder=_holder(lock),
        cache_age=reader.number("packages.cache_age"),
        manual=reader.texts("packages.manual"),
        history=_history(reader),
        guard=reader.table("packages.guard"),
        advisories=reader.table("packages.advisories"),
        made_for=reader.table("packages.made_for"),
        modules=reader.table("packages.modules"),
    )


def _holder(lock: Any) -> str:
    if isinstance(lock, str):
        return lock[:200]
    here = Reader(lock)
    command, pid = or_none(here.text("command")), or_none(here.number("pid"))
    return f"{command or 'a process'}" + (f" (pid {int(pid)})" if pid is not None else "")


def _installed(reader: Reader) -> Maybe[dict[str, str]]:
    table = reader.table("packages.installed")
    if not isinstance(table, dict):
        return table
    return {name: version for name, version in table.items() if isinstance(version, str)}


def _available(reader: Reader) -> Maybe[dict[str, tuple[str, ...]]]:
    table = reader.table("packages.available")
    if not isinstance(table, dict):
        return table
    return {
        name: tuple(str(version) for version in versions if isinstance(version, str))
        for name, versions in table.items()
        if isinstance(versions, (list, tuple))
    }


def _history(reader: Reader) -> Maybe[tuple[Command, ...]]:
    rows = reader.rows("packages.history")
    if not isinstance(rows, tuple):
        return rows
    return tuple(
        Command(_word(row, "when"), _word(row, "command"), row.text("user"), or_none(row.texts("names")) or ())
        for row in rows
    )


def _pins(reader: Reader) -> Maybe[tuple[Pin, ...]]:
    rows = reader.rows("packages.pins")
    if not isinstance(rows, tuple):
        return rows
    return tuple(
        Pin(_word(row, "package"), _word(row, "pin"), or_none(row.number("priority")) or 0, _word(row, "file"))
        for row in rows
    )


def _repositories(reader: Reader) -> Maybe[tuple[Repository, ...]]:
    rows = reader.rows("packages.repositories")
    if not isinstance(rows, tuple):
        return rows
    return tuple(
        Repository(
            id=_word(row, "id"),
            url=_word(row, "url"),
            suites=or_none(row.texts("suites")) or (),
            components=row.texts("components"),
            signed_by=row.text("signed_by"),
            file=_word(row, "file"),
            enabled=row.flag("enabled") is not False,
        )
        for row in rows
    )


def _word(row: Reader, key: str) -> str:
    return or_none(row.text(key)) or ""
