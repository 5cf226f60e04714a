# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wish for CUDA: a version (``12.4``) or a range (``>=12.4,<13``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TERM = re.compile(r"(>=|<=|==|>|<|=)?\s*([0-9]{1,3}(?:\.[0-9]{1,3}){0,2})\Z")
_ALLOWED = 'a version such as "12.4" or a range such as ">=12.4,<13"'
Version = tuple[int, ...]


@dataclass(frozen=True)
class CudaRequest:
    """``low`` has to run (None = no lower end); versions from ``high`` on are not wanted (None = no upper end)."""

    text: str
    exact: bool
    low: Version | None
    low_open: bool
    high: Version | None
    high_open: bool

    def holds(self, version: Version) -> bool:
        """Say whether a CUDA version lies in what is asked for; ``12.4`` holds 12.4 and 12.4.1."""
        if self.exact and self.low is not None:
            return version[: len(self.low)] == self.low
        if self.low is not None and (version <= self.low if self.low_open else version < self.low):
            return False
        if self.high is not None:
            return version < self.high if self.high_open else version[: len(self.high)] <= self.high
        return True


@lru_cache(maxsize=1024)
def parse(text: str) -> CudaRequest:
    """Return the request in ``text``; raise ValueError that says what is allowed."""
    low: Version | None = None
    high: Version | None = None
    low_open = high_open = exact = False
    terms = [term.strip() for term in text.split(",")]
    for term in terms:
        found = _TERM.match(term)
        if not found:
            raise ValueError(_ALLOWED)
        operator, number = found.group(1) or "==", tuple(int(part) for part in found.group(2).split("."))
        if operator in ("==", "="):
            if len(terms) > 1:
                raise ValueError(_ALLOWED)
            low, exact = number, True
        elif operator in (">=", ">"):
            low, low_open = number, operator == ">"
        else:
            high, high_open = number, operator == "<"
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        raise ValueError(f"{_ALLOWED}; the lower end {text} is above the upper one")
    return CudaRequest(text, exact, low, low_open, high, high_open)
