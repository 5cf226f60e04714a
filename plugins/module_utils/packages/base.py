# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every package manager backend offers, and the errors they raise. Modules and roles know only this."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Protocol

from ..errors import HostError

Runner = Callable[..., Any]    # run(argv, timeout=…, env=…, input=…) -> result with rc, out, err, timed_out


class PackageError(HostError):
    """The package manager refused or failed; the message has its own words."""


class NotSupported(PackageError):
    """This package manager is not managed yet; the message names it."""


@dataclass(frozen=True)
class Holder:
    """The process that has the package manager's lock. Parts that cannot be seen are None."""

    pid: int | None
    command: str | None

    def __str__(self) -> str:
        return f"pid {self.pid or 'unknown'} ({self.command or 'command unknown'})"


class LockHeld(PackageError):
    """The lock was not freed in time."""

    def __init__(self, holder: Holder, waited: float, lock: str) -> None:
        self.holder = holder
        self.waited = waited
        super().__init__(f"{lock} was still locked after {waited:.0f} s: {holder} has it. Wait for that process to "
                         "end, or give lock_timeout more seconds")


@dataclass(frozen=True)
class Package:
    """An installed package: ``name`` as people say it, ``full`` as the manager knows it (with its architecture)."""

    name: str
    full: str
    version: str
    held: bool


@dataclass(frozen=True)
class BlockFile:
    """A file that keeps names out: its content, or None when it must not be there."""

    path: str
    content: str | None
    mode: int = 0o644


class PackageManager(Protocol):
    """One package manager. ``root`` is already applied to what it reads and writes."""

    name: str

    def installed(self) -> Mapping[str, list[Package]]:
        """Installed packages by plain name (several for several architectures), holds included."""

    def set_holds(self, hold: Iterable[str], release: Iterable[str], timeout: float) -> float:
        """Hold and release installed packages (full names) in one call, waiting for the lock; the seconds waited.

        Raises LockHeld, PackageError.
        """

    def wait_for_lock(self, timeout: float) -> float:
        """Wait until no one has the lock; the seconds waited. Raises LockHeld, naming who has it."""

    def block_files(self, pin_set: str, names: Iterable[str], blocked: Iterable[str],
                    patterns: Iterable[str] = ()) -> list[BlockFile]:
        """The files by which ``blocked`` (names not installed) are kept out, and by which automatic upgrades leave
        ``names`` and what ``patterns`` match alone."""

    def candidates(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """The version each name would be installed in now, None for none; unknown names are absent."""

    def manual(self, names: Iterable[str]) -> set[str]:
        """Those of ``names`` that are marked as installed by hand."""

    def mark(self, manual: Iterable[str], auto: Iterable[str]) -> None:
        """Mark packages as installed by hand, and back. Raises PackageError."""
