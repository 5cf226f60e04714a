# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which effective settings differ between two configurations."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .toml_text import Path, key

ABSENT = object()


def leaves(item: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every setting with its path; an empty table counts as one."""
    if isinstance(item, Mapping) and (item or not path):
        for name, inner in item.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, item


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[Path, Any, Any]]:
    """(path, before, after) of each setting that differs; ``ABSENT`` where there is none. In order of the path."""
    old, new = dict(leaves(before)), dict(leaves(after))
    found = [(path, old.get(path, ABSENT), new.get(path, ABSENT)) for path in {*old, *new}
             if not same(old.get(path, ABSENT), new.get(path, ABSENT))]
    return sorted((item for item in found if not _only_grew(item, old, new)), key=lambda item: item[0])


def same(one: Any, two: Any) -> bool:
    """Equal, and of one type: TOML's 1 is not true."""
    return type(one) is type(two) and one == two


def _only_grew(item: tuple[Path, Any, Any], old: Mapping[Path, Any], new: Mapping[Path, Any]) -> bool:
    """An empty table that got its first setting, or lost its last, is no difference by itself."""
    path, before, after = item
    table = before if after is ABSENT else after if before is ABSENT else ABSENT
    if table is ABSENT or not isinstance(table, Mapping):
        return False
    other = new if after is ABSENT else old
    return any(deeper[: len(path)] == path and len(deeper) > len(path) for deeper in other)


def dotted(path: Path) -> str:
    """A path as one writes it in TOML."""
    return ".".join(key(part) for part in path)


def report(found: list[tuple[Path, Any, Any]]) -> list[dict[str, Any]]:
    """Differences for people and for JSON: path, before, after (null where there is none)."""
    return [{"path": dotted(path), "before": _plain(before), "after": _plain(after)} for path, before, after in found]


def _plain(item: Any) -> Any:
    if item is ABSENT:
        return None
    return item if isinstance(item, (str, int, float, bool, list, dict)) else str(item)
