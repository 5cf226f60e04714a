# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zypper: libzypp's locks.

They are loaded with the installed system by everything on libzypp: zypper, YaST's online update, os-update,
transactional-update and PackageKit; ``zypper purge-kernels`` leaves a locked kernel alone. A person at a terminal can
answer zypper's question with "unlock": nothing can keep root from it.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree

from .. import atomic
from .base import PackageError
from .books import Book, ZyppLocks
from .rpm import Rpm

_AUTO = "/var/lib/zypp/AutoInstalled"


class Zypper(Rpm):
    """The backend for SUSE's systems."""

    name = "zypper"
    programs = ("zypper", "yast", "packagekitd", "y2base", "zypp-refresh")
    pid_files = ("/run/zypp.pid",)

    def books(self) -> list[Book]:
        """The one file of libzypp."""
        return [ZyppLocks()]

    def candidates(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """The newest version in the cached lists; a name that is locked has none."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        argv = ["zypper", "--non-interactive", "--no-refresh", "--xmlout", "search", "--details", "--type", "package",
                "--match-exact", *wanted]
        result = self.run(argv, timeout=120.0)
        if result.rc not in (0, 104):     # 104: none of these names anywhere
            raise PackageError(f"asking zypper for candidates failed ({result.rc}): {result.err.strip()}")
        book = self.books()[0]
        locked = self._entries(book, self.text(book.path))
        found: dict[str, str | None] = {}
        try:
            for node in ElementTree.fromstring(result.out).iter("solvable"):
                name = node.get("name", "")
                if node.get("repository", "") not in ("", "(System Packages)") and name not in found:
                    found[name] = None if any(book.concerns(e, name) for e in locked) else node.get("edition")
        except ElementTree.ParseError as exc:
            raise PackageError(f"zypper's answer cannot be read: {exc}") from exc
        return found

    def _automatic(self) -> list[str]:
        return [line.strip() for line in (self.text(_AUTO) or "").splitlines()
                if line.strip() and not line.startswith("#")]

    def manual(self, names: Iterable[str]) -> set[str]:
        """What libzypp does not list as brought in by a dependency."""
        return set(names) - set(self._automatic())

    def mark(self, manual: Iterable[str], auto: Iterable[str]) -> None:
        """libzypp has no command for it; its list is a plain file."""
        text = self.text(_AUTO) or ""
        gone, new = set(manual), sorted(set(auto) - set(self._automatic()))
        lines = [line for line in text.splitlines() if line.strip() not in gone] + new
        after = "".join(f"{line}\n" for line in lines)
        if after != text:
            atomic.write(self.path(_AUTO), after, atomic.mode_of(self.path(_AUTO)) or 0o644)
