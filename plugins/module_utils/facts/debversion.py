# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of Debian package versions. Source: deb-version(7), Debian policy 5.6.12."""

from __future__ import annotations

import functools
import re


def compare(left: str, right: str) -> int:
    """Negative, zero or positive, as ``dpkg --compare-versions`` orders the two."""
    epoch_l, upstream_l, revision_l = _split(left)
    epoch_r, upstream_r, revision_r = _split(right)
    return epoch_l - epoch_r or _part(upstream_l, upstream_r) or _part(revision_l, revision_r)


key = functools.cmp_to_key(compare)


def _split(version: str) -> tuple[int, str, str]:
    epoch, mark, rest = version.partition(":")
    if not mark or not epoch.isdigit():
        epoch, rest = "0", version
    upstream, mark, revision = rest.rpartition("-")
    return (int(epoch), upstream, revision) if mark else (int(epoch), rest, "")


def _part(left: str, right: str) -> int:
    while left or right:
        text_l, text_r = _text(left), _text(right)
        left, right = left[len(text_l) :], right[len(text_r) :]
        for index in range(max(len(text_l), len(text_r))):
            order = _weight(text_l, index) - _weight(text_r, index)
            if order:
                return order
        digits_l, digits_r = _digits(left), _digits(right)
        left, right = left[len(digits_l) :], right[len(digits_r) :]
        order = int(digits_l or "0") - int(digits_r or "0")
        if order:
            return order
    return 0


def _text(version: str) -> str:
    return re.match(r"\D*", version).group(0)  # type: ignore[union-attr]


def _digits(version: str) -> str:
    return re.match(r"\d*", version).group(0)  # type: ignore[union-attr]


def _weight(text: str, index: int) -> int:
    """A tilde sorts before the end, letters before all other signs."""
    if index >= len(text):
        return 0
    char = text[index]
    if char == "~":
        return -1
    return ord(char) if char.isalpha() else ord(char) + 256
