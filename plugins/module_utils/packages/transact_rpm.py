# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dnf and zypper have in common: rpm's database, and what a cut-off transaction leaves in it.

rpm installs the new version of a package before it erases the former one. Killed in between, both are there. The former
one is erased with its scripts, as the end of that transaction would have.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..facts import rpmdb
from .base import PackageError, Runner
from .transaction import Todo, Wish, call, reason

# Several versions of these may be there: rpm's side-by-side packages are kernels and modules that carry their kernel.
_SIDE_BY_SIDE = re.compile(r"^(kernel|gpg-pubkey|kmod-nvidia-(open-)?\d|.*-kmp-).*$")


class RpmTransaction:
    """The part of a transaction that rpm itself does. ``run`` starts programs."""

    name = "rpm"

    def __init__(self, run: Runner) -> None:
        self.run = run

    def _all(self) -> list[rpmdb.Rpm]:
        result = self.run(["rpm", "-qa", "--queryformat", rpmdb.QUERY], timeout=120, limit=16 * 1024 * 1024)
        if result.rc != 0:
            raise PackageError(f"the installed packages cannot be read: {reason(result, ('error:',), 'rpm')}")
        return rpmdb.parse(result.out)

    def versions(self) -> Mapping[str, tuple[str, ...]]:
        """By name, and by NAME-VERSION-RELEASE.ARCH, which names one of several kernels' packages."""
        found: dict[str, tuple[str, ...]] = {}
        for one in self._all():
            names = (one.name, f"{one.name}-{one.version}", f"{one.name}-{one.version}.{one.arch}")
            for name in names:
                if one.evr not in found.get(name, ()):
                    found[name] = (*found.get(name, ()), one.evr)
        return found

    def broken(self) -> list[str]:
        """rpm knows no half-installed packages; duplicates are what it leaves."""
        return []

    def streams(self) -> Mapping[str, str]:
        """No modules, unless the manager says otherwise."""
        return {}

    def has_stream(self, name: str, stream: str) -> bool:
        """No modules, unless the manager says otherwise."""
        return False

    def duplicates(self, names: Mapping[str, str | None]) -> Mapping[str, tuple[str, ...]]:
        """See the interface: all versions but the wanted one, or but the newest where the wanted one is not there."""
        found: dict[str, tuple[str, ...]] = {}
        for name, versions in self.versions().items():
            if name not in names or len(versions) < 2 or _SIDE_BY_SIDE.match(name):
                continue
            wanted = names[name]
            stays = wanted if wanted in versions else rpmdb.newest(versions, 1)[0]
            found[name] = tuple(one for one in versions if one != stays)
        return found

    def erase(self, duplicates: Mapping[str, tuple[str, ...]], timeout: float) -> None:
        """End the transaction that left two versions of a package."""
        labels = [f"{name}-{one.partition(':')[2] or one}" for name, versions in sorted(duplicates.items())
                  for one in versions]
        result = call(self.run, ["rpm", "--erase", "--nodeps", *labels], timeout=timeout)
        if result.rc != 0:
            raise PackageError(f"rpm cannot take out {', '.join(labels)}: {reason(result, ('error:',), 'rpm')}")


@dataclass(frozen=True)
class Gone:
    """A package that a transaction takes out. Where several versions are installed, the version says which."""

    name: str
    version: str = ""
    arch: str = ""

    @property
    def labels(self) -> tuple[str, str, str]:
        """The names under which it may have been asked for."""
        labelled = f"{self.name}-{self.version.partition(':')[2] or self.version}"
        return self.name, labelled, f"{labelled}.{self.arch}"


def as_asked(one: Gone, asked: tuple[str, ...]) -> str:
    """The name under which it was asked for; else its own."""
    return next((label for label in one.labels if label in asked), one.name)


def chosen_files(todo: Todo, run: Runner) -> dict[str, str]:
    """Name → path of those package files that are to be installed, as rpm itself reads their names."""
    found: dict[str, str] = {}
    for path in todo.files:
        result = run(["rpm", "-qp", "--queryformat", "%{NAME}|%{VERSION}-%{RELEASE}|%{ARCH}\\n", path], timeout=60)
        name, version, arch = [*result.out.strip().split("|"), "", ""][:3]
        if result.rc != 0:
            raise PackageError(f"{path} cannot be read: {reason(result, ('error:',), 'rpm')}")
        for label in (name, f"{name}-{version}", f"{name}-{version}.{arch}"):
            if label in todo.install:
                found[label] = path
    return found


__all__ = ["Gone", "RpmTransaction", "Todo", "Wish", "as_asked", "chosen_files"]
