# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every package manager backend offers, and the errors they raise. Modules and roles know only this."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """A file by which names are kept from moving: its text, or None when it must not be there.

    ``shared``: people and other programs write it too. Then ``content`` is the present text with our part changed, and
    the rest is not touched; otherwise all of the file is ours.
    """

    path: str
    content: str | None
    mode: int = 0o644
    shared: bool = False


@dataclass(frozen=True)
class Wanted:
    """A set as it shall be, for :meth:`PackageManager.files`.

    ``recorded`` are the entries of this set in files that people write too, by path, as the state file has them: what
    may be taken out of them. ``others`` are those of the sets beside it.
    """

    pin_set: str
    hold: frozenset[str] = frozenset()        # installed names
    blocked: frozenset[str] = frozenset()     # names that are not installed, and globs
    names: frozenset[str] = frozenset()       # the whole set, with what is lifted: for automatic upgrades
    patterns: tuple[str, ...] = ()            # regular expressions, likewise
    recorded: Mapping[str, Sequence[str]] = field(default_factory=dict)
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The files of a set, and which entries in shared ones are then ours."""

    files: list[BlockFile]
    entries: dict[str, list[str]] = field(default_factory=dict)


class PackageManager(Protocol):
    """One package manager. ``root`` is already applied to what it reads and writes."""

    name: str

    @property
    def hold_word(self) -> str:
        """How it calls what keeps an installed package: hold, versionlock, exclude, lock."""

    @property
    def block_word(self) -> str:
        """How it calls what keeps one out that is not installed."""

    def installed(self) -> Mapping[str, list[Package]]:
        """Installed packages by plain name (several for several architectures), holds included."""

    def set_holds(self, hold: Iterable[str], release: Iterable[str], timeout: float) -> float:
        """Hold and release installed packages (full names) in one step, waiting for the lock; the seconds waited.

        What is so already is left alone.

        Raises LockHeld, PackageError.
        """

    def wait_for_lock(self, timeout: float) -> float:
        """Wait until no one has the lock; the seconds waited. Raises LockHeld, naming who has it."""

    def files(self, wanted: Wanted) -> Plan:
        """The files by which a set is held and kept out, automatic upgrades included, as they shall be.

        A manager with holds in a database of its own (dpkg) has only the rest here; :meth:`set_holds` does those.
        Raises PackageError where a file of a person's stands in the way; it names the way out.
        """

    def leaks(self, hold: Iterable[str], blocked: Iterable[str]) -> list[str]:
        """Why some of these may move all the same, one sentence each; [] when nothing is open."""

    def candidates(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """The version each name would be installed in now, None for none; unknown names are absent."""

    def manual(self, names: Iterable[str]) -> set[str]:
        """Those of ``names`` that are marked as installed by hand."""

    def mark(self, manual: Iterable[str], auto: Iterable[str]) -> None:
        """Mark packages as installed by hand, and back. Raises PackageError."""
