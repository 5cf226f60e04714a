# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in which people and programs lock packages: pure functions from text to entries, and from text to text.

An entry is one thing that the file says, as a text of its own. Ours are told from a person's by the state file, which
records them: the tools that people use on these files throw comments away.

Sources: dnf-plugins-core's versionlock.py, libdnf5's versionlock_config.cpp and package_sack.cpp, libzypp's
HardLocksFile.cc and locks(5).
"""
from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from .base import Package

TITLE = "baremetal.nvidia"


def is_glob(name: str) -> bool:
    """Say whether a name is a pattern."""
    return any(char in name for char in "*?[")


class Book(Protocol):
    """One kind of such a file."""

    path: str
    word: str           # how its entries are called where they are reported

    def entries(self, text: str) -> list[str]:
        """What the file says, in its order."""

    def hold(self, packages: Sequence[Package]) -> list[str]:
        """The entries that keep these packages, all of one name, at the versions they have."""

    def block(self, name: str) -> list[str]:
        """The entries that keep a name (or glob) from coming in."""

    def edit(self, text: str, drop: Sequence[str], add: Sequence[str], pin_set: str) -> str:
        """``text`` without the entries of ``drop`` and with those of ``add``; all else stays byte for byte."""

    def concerns(self, entry: str, name: str) -> bool:
        """Say whether an entry is about packages of this name."""

    def is_held(self, about: Sequence[str], packages: Sequence[Package]) -> bool:
        """Say whether these entries, all about one name, keep its packages at the versions they have."""

    def opens(self, about: Sequence[str], packages: Sequence[Package]) -> list[str]:
        """Those of the entries that let the name move to a version that is not installed."""


# NAME-EPOCH:VERSION-RELEASE.ARCH. A release has a number (or a star) in it: kernel-64k-core is a name, not version 64k.
NEVRA = re.compile(r"^(?P<name>.+?)-(?P<evr>(?:\d+:)?[^-:]*\d[^-:]*-(?=[^-]*[\d*])[^-]+?)"
                   r"(?:\.(?:\*|noarch|x86_64|aarch64|i686|src))?$")


def _plain(evr: str) -> str:
    return evr[2:] if evr.startswith("0:") else evr


class VersionLockList:
    """dnf 4's plugin versionlock: ``NAME-EPOCH:VERSION-RELEASE.*`` allows a version, ``!NAME`` none at all."""

    word = "versionlock"

    def __init__(self, path: str = "/etc/dnf/plugins/versionlock.list") -> None:
        self.path = path

    def entries(self, text: str) -> list[str]:
        """Comments are whole lines to the plugin."""
        return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]

    def hold(self, packages: Sequence[Package]) -> list[str]:
        """One entry for each version that is installed; without a version an entry has no effect."""
        return sorted({f"{p.name}-{p.version if ':' in p.version else '0:' + p.version}.*" for p in packages})

    def block(self, name: str) -> list[str]:
        """An exclusion without a version is about all of them."""
        return [f"!{name}"]

    def edit(self, text: str, drop: Sequence[str], add: Sequence[str], pin_set: str) -> str:
        """Ours stand together at the end, under a comment for people."""
        title = f"# {TITLE}, set {pin_set} (module kernel_pin)"
        gone = set(drop)
        lines = [line for line in text.splitlines()
                 if line.strip() not in gone and line.strip() != title]
        if add:
            lines += [title, *sorted(add)]
        return "".join(f"{line}\n" for line in lines)

    @staticmethod
    def split(entry: str) -> tuple[str, str]:
        """(name, version) of an entry, "" for none.

        Names of kernel modules end in a kernel's version (kmod-nvidia-580.95.05-5.14.0-503.40.1). The plugin tells the
        two apart by what there is; an exclusion of a version, as it writes them, has an epoch or an architecture.
        """
        text = entry.lstrip("!")
        match = NEVRA.match(text)
        if match and entry.startswith("!") and ":" not in match.group("evr") and match.end("evr") == len(text):
            match = None
        return (match.group("name"), _plain(match.group("evr"))) if match else (text, "")

    def concerns(self, entry: str, name: str) -> bool:
        """By the name in it, which may be a pattern."""
        return fnmatch.fnmatchcase(name, self.split(entry)[0])

    def is_held(self, about: Sequence[str], packages: Sequence[Package]) -> bool:
        """Nothing is allowed but what is installed, or the name is excluded as a whole."""
        if any(entry.startswith("!") and not self.split(entry)[1] for entry in about):
            return True
        allowed = {self.split(entry)[1] for entry in about if not entry.startswith("!")}
        return bool(allowed) and allowed <= {_plain(p.version) for p in packages}

    def opens(self, about: Sequence[str], packages: Sequence[Package]) -> list[str]:
        """An entry for another version allows that one too."""
        if any(entry.startswith("!") and not self.split(entry)[1] for entry in about):
            return []
        there = {_plain(p.version) for p in packages}
        return [e for e in about if not e.startswith("!") and self.split(e)[1] not in there]


