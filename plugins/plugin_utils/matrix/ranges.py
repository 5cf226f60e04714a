# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranges of driver versions and kernel releases, as rows write them.

``"535"`` is all of a branch, ``"6.12"`` all of a kernel series, ``">=535.161.07,<550"`` an interval, ``"*"`` all.
A bound counts as far as it is written: ``"<=535.183"`` takes 535.183.06, ``">=5.14.0-687"`` takes 5.14.0-687.12.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

from ..model.version import KernelRelease, try_parse

_PART = re.compile(r"(>=|<=|>|<)?\s*(\S+)")
Key = tuple[int, ...]
Self = TypeVar("Self", bound="Range")


class RangeError(ValueError):
    """A text that is no range, or a range that holds nothing."""


@dataclass(frozen=True)
class Range:
    """An interval of version keys. ``text`` is what was written; build it by ``parse``."""

    text: str
    prefix: Key | None = field(default=None, compare=False)
    low: Key | None = field(default=None, compare=False)
    low_open: bool = field(default=False, compare=False)
    high: Key | None = field(default=None, compare=False)
    high_open: bool = field(default=False, compare=False)

    @staticmethod
    def key(text: str) -> Key | None:
        """Turn a version text into the tuple that is compared; None for what is no version."""
        return try_parse(text)

    @classmethod
    def parse(cls: type[Self], text: str) -> Self:
        """Build a range from its text; raises RangeError naming the text."""
        if text.strip() == "*":
            return cls(text)
        low = high = prefix = None
        low_open = high_open = False
        for part in text.split(","):
            found = _PART.fullmatch(part.strip())
            key = cls.key(found.group(2)) if found else None
            if not found or key is None:
                raise RangeError(f"{part.strip()!r} in {text!r} is no bound, such as >=535.54.03 or a plain version")
            sign = found.group(1)
            if sign is None:
                if prefix is not None:
                    raise RangeError(f"{text!r}: a plain version stands alone, bounds carry a sign")
                prefix = key
            elif sign.startswith(">"):
                low, low_open = key, sign == ">"
            else:
                high, high_open = key, sign == "<"
        if prefix is not None and (low is not None or high is not None):
            raise RangeError(f"{text!r}: a plain version stands alone, bounds carry a sign")
        made = cls(text, prefix, low, low_open, high, high_open)
        if made.upside_down():
            raise RangeError(f"{text!r} is upside down: nothing lies in it")
        return made

    def upside_down(self) -> bool:
        """True if the lower bound lies above the upper one."""
        if self.low is None or self.high is None:
            return False
        size = min(len(self.low), len(self.high))
        low, high = self.low[:size], self.high[:size]
        if low != high:
            return low > high
        if len(self.low) > len(self.high):  # >=6.12.97,<6.12
            return self.high_open
        return self.low_open or (self.high_open and len(self.low) == len(self.high))

    def holds(self, key: Key) -> bool:
        """True if the version of this key lies in the range."""
        if self.prefix is not None:
            return key[: len(self.prefix)] == self.prefix
        if self.low is not None:
            if self.low_open and key[: len(self.low)] <= self.low:
                return False
            if key < self.low:
                return False
        if self.high is not None:
            cut = key[: len(self.high)]
            return cut < self.high if self.high_open else cut <= self.high
        return True

    def reaches(self, first: int) -> bool:
        """True if a version whose first number is this may lie in the range: a quick sieve before ``holds``."""
        if self.prefix is not None:
            return self.prefix[0] == first
        if self.low is not None and self.low[0] > first:
            return False
        if self.high is not None:
            return first < self.high[0] or (first == self.high[0] and not (self.high_open and len(self.high) == 1))
        return True

    def overlaps(self, other: Range) -> bool:
        """True if some version may lie in both. Judged by the bounds; prefixes overlap if one contains the other."""
        probes = [bound for one in (self, other) for bound in (one.prefix, one.low, one.high) if bound is not None]
        probes += [(*bound, 0) for bound in probes] + [(*bound[:-1], bound[-1] + 1) for bound in probes]
        probes += [(*bound[:-1], bound[-1] - 1, 10**6) for bound in list(probes)] + [(0,), (10**6,)]
        return any(self.holds(probe) and other.holds(probe) for probe in probes)

    def __str__(self) -> str:
        return self.text


class DriverRange(Range):
    """A range of driver versions."""

    def __contains__(self, version: object) -> bool:
        key = try_parse(version)
        return key is not None and self.holds(key)


class KernelRange(Range):
    """A range of kernel versions or releases: ``"6.12"``, ``">=6.12.97,<6.13"``, ``">=5.14.0-687"``."""

    @staticmethod
    def key(text: str) -> Key | None:
        release = KernelRelease.try_parse(text)
        if release is None:
            return None
        written = tuple(int(part) for part in re.match(r"\d+(?:\.\d+)*", text).group().split("."))  # type: ignore[union-attr]
        return (*release.version, *release.abi) if release.abi else written

    @staticmethod
    def of(release: KernelRelease) -> Key:
        """The key of a release: its version, then the count of its distribution."""
        return (*release.version, *release.abi)

    def __contains__(self, release: object) -> bool:
        found = release if isinstance(release, KernelRelease) else KernelRelease.try_parse(release)
        return found is not None and self.holds((*found.version, *found.abi))
