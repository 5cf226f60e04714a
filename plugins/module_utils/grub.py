# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what GRUB will do: the menu of grub.cfg and the environment block. Pure functions over text.

Sources: grub-mkconfig's ``00_header`` and ``10_linux`` (Debian, Ubuntu), GRUB's manual, "The GRUB environment block".
"""
from __future__ import annotations

import re
from dataclasses import dataclass

ENV_SIZE = 1024
ENV_HEAD = "# GRUB Environment Block\n"

_OPEN = re.compile(r"""^\s*(menuentry|submenu)\s+(?:'((?:[^'\\]|\\.|'\\'')*)'|"((?:[^"\\]|\\.)*)")(.*)\{\s*$""")
_ID = re.compile(r"""(?:\$menuentry_id_option|--id)[ =]+(?:'([^']*)'|"([^"]*)"|(\S+))""")
_LINUX = re.compile(r"^\s*linux(?:16|efi)?\s+(\S*/)?(?:vmlinuz|vmlinux|kernel|linux)-(\S+)(.*)$")
_DEFAULT = re.compile(r"""^\s*set\s+default=(?:"([^"]*)"|'([^']*)'|(\S*))\s*$""")
_RECOVERY = re.compile(r"(?:^|\s)(?:single|recovery|rescue|emergency|systemd\.unit=rescue\.target)(?:\s|$)")


@dataclass(frozen=True)
class Level:
    """One step from the top of the menu to an entry: its place among its siblings, its id (or title), its title."""

    index: int
    ident: str
    title: str

    def named(self, part: str) -> bool:
        """Whether GRUB takes ``part`` of a default for this."""
        return part in (str(self.index), self.ident, self.title)


@dataclass(frozen=True)
class Entry:
    """A menu entry that starts Linux."""

    levels: tuple[Level, ...]
    release: str
    recovery: bool

    @property
    def path(self) -> str:
        """What ``saved_entry`` takes: the ids from the top."""
        return ">".join(level.ident for level in self.levels)

    @property
    def simple(self) -> bool:
        """Whether it stands for the newest kernel, whatever that is: its id names no kernel."""
        return "-simple" in self.levels[-1].ident

    def named(self, wanted: str) -> bool:
        """Whether GRUB finds this entry by ``wanted``, an id, title or number for each level."""
        parts = wanted.split(">")
        return len(parts) == len(self.levels) and all(lv.named(part) for lv, part in zip(self.levels, parts))


@dataclass(frozen=True)
class Menu:
    """What grub.cfg says. ``default``: the last ``set default`` that is not the one-time entry's; None without one."""

    entries: tuple[Entry, ...]
    default: str | None

    @property
    def saved_mode(self) -> bool:
        """Whether the default comes from the environment block."""
        return self.default == "${saved_entry}"

    def entry_of(self, release: str) -> Entry | None:
        """The ordinary entry that starts ``release`` and no other kernel after an update, or None."""
        found = [e for e in self.entries if e.release == release and not e.recovery and not e.simple]
        return found[0] if found else None

    def boots(self, saved: str | None) -> str | None:
        """The kernel release that starts when the environment block has ``saved`` (or nothing).

        GRUB starts the first entry when it does not find the wanted one. None when that is not Linux.
        """
        wanted = (saved if self.saved_mode else self.default) or "0"
        found = [e for e in self.entries if e.named(wanted)] or [e for e in self.entries if e.named("0")]
        return found[0].release if found else None


def parse_menu(text: str) -> Menu:
    """The Linux entries of a grub.cfg, with their ids from the top, and its default."""
    entries: list[Entry] = []
    stack: list[tuple[str, Level]] = []
    counts = [0]    # how many entries each open level has so far
    default: str | None = None
    for line in text.splitlines():
        opened = _OPEN.match(line)
        if opened:
            stack.append((opened.group(1), _level(opened, counts[-1])))
            counts[-1] += 1
            counts.append(0)
            continue
        chosen = _DEFAULT.match(line)
        if chosen and not stack:
            value = next((g for g in chosen.groups() if g is not None), "")
            default = default if value == "${next_entry}" else value
        linux = _LINUX.match(line)
        if linux and stack and stack[-1][0] == "menuentry":
            levels = tuple(level for _kind, level in stack)
            entries.append(Entry(levels, linux.group(2), bool(_RECOVERY.search(linux.group(3)))))
        if line.strip() == "}" and stack:
            stack.pop()
            counts.pop()
    return Menu(tuple(entries), default)


def _level(opened: re.Match[str], index: int) -> Level:
    title = opened.group(2) if opened.group(2) is not None else opened.group(3)
    title = title.replace("'\\''", "'")
    ident = _ID.search(opened.group(4))
    return Level(index, next((g for g in ident.groups() if g), title) if ident else title, title)


def parse_env(raw: bytes) -> dict[str, str]:
    """The variables of an environment block. Raises ValueError when it is none (wrong size or head)."""
    text = raw.decode("utf-8", "replace")
    if len(raw) != ENV_SIZE or not text.startswith(ENV_HEAD):
        raise ValueError(f"not a GRUB environment block ({len(raw)} bytes)")
    found: dict[str, str] = {}
    for line in text[len(ENV_HEAD):].splitlines():
        if "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found[key] = re.sub(r"\\(.)", r"\1", value)
    return found
