# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rpm packages: what a transaction would move, and the way back.

Kernels stand beside each other there, so taking one back is erasing what came in. What an update replaced (a macro
package, a kmod) comes back from the repositories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .program import TIMEOUT, Program, Runner

_FORMAT = r"%{NAME}\t%{VERSION}-%{RELEASE}\t%{ARCH}\t%{INSTALLTID}\n"


class Rpms(Program):
    """rpm, with dnf or zypper to resolve. ``manager``: dnf or zypper."""

    def __init__(self, run: Runner, manager: str, shims: str | None = None) -> None:
        super().__init__(run, {"BAREMETAL_NVIDIA_ALLOW": "1", "LC_ALL": "C.UTF-8"}, shims)
        self.manager = manager

    def packages(self) -> dict[str, str]:
        """Every installed package by name, version and architecture: kernels are there several times."""
        return dict.fromkeys(self._transactions(), "i")

    def _transactions(self) -> dict[str, str]:
        """The same with the transaction of rpm in which each came in."""
        found = {}
        for line in self._call(["rpm", "-qa", "--qf", _FORMAT], "reading the packages").splitlines():
            name, version, arch, transaction = line.split("\t")
            if name != "gpg-pubkey":
                found[f"{name}-{version}.{arch}"] = transaction
        return found

    @staticmethod
    def spec(name: str, version: str | None) -> str:
        """A package at a version, as rpm names it."""
        return f"{name}-{version.partition(':')[2] or version}" if version else name

    def moves(self, wanted: Mapping[str, str | None]) -> dict[str, tuple[str | None, str]]:
        """As asked for: a dry run would meet our own locks. What went out with it is seen afterwards (``lost``)."""
        return {name: (None, version or "") for name, version in wanted.items()}

    @staticmethod
    def lost(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
        """Packages of which no version is left."""
        return sorted({_stem(name) for name in before} - {_stem(name) for name in now})

    def keep(self, moved: Mapping[str, tuple[str | None, str]], into: str) -> dict[str, str]:
        """Nothing to keep: kernels stand beside each other."""
        return {}

    def own(self, data: Mapping[str, Any]) -> set[str]:
        """What the transaction of snapshot ``data`` brought in, replaced or took out.

        That is what was asked for, what rpm brought in together with it, and what these took the place of. All else
        came or went by somebody else's hand: a cut-off run may be days old when it is taken back. (libzypp may install
        each package by itself: what one needed then stays.)
        """
        now, before = self._transactions(), data["packages"]
        came = {name for name in now if name not in before}
        asked = [self.spec(name, version) for name, version in data["wanted"].items()]
        mine = {name for name in came
                if data["release"] in name or any(name.startswith(f"{spec}.") or _stem(name) == spec for spec in asked)}
        together = {now[name] for name in mine} - {"(none)"}
        mine |= {name for name in came if now[name] in together}
        replaced, left = {_stem(name) for name in mine}, {_stem(name) for name in now}
        # where a former version is still there, the one that went was one of several kernels, and a person's to remove
        stay = {_stem(name) for name in before if name in now}
        return mine | {name for name in before if name not in now and _stem(name) not in stay
                       and (_stem(name) in replaced or _stem(name) not in left)}

    def back(self, before: Mapping[str, str], former: Mapping[str, str], own: Collection[str]) -> list[str]:
        """What of ``own`` came in out, what of it went away back in; what was done, as lines."""
        now = self.packages()
        came = sorted(name for name in now if name not in before and name in own)
        gone = sorted(name for name in before if name not in now and name in own)
        done = []
        if came:
            keep = [name for name in came if any(_stem(name) == _stem(other) for other in gone)]
            out = [name for name in came if name not in keep]
            if out:
                self._call(["rpm", "-e", "--nodeps", *out], "taking out what came in", TIMEOUT)
                done += [f"{name} is out" for name in out]
        if gone:
            argv = ["zypper", "-n", "install", "--oldpackage", *gone] if self.manager == "zypper" else [
                "dnf", "-y", "--allowerasing", "install", *gone]
            self._call(argv, "bringing former packages back", TIMEOUT)
            done += [f"{name} is back" for name in gone]
        return done

    def wrong(self) -> list[str]:
        """rpm has no half-installed packages; a duplicate of one that is not a kernel is what a cut-off run leaves."""
        return []

    def installed(self, wanted: Mapping[str, str | None]) -> list[str]:
        """Those of ``wanted`` that are not installed at their version."""
        now = self.packages()
        return sorted(name for name, version in wanted.items()
                      if not any(one.startswith(self.spec(name, version)) for one in now))

    def manual(self, names: Iterable[str]) -> list[str]:
        """rpm has no such mark of its own."""
        return []

    def mark(self, before: Mapping[str, Any]) -> list[str]:
        """Nothing to mark."""
        return []


def _stem(nevra: str) -> str:
    return nevra.rsplit("-", 2)[0]
