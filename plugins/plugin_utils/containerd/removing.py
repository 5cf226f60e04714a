# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take settings out of a text: their lines go, every other byte stays, comments that stand alone included."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tomllib

from . import toml_text
from .diff import differences
from .edits import take
from .toml_text import Path, Statement
from .want import Refusal

try:
    import tomlkit
except ImportError:  # only settings inside inline tables and lists need it
    tomlkit = None  # type: ignore[assignment]


def without(text: str, path: Path, name: str, own_header: bool = False,
            again: Callable[[str], str] | None = None) -> str:
    """The text without a setting, or a table with all that is in it. Raises Refusal if that cannot be proved right.

    ``again`` puts it in once more: where that makes the present text, the blank line behind it came with it and goes.
    """
    wanted = tomllib.loads(text)
    take(wanted, path)
    if again is not None:
        closer = _attempt(_cut_closer, text, path, own_header)
        if closer is not None and _alike(wanted, tomllib.loads(closer)) and _attempt(again, closer) == text:
            return closer
    for way in (_cut, _inline):
        try:
            new = way(text, path, own_header)
            found = tomllib.loads(new) if new is not None else None
        except (ValueError, TypeError, LookupError, AttributeError):  # what tomlkit and tomllib raise
            continue
        if new is not None and found is not None and _alike(wanted, found):
            return new
    raise Refusal("not_editable", f"{name} cannot be edited safely at {toml_text.header(path)}",
                  "take it out by hand" if tomlkit is not None else "install tomlkit where ansible runs")


def without_import(text: str, entry: str, name: str, keep: bool = False) -> str:
    """The text without one entry of ``imports``; the whole line goes with the last one unless it is to stay."""
    present = tomllib.loads(text).get("imports", [])
    if [one for one in present if one != entry] == [] and not keep:
        return without(text, ("imports",), name)
    if tomlkit is None:
        raise Refusal("not_editable", f"{name} cannot be edited at imports", "install tomlkit where ansible runs")
    document: Any = tomlkit.parse(text)
    document["imports"].remove(entry)
    new = tomlkit.dumps(document)
    if tomllib.loads(new).get("imports") != [one for one in present if one != entry]:
        raise Refusal("not_editable", f"{name} cannot be edited safely at imports", "take the entry out by hand")
    return new


def _alike(wanted: dict[str, Any], found: dict[str, Any]) -> bool:
    """Equal up to empty tables: a header that somebody wrote may stay without content."""
    moved = [*differences(wanted, found), *differences(found, wanted)]
    return all({} in (one, two) for _path, one, two in moved)


def _attempt(way: Callable[..., str], *given: Any) -> str | None:
    try:
        return way(*given)
    except (ValueError, TypeError, LookupError, AttributeError, Refusal):
        return None


def _cut_closer(text: str, path: Path, own_header: bool) -> str:
    return _cut(text, path, own_header, closer=True)


def _cut(text: str, path: Path, own_header: bool, closer: bool = False) -> str:
    """Drop the statements of the path and headers that were there for it alone; ``closer``: a blank line behind too."""
    rows: list[tuple[Path | None, Statement, Path | None]] = []  # (table, statement, full path of header or pair)
    section: Path | None = ()
    arrays: list[Path] = []
    for statement in toml_text.statements(text):
        full: Path | None = None
        if statement.kind == "array_header":
            full = toml_text.header_path(text, statement)
            arrays.append(full)
            section = None
        elif statement.kind == "header":
            full = toml_text.header_path(text, statement)
            section = None if any(full[: len(array)] == array for array in arrays) else full
        elif statement.kind == "pair" and section is not None:
            full = (*section, *toml_text.pair_path(text, statement))
        rows.append((section, statement, full))
    drop = {number for number, (_section, _statement, full) in enumerate(rows)
            if full is not None and full[: len(path)] == path}
    if not drop:
        raise LookupError(path)
    if len(path) > 1:
        drop |= _hollow(rows, drop, path, own_header)
    behind = max(drop) + 1
    drop |= _gaps(rows, drop)
    if closer:
        if behind >= len(rows) or rows[behind][1].kind != "blank":
            raise LookupError("no blank line behind it")
        drop.add(behind)
    return "".join(_line(text, statement) for number, (_s, statement, _f) in enumerate(rows) if number not in drop)


def _hollow(rows: list[Any], drop: set[int], path: Path, own_header: bool) -> set[int]:
    """The header right above what goes, if nothing stands under it any more; tables may, where it came with this."""
    first = min(drop)
    at = first - 1
    while at >= 0 and rows[at][1].kind == "blank":
        at -= 1
    if at < 0 or rows[at][1].kind != "header" or rows[at][2] != path[:-1]:
        return set()
    after = max(drop) + 1
    while after < len(rows) and rows[after][1].kind == "blank":
        after += 1
    if after < len(rows) and rows[after][1].kind in ("pair", "comment"):
        return set()
    header = rows[at][2]
    under = [full for number, (_section, _statement, full) in enumerate(rows) if number not in drop and number != at
             and full is not None and full[: len(header)] == header]
    return {at} if own_header or not under else set()


def _gaps(rows: list[Any], drop: set[int]) -> set[int]:
    """Blank lines inside of what goes, and the one that parts it from what stands above."""
    more: set[int] = set()
    blanks: list[int] = []  # since the last row that stays or goes
    inside = False
    for number, (_section, statement, _full) in enumerate(rows):
        if number in drop:
            more |= set(blanks if inside else blanks[-1:])
            blanks, inside = [], True
        elif statement.kind == "blank":
            blanks.append(number)
        else:
            blanks, inside = [], False
    return more


def _line(text: str, statement: Statement) -> str:
    end = text.find("\n", statement.end)
    return text[statement.start : len(text) if end < 0 else end + 1]


def _inline(text: str, path: Path, own_header: bool) -> str | None:
    """Inside an inline table or a dotted key, by tomlkit."""
    if tomlkit is None:
        return None
    document: Any = tomlkit.parse(text)
    holder = document
    for name in path[:-1]:
        holder = holder[name]
    del holder[path[-1]]
    new = tomlkit.dumps(document)
    before, after = toml_text.comments(text), iter(toml_text.comments(new))
    return new if all(comment in after for comment in before) else None
