# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot entries as files: the Boot Loader Specification, with GRUB's blscfg or with systemd-boot.

Source: https://uapi-group.org/specifications/specs/boot_loader_specification/; loader.conf(5);
grub-core/commands/blscfg.c of rhboot/grub2.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass

from .grub import Entry, release_of
from .tree import Tree

GRUB_DIRECTORY = "/boot/loader/entries"    # the only place where GRUB's blscfg looks
DIRECTORIES = (GRUB_DIRECTORY, "/efi/loader/entries", "/boot/efi/loader/entries")
_LOADER_CONFS = ("/boot/loader/loader.conf", "/efi/loader/loader.conf", "/boot/efi/loader/loader.conf")
_GUID = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_EFIVARS = "/sys/firmware/efi/efivars"


@dataclass
class Item:
    """One entry file: ``name`` is the file's name without .conf."""

    name: str
    fields: dict[str, str]

    def entry(self) -> Entry:
        release = self.fields.get("version") or release_of(self.fields.get("linux", "").split(" ")[0])
        return Entry(title=self.fields.get("title", self.name), id=self.name, release=release)


def items(tree: Tree) -> list[Item]:
    """All entry files, the newest first as the loaders sort them. Raises OSError."""
    found: dict[str, Item] = {}
    for directory in DIRECTORIES:
        for path in tree.glob(directory, "*.conf"):
            name = path.rsplit("/", 1)[-1][:-5]
            if name not in found:
                found[name] = Item(name, parse(tree.text(path, 65536) or ""))
    return sorted(found.values(), key=_order, reverse=True)


def grub_items(tree: Tree) -> list[Item]:
    """The entry files that GRUB's blscfg shows, in its order: by name, read as a package's name. Raises OSError."""
    found = []
    for path in tree.glob(GRUB_DIRECTORY, "*.conf"):
        fields = parse(tree.text(path, 65536) or "")
        if "linux" in fields:
            found.append(Item(path.rsplit("/", 1)[-1][:-5], fields))
    by_name = functools.cmp_to_key(compare_names)
    return sorted(found, key=lambda item: by_name(item.name), reverse=True)


def compare_names(one: str, other: str) -> int:
    """Positive when GRUB shows ``one`` above ``other``: name, version and release, each compared as rpm does it.

    ``<machine id>-0-rescue`` is version 0 of that machine and so comes last.
    """
    for left, right in zip(_name_version_release(one), _name_version_release(other)):
        order = compare_versions(left, right)
        if order:
            return order
    return 0


def _name_version_release(text: str) -> tuple[str, str, str]:
    parts = text.rsplit("-", 2)
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    return (parts[0], parts[1] if len(parts) == 2 else "", "")


def compare_versions(one: str, other: str) -> int:
    """As rpmvercmp of GRUB: segments of digits by value and above letters, a tilde below everything."""
    segments = [re.findall(r"~|[0-9]+|[a-zA-Z]+", text) for text in (one, other)]
    for left, right in zip(*segments):
        if left == right:
            continue
        if "~" in (left, right):
            return -1 if left == "~" else 1
        if left.isdigit() != right.isdigit():
            return 1 if left.isdigit() else -1
        if left.isdigit():
            if int(left) != int(right):
                return 1 if int(left) > int(right) else -1
            continue
        return 1 if left > right else -1
    if len(segments[0]) == len(segments[1]):
        return 0
    longer = 0 if len(segments[0]) > len(segments[1]) else 1
    sign = 1 if longer == 0 else -1
    return -sign if segments[longer][len(segments[1 - longer])] == "~" else sign


def parse(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _mark, value = line.strip().partition(" ")
        if key and not key.startswith("#") and value.strip():
            fields.setdefault(key, value.strip())
    return fields


def _order(item: Item) -> tuple[bool, list[tuple[int, int, str]]]:
    """Rescue entries last, then by version as rpm compares it, near enough: numbers by value, the rest as text."""
    text = item.fields.get("version") or item.name
    parts = [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|[a-zA-Z]+|~", text)]
    return ("rescue" not in item.name, parts)


def loader_conf(tree: Tree) -> dict[str, str] | None:
    """systemd-boot's loader.conf, None when there is none."""
    for path in _LOADER_CONFS:
        text = tree.text(path, 65536)
        if text is not None:
            return parse(text)
    return None


def variable(tree: Tree, name: str) -> str | None:
    """One of systemd-boot's EFI variables as text, None when it is not set."""
    try:
        raw = tree.read_bytes(f"{_EFIVARS}/{name}-{_GUID}", 4096)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return raw[4:].decode("utf-16-le", "replace").rstrip("\0") or None


def choose(entries: list[Item], wanted: str | None) -> Item | None:
    """The entry that a default (a name or a pattern, with or without .conf) picks, else the first."""
    if wanted:
        for item in entries:
            if fnmatch.fnmatchcase(f"{item.name}.conf", wanted) or fnmatch.fnmatchcase(item.name, wanted):
                return item
    return entries[0] if entries else None