class VersionLockToml:
    """What libdnf5 reads itself: ``[[packages]]`` with a name (or glob) and conditions on it.

    Entries have the form ``NAME evr = VERSION``. A condition that nothing meets keeps a name out.
    """

    path = "/etc/dnf/versionlock.toml"
    word = "versionlock"
    NOTHING = "evr < 0"
    _HEAD = re.compile(r"(?m)^[ \t]*\[\[\s*packages\s*\]\][^\n]*\n?")
    _INLINE = re.compile(r"(?m)^[ \t]*packages\s*=")

    def _blocks(self, text: str) -> tuple[str, list[str]]:
        heads = list(self._HEAD.finditer(text))
        if not heads:
            return text, []
        ends = [head.start() for head in heads[1:]] + [len(text)]
        return text[:heads[0].start()], [text[head.start():end] for head, end in zip(heads, ends)]

    def _entry(self, block: str) -> str:
        def values(key: str) -> list[str]:
            return re.findall(rf"(?:^|[\s,{{]){key}\s*=\s*[\"']([^\"'\n]*)[\"']", block)

        name = (values("name") or [""])[0]
        conditions = [" ".join(one) for one in zip(values("key"), values("comparator"), values("value"))]
        return f"{name} {' and '.join(conditions)}"

    def entries(self, text: str) -> list[str]:
        """One for each block. Raises ValueError for a file in TOML's other notation, which is not edited."""
        if self._INLINE.search(text):
            raise ValueError(f"{self.path} has its packages as one inline array: write them as [[packages]] tables")
        return [self._entry(block) for block in self._blocks(text)[1]]

    def hold(self, packages: Sequence[Package]) -> list[str]:
        """Several blocks of one name allow what each of them allows."""
        return sorted({f"{p.name} evr = {_plain(p.version)}" for p in packages})

    def block(self, name: str) -> list[str]:
        """See the class."""
        return [f"{name} {self.NOTHING}"]

    def edit(self, text: str, drop: Sequence[str], add: Sequence[str], pin_set: str) -> str:
        """The comment in each block is for people; dnf5 keeps it when it writes the file anew."""
        head, blocks = self._blocks(text)
        kept = [block for block in blocks if self._entry(block) not in set(drop)]
        text = head + "".join(kept)
        if not re.search(r"(?m)^\s*version\s*=", head):
            text = 'version = "1.0"\n' + text
        for entry in sorted(add):
            name, key, comparator, value = entry.split(" ", 3)
            text = text.rstrip("\n") + (
                f'\n\n[[packages]]\nname = "{name}"\ncomment = "{TITLE}, set {pin_set} (module kernel_pin)"\n'
                f'[[packages.conditions]]\nkey = "{key}"\ncomparator = "{comparator}"\nvalue = "{value}"\n')
        return text.rstrip("\n") + "\n"

    def concerns(self, entry: str, name: str) -> bool:
        """By the name, which may be a pattern."""
        return fnmatch.fnmatchcase(name, entry.split(" ", 1)[0])

    def _versions(self, about: Iterable[str]) -> set[str]:
        """Versions that are allowed by name; "" stands for any other condition."""
        exact = {re.sub(r"^\S+ evr ==? ", "", e) if re.match(r"^\S+ evr ==? \S+$", e) else "" for e in about
                 if not e.endswith(f" {self.NOTHING}")}
        return {_plain(version) for version in exact}

    def is_held(self, about: Sequence[str], packages: Sequence[Package]) -> bool:
        """Nothing is allowed but what is installed."""
        allowed = self._versions(about)
        return bool(about) and allowed <= {_plain(p.version) for p in packages}

    def opens(self, about: Sequence[str], packages: Sequence[Package]) -> list[str]:
        """What allows a version that is not installed, or that cannot be told."""
        there = {_plain(p.version) for p in packages}
        return [entry for entry in about if not self._versions([entry]) <= there]


class ZyppLocks:
    """libzypp's locks: stanzas, separated by empty lines. A lock on a name is about what is installed and what is not.

    Entries are names; a stanza that says more (a version, a repository) is an entry of its whole text.
    """

    path = "/etc/zypp/locks"
    word = "lock"
    _OURS = "\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {}\n\n"
    _PLAIN = frozenset({"type", "match_type", "case_sensitive", "solvable_name"})

    def _stanzas(self, text: str) -> list[str]:
        return [part for part in re.split(r"\n(?:[ \t]*\n)+", text) if part.strip()]

    def _entry(self, stanza: str) -> str:
        fields = dict(line.split(":", 1) for line in stanza.splitlines() if ":" in line and not line.startswith("#"))
        fields = {key.strip(): value.strip() for key, value in fields.items()}
        plain = set(fields) <= {*self._PLAIN, "comment"} and fields.get("type", "package") == "package"
        if plain and fields.get("match_type") in ("glob", "exact") and fields.get("solvable_name"):
            return fields["solvable_name"]
        return "\n".join(f"{key}: {value}" for key, value in sorted(fields.items()))

    def entries(self, text: str) -> list[str]:
        """Names, or whole stanzas."""
        return [entry for entry in map(self._entry, self._stanzas(text)) if entry]

    def hold(self, packages: Sequence[Package]) -> list[str]:
        """The name: a lock without a version keeps all of them, also from being taken out."""
        return sorted({p.name for p in packages})

    def block(self, name: str) -> list[str]:
        """The same."""
        return [name]

    def edit(self, text: str, drop: Sequence[str], add: Sequence[str], pin_set: str) -> str:
        """Written as ``zypper addlock`` writes them."""
        pieces = re.split(r"(\n(?:[ \t]*\n)+)", text)
        kept = []
        for stanza, gap in zip(pieces[::2], [*pieces[1::2], ""]):
            if stanza.strip() and self._entry(stanza) in set(drop):
                continue
            kept += [stanza, gap]
        left = "".join(kept).rstrip("\n")
        return (left + "\n\n" if left else "") + "".join(self._OURS.format(name) for name in sorted(add))

    def concerns(self, entry: str, name: str) -> bool:
        """Whole names and patterns alone: what a stanza with a version is about is not worked out here."""
        return "\n" not in entry and fnmatch.fnmatchcase(name, entry)

    def is_held(self, about: Sequence[str], packages: Sequence[Package]) -> bool:
        """Any lock on the name will do."""
        return bool(about)

    def opens(self, about: Sequence[str], packages: Sequence[Package]) -> list[str]:
        """A lock opens nothing."""
        return []
