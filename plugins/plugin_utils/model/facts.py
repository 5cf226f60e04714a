# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading facts that may be anything: three answers, and never an exception.

A value that was read is the value. ``None`` means that it was looked for and is not there. :data:`UNKNOWN` means that
nobody could tell: the key is absent, or what stands there is not of the wanted kind.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeVar, Union


class Unknown(enum.Enum):
    """The third answer; false in a condition, so that nothing takes it for a value."""

    UNKNOWN = "unknown"

    def __bool__(self) -> Literal[False]:
        return False


UNKNOWN: Final = Unknown.UNKNOWN
T = TypeVar("T")
Maybe = Union[T, None, Unknown]


class Reader:
    """Dotted paths into a mapping of unknown quality."""

    def __init__(self, facts: object) -> None:
        self._facts = facts if isinstance(facts, Mapping) else {}

    def get(self, path: str) -> Any:
        """Return what stands at ``path``; None below a null; UNKNOWN where nothing stands."""
        here: Any = self._facts
        for key in path.split("."):
            if here is None:
                return None
            if not isinstance(here, Mapping):
                return UNKNOWN
            if key not in here:
                return UNKNOWN
            here = here[key]
        return here

    def text(self, path: str) -> Maybe[str]:
        """Return a text that is not empty; UNKNOWN for anything else but null."""
        value = self.get(path)
        if value is None or (isinstance(value, str) and value and len(value) < 4096):
            return str(value) if value is not None else None
        return UNKNOWN

    def flag(self, path: str) -> Maybe[bool]:
        """Return a boolean; UNKNOWN for anything else but null."""
        value = self.get(path)
        return value if value is None or isinstance(value, bool) else UNKNOWN

    def number(self, path: str) -> Maybe[float]:
        """Return a finite number; UNKNOWN for anything else but null."""
        value = self.get(path)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and -1e15 < value < 1e15
        return value if good else UNKNOWN

    def texts(self, path: str) -> Maybe[tuple[str, ...]]:
        """Return the texts of a list, leaving out what is none."""
        value = self.get(path)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            return UNKNOWN
        return tuple(str(item) for item in value if isinstance(item, str))

    def table(self, path: str) -> Maybe[dict[str, Any]]:
        """Return a mapping with its text keys."""
        value = self.get(path)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            return UNKNOWN
        return {str(key): item for key, item in value.items() if isinstance(key, str)}

    def rows(self, path: str) -> Maybe[tuple[Reader, ...]]:
        """Return a reader for each mapping in a list, leaving out what is none."""
        value = self.get(path)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            return UNKNOWN
        return tuple(Reader(item) for item in value if isinstance(item, Mapping))

    def odd_rows(self, path: str) -> bool:
        """Say whether a list holds something that is no mapping: then it is not known in full."""
        value = self.get(path)
        return isinstance(value, (list, tuple)) and any(not isinstance(item, Mapping) for item in value)


def or_none(value: Maybe[T]) -> T | None:
    """Return the value, or None if it is unknown: for places where both mean the same."""
    return None if value is UNKNOWN else value


def each(value: Maybe[tuple[T, ...]]) -> Iterator[T]:
    """Iterate over a list that may be unknown."""
    return iter(value) if isinstance(value, tuple) else iter(())
