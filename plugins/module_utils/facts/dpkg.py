# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dpkg's database, read from its status file.

Source: dpkg's lib/dpkg/parse.c, apt's extended_states.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

from .tree import Tree

STATUS = "/var/lib/dpkg/status"
_LIMIT = 128 * 1024 * 1024
_FIELD = re.compile(r"^(Package|Status|Version|Architecture): (.*)$", re.M)
_NATIVE = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}
# between these two a package is neither there nor gone
_FINE = frozenset({"installed", "not-installed", "config-files", "triggers-pending", "triggers-awaited"})


@dataclass(frozen=True)
class Package:
    """One stanza. ``state`` is dpkg's word: installed, half-configured, …"""

    name: str
    version: str
    arch: str
    want: str
    flag: str
    state: str

    @property
    def there(self) -> bool:
        """Whether files of it are on disk."""
        return self.state not in ("not-installed", "config-files")


def packages(tree: Tree) -> list[Package]:
    """Every package that dpkg knows. Raises OSError."""
    found = []
    text = tree.read(STATUS, _LIMIT)
    # updates that dpkg has not yet folded into the status file (a run that was cut off)
    pending = {}
    for path in tree.glob("/var/lib/dpkg/updates", "[0-9]*"):
        for one in _parse(tree.read(path, _LIMIT)):
            pending[(one.name, one.arch)] = one
    for one in _parse(text):
        found.append(pending.pop((one.name, one.arch), one))
    return found + list(pending.values())


def _parse(text: str) -> list[Package]:
    rows = []
    for stanza in text.split("\n\n"):
        fields = dict(_FIELD.findall(stanza))
        words = fields.get("Status", "").split()
        if "Package" in fields and len(words) == 3:
            rows.append(
                Package(
                    fields["Package"],
                    fields.get("Version", ""),
                    fields.get("Architecture", "all"),
                    words[0],
                    words[1],
                    words[2],
                )
            )
    return rows


def native(tree: Tree, machine: str | None) -> str:
    """dpkg's word for the architecture."""
    listed = None
    with contextlib.suppress(OSError):
        listed = tree.text("/var/lib/dpkg/arch")
    if listed:
        return listed.split()[0]
    return _NATIVE.get(machine or "", machine or "amd64")


def key(package: Package, arch: str) -> str:
    """The name in the facts: ``name:arch`` for packages of a foreign architecture."""
    return package.name if package.arch in (arch, "all") else f"{package.name}:{package.arch}"


def broken(found: list[Package], arch: str) -> list[str]:
    """Packages that dpkg left between two states, or wants to be installed again."""
    return sorted(
        key(one, arch)
        for one in found
        if one.state not in _FINE or (one.there and one.flag in ("reinstreq", "reinst-required"))
    )


def automatic(tree: Tree) -> set[str]:
    """Names of the packages that apt may take away when nothing needs them. Raises OSError."""
    text = tree.text("/var/lib/apt/extended_states", _LIMIT) or ""
    names = set()
    for stanza in text.split("\n\n"):
        if re.search(r"^Auto-Installed: 1", stanza, re.M):
            name = re.search(r"^Package: (.*)$", stanza, re.M)
            if name:
                names.add(name.group(1))
    return names
