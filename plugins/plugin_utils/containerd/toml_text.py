# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TOML as text: where statements begin and end, and small edits that leave every other byte as it is.

tomllib says what a text means, but not where. The scanner here finds the statements (comment, header, key/value),
strings and arrays over several lines included, so that a line can be added or a value exchanged in place. Whether an
edit did what it should is not decided here: ``editor`` compares the meaning before and after.
"""
from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomllib

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}

Path = tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """One statement: ``text[start:end]`` without its line break.

    ``kind``: blank, comment, header, array_header, pair.
    """

    kind: str
    start: int
    end: int
    comment: int  # where a comment begins, -1 without one


def _skip_string(text: str, at: int) -> int:
    """The position behind the string that begins at ``at``."""
    quote = text[at]
    if text.startswith(quote * 3, at):
        at += 3
        while at < len(text) and not text.startswith(quote * 3, at):
            at += 2 if quote == '"' and text[at] == "\\" else 1
        at += 3
        while at < len(text) and text[at] == quote:  # up to two quotes may stand before the closing three
            at += 1
        return at
    at += 1
    while at < len(text) and text[at] not in (quote, "\n"):
        at += 2 if quote == '"' and text[at] == "\\" else 1
    return at + 1


def statements(text: str) -> Iterator[Statement]:
    """All statements of a text that parses as TOML, in order."""
    at = 0
    while at < len(text):
        start = at
        while at < len(text) and text[at] in " \t":
            at += 1
        kind = "pair"
        if at >= len(text) or text[at] in "\r\n":
            kind = "blank"
        elif text[at] == "#":
            kind = "comment"
        elif text[at] == "[":
            kind = "array_header" if text.startswith("[[", at) else "header"
        depth, comment = 0, -1
        while at < len(text):
            char = text[at]
            if char == "#":
                comment = at if depth <= 0 else comment
                while at < len(text) and text[at] != "\n":
                    at += 1
                continue
            if char == "\n" and depth <= 0:
                break
            if char in "\"'":
                at = _skip_string(text, at)
                continue
            if kind == "pair":
                depth += (char in "[{") - (char in "]}")
            at += 1
        end = min(at, len(text))
        if text[start:end].endswith("\r"):
            end -= 1
        yield Statement(kind, start, end, min(comment, end))
        at += 1


def comments(text: str) -> list[str]:
    """Every comment of a text that parses as TOML, without trailing blanks."""
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at] in "\"'":
            at = _skip_string(text, at)
        elif text[at] == "#":
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            found.append(text[at:end].rstrip())
            at = end
        else:
            at += 1
    return found


def header_path(text: str, statement: Statement) -> Path:
    """The keys of a header: ``[a."b.c"]`` is ``("a", "b.c")``."""
    return _only_path(tomllib.loads(text[statement.start : statement.end].strip()))


def headers(text: str) -> set[Path]:
    """The tables that have a header of their own."""
    return {header_path(text, statement) for statement in statements(text) if statement.kind == "header"}


def pair_path(text: str, statement: Statement) -> Path:
    """The keys of a key/value statement, relative to its header: ``a.b = 1`` is ``("a", "b")``."""
    raw = text[statement.start : statement.end]
    at = 0
    while raw[at] != "=":
        at = _skip_string(raw, at) if raw[at] in "\"'" else at + 1
    return _only_path(tomllib.loads(raw[:at] + "= 0"))


def _only_path(document: Any) -> Path:
    path: list[str] = []
    while isinstance(document, (dict, list)) and document:
        if isinstance(document, list):
            document = document[0]
            continue
        key = next(iter(document))
        path.append(key)
        document = document[key]
    return tuple(path)


def key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if _BARE.match(name) else string(name)


def string(value: str) -> str:
    """A basic string."""
    out = "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in value)
    return f'"{out}"'


def header(path: Sequence[str]) -> str:
    """``[plugins."io.containerd.grpc.v1.cri".containerd]``, every plugin id quoted as people write it."""
    return "[" + ".".join(key(part) for part in path) + "]"


def value(item: Any) -> str:
    """A value on one line. Raises TypeError for what TOML cannot say."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return string(item)
    if isinstance(item, float):
        return repr(item)  # nan and inf are TOML too
    if isinstance(item, int):
        return str(item)
    if isinstance(item, (datetime.datetime, datetime.date, datetime.time)):
        return item.isoformat()
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{key(k)} = {value(v)}" for k, v in item.items()) + " }" if item else "{}"
    if isinstance(item, (list, tuple)):
        return "[" + ", ".join(value(v) for v in item) + "]"
    raise TypeError(f"no TOML value: {type(item).__name__}")


def table(path: Sequence[str], content: Mapping[str, Any], indent: str = "  ", margin: str = "") -> list[str]:
    """The lines of a table and the tables in it; ``indent`` before keys, ``margin`` before the header."""
    lines = [margin + header(path)]
    lines += [f"{margin}{indent}{key(k)} = {value(v)}" for k, v in content.items() if not isinstance(v, Mapping)]
    for name, item in content.items():
        if isinstance(item, Mapping):
            lines += ["", *table([*path, name], item, indent, margin + indent)]
    return lines
