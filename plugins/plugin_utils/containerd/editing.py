# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The new text of each file that a decision changes: comments, order and formatting stay, only our lines come in.

Every single edit is tried in the least intrusive way first and is taken only if the text then means exactly what was
meant and has all its comments; tomlkit does those that lie inside inline tables and arrays. If no way proves right,
nothing is written.
"""
from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tomllib

from . import removing, toml_text
from .diff import differences
from .edits import FileEdit, new_text, put
from .toml_text import Path, Statement
from .want import Refusal

try:
    import tomlkit
except ImportError:  # the planner and most edits do without; render() says so where one needs it
    tomlkit = None  # type: ignore[assignment]

Way = Callable[[str, Path, Any], str | None]


def edited(edit: FileEdit, text: str | None) -> str:
    """The new text of one file."""
    if edit.document is not None or text is None:
        return new_text(edit.document or {})
    if edit.version is not None:
        text = _first(text, ("version",), edit.version, edit.path, (_top_line,))
    if edit.imports is not None:
        present = tomllib.loads(text).get("imports")
        if present is None:
            text = _first(text, ("imports",), [edit.imports], edit.path, (_top_line,))
        else:
            text = _first(text, ("imports",), [*present, edit.imports], edit.path, (_append,))
    for path in edit.removes:
        again = functools.partial(_set, path=path, value=_value(text, path), name=edit.path)
        text = removing.without(text, path, edit.path, path[:-1] in edit.own_headers, again)
    if edit.drop_version:
        text = removing.without(text, ("version",), edit.path)
    for entry in edit.drop_imports:
        text = removing.without_import(text, entry, edit.path, edit.keep_imports)
    for path, value in edit.sets:
        text = _set(text, path, value, edit.path)
    return text


def _set(text: str, path: Path, value: Any, name: str) -> str:
    return _first(text, path, value, name, (_exchange, _new_table, _into_table, _new_header, _inline))


def _value(text: str, path: Path) -> Any:
    found: Any = tomllib.loads(text)
    for name in path:
        found = found[name] if isinstance(found, Mapping) and name in found else None
    return found


def set_top(text: str, name: str, value: Any, path: str) -> str:
    """The text with another value of a key that stands at its top."""
    return _first(text, (name,), value, path, (_exchange, _inline, _top_line))


def _first(text: str, path: Path, value: Any, name: str, ways: tuple[Way, ...]) -> str:
    """The outcome of the first way that means what is meant and keeps every comment."""
    wanted = tomllib.loads(text)
    put(wanted, path, copy.deepcopy(value))
    before = toml_text.comments(text)
    reason = "no way to write it was found"
    for way in ways:
        if way in (_append, _inline) and tomlkit is None:
            reason = "the Python package tomlkit is not installed on the controller"
            continue
        try:
            new = way(text, path, value)
            if new is None or differences(wanted, tomllib.loads(new)) or differences(tomllib.loads(new), wanted):
                continue
        except (ValueError, TypeError, LookupError, AttributeError):  # what tomlkit and tomllib raise
            continue
        if _all_there(before, toml_text.comments(new)):
            return new
    raise Refusal("not_editable", f"{name} cannot be edited safely at {toml_text.header(path)}: {reason}",
                  "install tomlkit where ansible runs" if tomlkit is None else "make the change by hand")


def _all_there(before: list[str], after: list[str]) -> bool:
    rest = iter(after)
    return all(comment in rest for comment in before)


# -- ways, each returns None where it does not apply ---------------------------------------------------------------


def _top_line(text: str, path: Path, value: Any) -> str | None:
    """A new key of the file itself: behind ``version``, else before everything that is no comment at the top."""
    line = f"{toml_text.key(path[0])} = {toml_text.value(value)}"
    spot = None
    for statement in toml_text.statements(text):
        if statement.kind in ("header", "array_header"):
            break
        if statement.kind == "pair" and toml_text.pair_path(text, statement) == ("version",):
            spot = statement
    if spot is not None:
        return _insert(text, spot.end, [line])
    first = next((s for s in toml_text.statements(text) if s.kind not in ("blank", "comment")), None)
    if first is None:
        return _insert(text, len(text), [line])
    newline = _newline(text)
    return text[: first.start] + line + newline + text[first.start :]


def _exchange(text: str, path: Path, value: Any) -> str | None:
    """Another value for a key that stands on a line of its own."""
    if isinstance(value, Mapping):
        return None
    for section, statement in _sections(text):
        if statement.kind == "pair" and section is not None and (
                *section, *toml_text.pair_path(text, statement)) == path:
            start, end = _value_span(text, statement)
            return text[:start] + toml_text.value(value) + text[end:]
    return None


def _new_table(text: str, path: Path, value: Any) -> str | None:
    """A table of its own, behind the tables beside it."""
    if not isinstance(value, Mapping):
        return None
    return _block(text, path, value)


def _into_table(text: str, path: Path, value: Any) -> str | None:
    """A line in a table that has a header, behind its last key."""
    if isinstance(value, Mapping):
        return None
    last: Statement | None = None
    indent = ""
    for section, statement in _sections(text):
        if section != path[:-1]:
            continue
        if statement.kind == "header":
            last, indent = statement, _indent(text, statement) + ("  " if _indents(text) else "")
        elif statement.kind == "pair" and last is not None:
            last, indent = statement, _indent(text, statement)
    if last is None:
        return None
    return _insert(text, last.end, [f"{indent}{toml_text.key(path[-1])} = {toml_text.value(value)}"])


def _new_header(text: str, path: Path, value: Any) -> str | None:
    """A header for a table that has none yet, with the one key."""
    return None if isinstance(value, Mapping) else _block(text, path[:-1], {path[-1]: value})


def _inline(text: str, path: Path, value: Any) -> str | None:
    """Inside an inline table, or wherever tomlkit finds the place."""
    document: Any = tomlkit.parse(text)
    holder = document
    for name in path[:-1]:
        if name not in holder:
            holder[name] = tomlkit.inline_table() if isinstance(holder, tomlkit.items.InlineTable) else tomlkit.table()
        holder = holder[name]
    holder[path[-1]] = _item(value, isinstance(holder, tomlkit.items.InlineTable))
    return tomlkit.dumps(document)


def _item(value: Any, inline: bool) -> Any:
    if not isinstance(value, Mapping):
        return value
    table: Any = tomlkit.inline_table() if inline else tomlkit.table()
    for name, item in value.items():
        table[name] = _item(item, inline)
    return table


def _append(text: str, path: Path, value: Any) -> str | None:
    """One more entry at the end of a list."""
    document: Any = tomlkit.parse(text)
    document[path[0]].append(value[-1])
    return tomlkit.dumps(document)


# -- places --------------------------------------------------------------------------------------------------------


def _sections(text: str) -> Iterator[tuple[Path | None, Statement]]:
    """Each statement with the table it stands in; None inside arrays of tables."""
    section: Path | None = ()
    arrays: list[Path] = []
    for statement in toml_text.statements(text):
        if statement.kind == "array_header":
            arrays.append(toml_text.header_path(text, statement))
            section = None
        elif statement.kind == "header":
            path = toml_text.header_path(text, statement)
            section = None if any(path[: len(array)] == array for array in arrays) else path
        yield section, statement


def _block(text: str, path: Path, content: Mapping[str, Any]) -> str:
    """Put a table behind the last one that shares the longest part of its path; at the end if none does."""
    best, depth, margin, inside = len(text), 0, "", ""
    for section, end, header_indent, key_indent in _tables(text):
        shared = _shared(section, path)
        if shared >= max(depth, 2):
            best, depth, margin = end, shared, header_indent
            if shared == len(section) and header_indent:  # a table in that one
                margin += "\t" if header_indent.startswith("\t") else "  "
            inside = key_indent[len(header_indent):] if key_indent.startswith(header_indent) else inside
    indent = inside or ("\t" if margin.startswith("\t") else "  " if _indents(text) else "")
    lines = toml_text.table(path, content, indent, margin)
    following = text[best:].lstrip("\r\n")
    close = following.lstrip(" \t").startswith("[") and text[best : len(text) - len(following)].count("\n") < 2
    gap = [""] if close else []
    return _insert(text, best, ["", *lines, *gap])


def _tables(text: str) -> Iterator[tuple[Path, int, str, str]]:
    """(path, end, indent of the header, indent of the keys) of each table with a header.

    The end is that of its last key and of the comments that follow without a gap, unless the next header follows
    them without a gap too: then they are that one's.
    """
    current: tuple[Path, str] | None = None
    end, key_indent, following = 0, "", 0
    for section, statement in _sections(text):
        if statement.kind in ("header", "array_header"):
            if current is not None:
                yield current[0], end, current[1], key_indent
            current = None if section is None else (section, _indent(text, statement))
            end, key_indent, following = statement.end, "", 0
        elif statement.kind == "pair":
            end, following = statement.end, 0
            key_indent = key_indent or _indent(text, statement)
        elif statement.kind == "blank":
            end, following = following or end, 0
        elif end and (following or text[end : statement.start].strip(" \t\r") == "\n"):
            following = statement.end
    if current is not None:
        yield current[0], following or end, current[1], key_indent


def _shared(one: Path, two: Path) -> int:
    count = 0
    while count < min(len(one), len(two)) and one[count] == two[count]:
        count += 1
    return count


def _value_span(text: str, statement: Statement) -> tuple[int, int]:
    raw = text[statement.start : statement.end if statement.comment < 0 else statement.comment]
    at = 0
    while raw[at] != "=":
        at = toml_text._skip_string(raw, at) if raw[at] in "\"'" else at + 1
    at += 1
    while raw[at] in " \t":
        at += 1
    return statement.start + at, statement.start + len(raw.rstrip())


def _indent(text: str, statement: Statement) -> str:
    raw = text[statement.start : statement.end]
    return raw[: len(raw) - len(raw.lstrip(" \t"))]


def _indents(text: str) -> bool:
    """Whether the writer of the file indents keys under their header."""
    pairs = [s for section, s in _sections(text) if s.kind == "pair" and section]
    return not pairs or any(_indent(text, s) for s in pairs)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _insert(text: str, at: int, lines: list[str]) -> str:
    """Put whole lines behind the statement that ends at ``at``."""
    newline = _newline(text)
    head, tail = text[:at], text[at:]
    if not head:
        lines = lines[1:] if lines and not lines[0] else lines
        return newline.join(lines) + newline + tail
    if at >= len(text):  # the end of the file, which may lack its last line break
        head = head if head.endswith("\n") else head + newline
        if lines and not lines[0] and head.endswith(newline * 2):
            lines = lines[1:]
        return head + newline.join(lines) + newline
    return head + newline + newline.join(lines) + tail
