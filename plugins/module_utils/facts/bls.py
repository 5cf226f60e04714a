# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot entries as files: the Boot Loader Specification, with GRUB's blscfg or with systemd-boot.

Source: https://uapi-group.org/specifications/specs/boot_loader_specification/; loader.conf(5).
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass

from .grub import Entry, release_of
from .tree import Tree

DIRECTORIES = ("/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries")
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
