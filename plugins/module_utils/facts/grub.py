# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GRUB's files: environment block, settings, menu, and which entry it would start.

Pure functions on text, used by the facts and by whoever changes the boot default and reads it back.
Source: GNU GRUB manual 2.12 (environment block; default; submenus; menuentry --id), grub-core/normal/menu.c.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

ENV_SIGNATURE = "# GRUB Environment Block"
ENV_SIZE = 1024    # GRUB writes the block in place, so it never changes its size
_IMAGE = re.compile(r"(?:vmlinuz|vmlinux|Image|kernel)-(?P<release>[^\s/]+)$")
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
_SET_DEFAULT = re.compile(r"^\s*set\s+default=(?P<value>.*)$")
_LINUX = re.compile(r"^\s*(?:linux|linuxefi|linux16|kernel|multiboot2?|module2?|\$linux\w*)\s+(?P<path>\S+)")


@dataclass
class Entry:
    """One line of the menu. ``path`` is what ``grub-set-default`` takes: ids joined by ``>`` from the top."""

    title: str
    id: str | None
    release: str | None = None
    parent: Entry | None = None
    children: list[Entry] = field(default_factory=list)
    submenu: bool = False
    lines: tuple[int, int] | None = None    # where it stands in grub.cfg: first line and the one after its end

    @property
    def path(self) -> str:
        own = self.id or self.title
        return f"{self.parent.path}>{own}" if self.parent else own


def parse_env(text: str) -> dict[str, str]:
    """The variables of a grubenv. Raises ValueError for a file that is none."""
    if not text.startswith(ENV_SIGNATURE):
        raise ValueError("the file has no environment block of GRUB")
    values: dict[str, str] = {}
    for line in text.splitlines()[1:]:
        key, mark, value = line.partition("=")
        if mark and not key.startswith("#"):
            values[key] = value.replace("\\\\", "\\")
    return values


def parse_block(raw: bytes) -> dict[str, str]:
    """The variables of a grubenv as it lies on the disk. Raises ValueError when GRUB could not use it."""
    if len(raw) != ENV_SIZE:
        raise ValueError(f"the environment block has {len(raw)} bytes, not {ENV_SIZE}")
    return parse_env(raw.decode("utf-8", "replace"))


def settings(texts: Iterable[str]) -> dict[str, str]:
    """Shell assignments of /etc/default/grub and its snippets in their order: the last one counts.

    Values that the shell would compute are kept as they are written.
    """
    values: dict[str, str] = {}
    for text in texts:
        for line in text.replace("\\\n", "").splitlines():
            match = _ASSIGNMENT.match(line)
            if not match:
                continue
            try:
                words = shlex.split(match.group(2), comments=True)
            except ValueError:
                continue
            values[match.group(1)] = words[0] if words else ""
    return values


@dataclass
class Menu:
    """What a grub.cfg holds: its entries, the values ``default`` can take, and whether BLS entries are put in.

    ``lost``: the default that counts where the environment has no ``saved_entry`` (as a damaged block).
    """

    entries: list[Entry]
    default: str | None
    follows_saved: bool
    bls_at: int | None
    lost: str | None = None

    def all(self) -> list[Entry]:
        """Every bootable entry, from top to bottom, submenus opened."""
        found: list[Entry] = []
        todo = list(self.entries)
        while todo:
            entry = todo.pop(0)
            if entry.submenu:
                todo = entry.children + todo
            else:
                found.append(entry)
        return found


def parse_menu(text: str) -> Menu:
    """Read a grub.cfg, also a generated one with submenus. Commands are not executed."""
    top: list[Entry] = []
    stack: list[tuple[Entry | None, int]] = []
    depth = 0
    default: str | None = None
    follows = False
    bls_at: int | None = None
    lost: str | None = None
    condition = ""
    for number, raw in enumerate(text.splitlines()):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        opened = re.match(r"^(menuentry|submenu)\s", line)
        if opened and line.endswith("{"):
            entry = _header(line, submenu=opened.group(1) == "submenu")
            entry.lines = (number, number + 1)
            parent = next((one for one, _level in reversed(stack) if one is not None), None)
            entry.parent = parent
            (parent.children if parent else top).append(entry)
            depth += 1
            stack.append((entry, depth))
            continue
        current = stack[-1][0] if stack else None
        if current is not None and not current.submenu:
            found = _LINUX.match(line)
            if found and current.release is None:
                current.release = release_of(found.group("path"))
        if current is None:
            if re.match(r"^(if|elif|else|fi)\b", line):
                condition = line
            set_default = _SET_DEFAULT.match(line)
            if set_default:
                value = set_default.group("value").strip().strip("\"'")
                if re.search(r"-z\s+\"?\$\{?saved_entry\b", condition):
                    lost = value
                elif re.fullmatch(r"\$\{?saved_entry\}?", value):
                    follows = True
                elif not value.startswith("$"):
                    default, follows = value, False
            if re.match(r"^blscfg\b", line):
                bls_at = len(top)
        # braces of functions and of entries; those of ${variables} are not counted
        plain = re.sub(r"\$\{[^}]*\}|'[^']*'|\"[^\"]*\"", "", line)
        depth += plain.count("{") - plain.count("}")
        while stack and depth < stack[-1][1]:
            closed, _level = stack.pop()
            if closed is not None and closed.lines is not None:
                closed.lines = (closed.lines[0], number + 1)
    return Menu(top, default, follows, bls_at, lost)


def _header(line: str, submenu: bool) -> Entry:
    try:
        words = shlex.split(line.rstrip("{").strip())
    except ValueError:
        words = line.rstrip("{").split()
    title = words[1] if len(words) > 1 else ""
    identity = None
    for index, word in enumerate(words):
        if word in ("$menuentry_id_option", "--id") and index + 1 < len(words):
            identity = words[index + 1]
        elif word.startswith("--id="):
            identity = word[5:]
    return Entry(title=title, id=identity, submenu=submenu)


def release_of(path: str) -> str | None:
    """The kernel release in the name of an image; None for links as /vmlinuz."""
    found = _IMAGE.search(path.strip("\"'"))
    return found.group("release") if found else None


def find(entries: list[Entry], wanted: str) -> Entry | None:
    """The entry that ``default`` names: by number, id or title, a level at a time, with ``>`` between levels.

    None when no entry matches at the top level; GRUB then starts the first one. Below a submenu that matches, what does
    not match means its first entry, as in GRUB.
    """
    first, _mark, rest = wanted.partition(">")
    hit: Entry | None = None
    if re.fullmatch(r"\d+", first.strip()):
        number = int(first)
        hit = entries[number] if number < len(entries) else None
    else:
        hit = next((entry for entry in entries if first in (entry.id, entry.title)), None)
        if hit is None:  # a title may hold a > of its own
            hit = next((entry for entry in entries if wanted in (entry.id, entry.title)), None)
            rest = "" if hit is not None else rest
    if hit is None or not hit.submenu:
        return hit
    inner = find(hit.children, rest) if rest else None
    return inner or first_bootable(hit.children)


def first_bootable(entries: list[Entry]) -> Entry | None:
    for entry in entries:
        if not entry.submenu:
            return entry
        inner = first_bootable(entry.children)
        if inner is not None:
            return inner
    return None


def default_entry(menu: Menu, env: dict[str, str]) -> Entry | None:
    """The entry that starts when nobody touches the keyboard and no next_entry is set; None for an empty menu."""
    wanted = (env.get("saved_entry") or menu.lost or "") if menu.follows_saved else (menu.default or "0")
    return (find(menu.entries, wanted) if wanted else None) or first_bootable(menu.entries)
