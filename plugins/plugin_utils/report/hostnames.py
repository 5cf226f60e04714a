# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many host names as few words: gpu-a01, gpu-a02, gpu-a03 → gpu-a[01-03]."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(\D*)(\d+)(.*)\Z", re.DOTALL)


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key by which gpu-2 comes before gpu-10."""
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def fold(names: Iterable[str]) -> str:
    """Return the names with runs of numbers folded (the first number of a name counts), the rest listed."""
    families: dict[tuple[str, str, int], list[int]] = {}
    order: list[tuple[str, str, int] | str] = []
    for name in sorted(set(names), key=natural):
        match = _NUMBERED.match(name) if name.isascii() else None
        if match is None:
            order.append(name)
            continue
        number = match[2]
        family = (match[1], match[3], len(number))
        if family not in families:
            families[family] = []
            order.append(family)
        families[family].append(int(number))
    return ", ".join(item if isinstance(item, str) else _family(item, families[item]) for item in order)


def _family(family: tuple[str, str, int], numbers: list[int]) -> str:
    prefix, suffix, width = family
    if len(numbers) == 1:
        return f"{prefix}{numbers[0]:0{width}d}{suffix}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}" for low, high in runs]
    return f"{prefix}[{','.join(texts)}]{suffix}"
