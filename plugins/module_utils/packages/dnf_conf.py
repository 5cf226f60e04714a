# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dnf.conf, edited line by line: what it excludes, and how many kernels it lets stand side by side.

Sources: dnf.conf(5), dnf5.conf(5), libdnf's ConfigMain.cpp: ``exclude`` and ``excludepkgs`` are one option, to which
each of them appends; /etc/dnf/dnf.conf is read last and outweighs dnf5's drop-ins.
"""
from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from .base import Package
from .books import TITLE, is_glob

PATH = "/etc/dnf/dnf.conf"
DROP_IN = "/etc/dnf/libdnf5.conf.d/90-baremetal-nvidia.conf"
DEFAULT_LIMIT = 3
UNLIMITED = 0
# These work on dnf 4's library, without its plugins: of all locks they follow exclusions alone (libdnf's dnf-sack.cpp).
WITHOUT_PLUGINS = frozenset({"PackageKit", "microdnf"})
_ABOVE = f"# {TITLE} (module kernel_pin): the next line keeps packages from moving"
_COUNT = f"# {TITLE} (module kernel_pin): no kernel is thrown out by its count; before: "
_KEYS = ("excludepkgs", "exclude")


def _option(line: str) -> str | None:
    """The name of the option that a line sets."""
    match = re.match(r"([A-Za-z_]\w*)[ \t]*=", line)
    return match.group(1) if match else None


def _main(lines: Sequence[str]) -> tuple[int, int]:
    """The first line of section [main] and the one after its last; (-1, -1) without one."""
    start = next((i for i, line in enumerate(lines) if line.strip().lower() == "[main]"), -1)
    if start < 0:
        return -1, -1
    end = next((i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
    return start + 1, end


def _values(lines: Sequence[str], key: str) -> list[tuple[int, int, str]]:
    """(first line, line after the last, value) of each time [main] sets ``key``; lines that go on are indented."""
    start, end = _main(lines)
    found = []
    for index in range(max(start, 0), max(end, 0)):
        if _option(lines[index]) == key:
            stop = index + 1
            while stop < end and lines[stop][:1] in (" ", "\t") and lines[stop].strip():
                stop += 1
            value = " ".join([lines[index].split("=", 1)[1], *lines[index + 1:stop]])
            found.append((index, stop, value.strip()))
    return found


def _words(value: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", value) if word]


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _append(lines: list[str], added: Sequence[str]) -> list[str]:
    """At the end of [main], before the empty lines that close it."""
    _start, end = _main(lines)
    if end < 0:
        return [*lines, "[main]", *added]
    while end and not lines[end - 1].strip():
        end -= 1
    return [*lines[:end], *added, *lines[end:]]


class Excludes:
    """The exclusions of dnf.conf as a book (see :mod:`.books`): a name there is not seen in any repository."""

    path = PATH
    word = "exclude"

    def entries(self, text: str) -> list[str]:
        """All words of both spellings."""
        lines = text.splitlines()
        return [word for key in _KEYS for _from, _to, value in _values(lines, key) for word in _words(value)]

    def hold(self, packages: Sequence[Package]) -> list[str]:
        """The name: what is installed is never excluded."""
        return sorted({p.name for p in packages})

    def block(self, name: str) -> list[str]:
        """The same."""
        return [name]

    def edit(self, text: str, drop: Sequence[str], add: Sequence[str], pin_set: str) -> str:
        """Ours stand in a line of their own, in the spelling that a person does not use."""
        lines, gone = text.splitlines(), set(drop)
        for key in _KEYS:
            for start, stop, value in reversed(_values(lines, key)):
                words = _words(value)
                kept = [word for word in words if word not in gone]
                if kept == words:
                    continue
                above = start - 1 if start and lines[start - 1] == _ABOVE else start
                lines[(start if kept else above):stop] = [f"{key}={','.join(kept)}"] if kept else []
        if add:
            lines = self._add(lines, sorted(add))
        return _joined(lines)

    def _add(self, lines: list[str], words: list[str]) -> list[str]:
        for key in _KEYS:
            for start, stop, value in _values(lines, key):
                if start and lines[start - 1] == _ABOVE:
                    lines[start:stop] = [f"{key}={','.join(sorted({*_words(value), *words}))}"]
                    return lines
        free = [key for key in _KEYS if not _values(lines, key)]
        if free:
            return _append(lines, [_ABOVE, f"{free[0]}={','.join(words)}"])
        start, stop, value = _values(lines, _KEYS[0])[-1]
        lines[start:stop] = [f"{_KEYS[0]}={','.join([*_words(value), *words])}"]
        return lines

    def concerns(self, entry: str, name: str) -> bool:
        """Names and patterns."""
        return fnmatch.fnmatchcase(name, entry) if is_glob(entry) else entry == name

    def is_held(self, about: Sequence[str], packages: Sequence[Package]) -> bool:
        """Any exclusion of the name."""
        return bool(about)

    def opens(self, about: Sequence[str], packages: Sequence[Package]) -> list[str]:
        """Exclusions open nothing."""
        return []


def limit_of(text: str) -> int | None:
    """``installonly_limit`` of a configuration file; None when it sets none. Words for 0 are dnf's."""
    found = _values(text.splitlines(), "installonly_limit")
    if not found:
        return None
    value = found[-1][2].lower()
    return UNLIMITED if value in ("0", "<off>") else int(value) if value.isdigit() else None


def needed(kernels: int) -> int:
    """The least number that leaves room for two kernels more than there are."""
    return max(5, kernels + 2)


def enough(limit: int, kernels: int) -> bool:
    """Say whether dnf, counting kernels, could not come to throw out one of these."""
    return limit == UNLIMITED or limit >= needed(kernels)


def raise_limit(text: str) -> str:
    """Make it unlimited; the number that stood there is kept in the comment above."""
    lines = text.splitlines()
    found = _values(lines, "installonly_limit")
    if not found:
        return _joined(_append(lines, [f"{_COUNT}default", f"installonly_limit={UNLIMITED}"]))
    for number, (start, stop, value) in enumerate(reversed(found)):
        above = start - 1 if start and lines[start - 1].startswith(_COUNT) else start
        before = lines[above] if above < start else f"{_COUNT}{lines[start] if stop == start + 1 else value}"
        lines[above:stop] = [before, f"installonly_limit={UNLIMITED}"] if number == 0 else []
    return _joined(lines)


def restore_limit(text: str) -> str:
    """Put the former number back where the line is ours still; a number that a person wrote since stays."""
    lines = text.splitlines()
    for index in reversed([i for i, line in enumerate(lines) if line.startswith(_COUNT)]):
        before = lines[index][len(_COUNT):].strip()
        ours = index + 1 < len(lines) and re.match(r"installonly_limit\s*=\s*0\s*$", lines[index + 1])
        put = [before if "=" in before else f"installonly_limit={before}"] if ours and before != "default" else []
        lines[index:index + (2 if ours else 1)] = put
    return _joined(lines)


def drop_in() -> str:
    """dnf5's drop-in, where dnf.conf sets no number."""
    head = f"# Managed by {TITLE} (module kernel_pin): no kernel is thrown out by its count."
    return f"{head}\n[main]\ninstallonly_limit={UNLIMITED}\n"
