# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings in the container toolkit's config.toml, line by line: comments, order and unknown keys stay as they are.

The file is what the toolkit itself writes: tables, and in them booleans, texts and lists of texts. Anything else is
left alone, and refused where it stands in the way. A result is read again and held against what was wanted.
"""
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import HostError

PATH = "/etc/nvidia-container-runtime/config.toml"
_HEADER = re.compile(r"^\s*\[(?!\[)(?P<name>[^\]]+)\]\s*(?:#.*)?$")
_WORD = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
_KEY = re.compile(rf"^(?P<head>\s*(?P<key>{_WORD}(?:\s*\.\s*{_WORD})*)\s*=\s*)")
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_COMMENTED = re.compile(r"^\s*#\s*(?P<key>[\w-]+)\s*=")


class TomlError(HostError, ValueError):
    """A file cannot be read or edited safely; the message says where in it and why, whose caller names the file."""


@dataclass
class Entry:
    """One ``key = value``: its dotted name, the lines it takes, what stands before and after the value, the value."""

    name: str
    first: int
    last: int
    head: str
    tail: str
    raw: str

    @property
    def dotted(self) -> set[str]:
        """The tables that the key itself makes, by its dots; no header may name them again."""
        parts, own = self.name.split("."), _name(self.head.partition("=")[0]).count(".")
        return {".".join(parts[:-count]) for count in range(1, own + 1)}

    @property
    def value(self) -> Any:
        """The value in plain types; None for a kind that is not edited here."""
        return _parse(self.raw)


def read(text: str) -> dict[str, Any]:
    """The settings by dotted name; values of other kinds than booleans, numbers, texts and lists of them are None."""
    return {entry.name: entry.value for entry in _entries(text)}


def edit(text: str, want: Mapping[str, Any]) -> str:
    """The text with these settings; one that is to be None is taken out. Raises TomlError."""
    entries = _entries(text)
    names = [entry.name for entry in entries]
    for entry in entries:
        if names.count(entry.name) > 1:
            raise TomlError(f"it says {entry.name} twice, which the toolkit does not read; say it once")
    before = {entry.name: entry.value for entry in entries}
    result = text
    for name, value in want.items():
        if before.get(name) == value and type(before.get(name)) is type(value):
            continue
        result = _set(result, name, value)
    after = read(result)
    meant = {name: value for name, value in {**before, **want}.items() if value is not None or name not in want}
    if after != meant:
        wrong = sorted(name for name in {**meant, **after} if after.get(name) != meant.get(name))
        raise TomlError(f"it cannot be edited safely: {', '.join(wrong)} would come out wrong; set it by hand")
    return result


def _set(text: str, name: str, value: Any) -> str:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    entries = _entries(text)
    for entry in entries:
        if entry.raw.startswith("{") and (name == entry.name or name.startswith(f"{entry.name}.")):
            raise TomlError(f"{entry.name} is an inline table, which is not edited; write it as a table")
    one = next((entry for entry in entries if entry.name == name), None)
    if one is not None:
        if value is None:
            del lines[one.first:one.last + 1]
            return "".join(lines)
        lines[one.first:one.last + 1] = [f"{one.head}{_text(value)}{one.tail}\n"]
        return "".join(lines)
    table, _dot, key = name.rpartition(".")
    line = f"{key} = {_text(value)}\n"
    span = _span(lines, table)
    if span is None:
        if any(table in entry.dotted for entry in entries):
            raise TomlError(f"{table} is written in dotted keys, to which {key} cannot be added; write it as a table")
        gap = [] if not lines or not lines[-1].strip() else ["\n"]
        return "".join([*lines, *gap, f"[{table}]\n", line])
    lines.insert(_place(lines, span, key), line)
    return "".join(lines)


def _place(lines: list[str], span: tuple[int, int], key: str) -> int:
    """Where a new key goes: below its commented default, else below the last line of the table that says a thing."""
    start, end = span
    for at in range(start, end):
        match = _COMMENTED.match(lines[at])
        if match and match["key"] == key:
            return at + 1
    last = start
    for at in range(start, end):
        if lines[at].strip():
            last = at + 1
    return last


def _span(lines: list[str], table: str) -> tuple[int, int] | None:
    """The lines of a table without its header; ("" is what stands before the first header)."""
    headers = [(at, _name(match["name"])) for at, line in enumerate(lines) if (match := _HEADER.match(line))]
    ends = [at for at, _table in headers[1:]] + [len(lines)]
    if table == "":
        return 0, headers[0][0] if headers else len(lines)
    for (at, found), end in zip(headers, ends):
        if found == table:
            return at + 1, end
    return None


def _entries(text: str) -> list[Entry]:
    lines = text.splitlines()
    found: list[Entry] = []
    table = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        header = _HEADER.match(line)
        if header:
            table = _name(header["name"])
        elif line.strip() and not line.lstrip().startswith("#"):
            entry = _entry(lines, at, table)
            found.append(entry)
            at = entry.last
        at += 1
    return found


def _entry(lines: list[str], at: int, table: str) -> Entry:
    match = _KEY.match(lines[at])
    if match is None:
        raise TomlError(f"line {at + 1} is no setting and no table: {lines[at].strip()[:80]}")
    key = _name(match["key"])
    rest = lines[at][match.end():]
    if rest.startswith(('"""', "'''")):
        raise TomlError(f"line {at + 1} begins a text of several lines, which the toolkit does not write")
    first = at
    while True:
        value, tail, is_open = _value(rest)
        if not is_open:
            return Entry(f"{table}.{key}" if table else key, first, at, match["head"], tail, value)
        at += 1
        if at >= len(lines):
            raise TomlError(f"the list that begins in line {first + 1} has no end")
        rest += "\n" + lines[at]


def _value(text: str) -> tuple[str, str, bool]:
    """(value, what follows it on its line, whether a list is still open) of the text behind the equals sign."""
    depth, at, kept = 0, 0, ""
    while at < len(text):
        string = _STRING.match(text, at)
        char = text[at]
        if string:
            kept, at = kept + string[0], string.end()
        elif char == "#":
            if depth <= 0:
                break
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        else:
            depth += (char in "[{") - (char in "]}")
            kept, at = kept + char, at + 1
    value = kept.rstrip()
    return value, kept[len(value):] + text[at:], depth > 0


def _name(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))


def _parse(raw: str) -> Any:
    if raw in ("true", "false"):
        return raw == "true"
    if re.fullmatch(r"[+-]?\d+", raw):
        return int(raw)
    if _STRING.fullmatch(raw):
        return _unquoted(raw)
    if raw.startswith("[") and raw.endswith("]"):
        inner = raw[1:-1]
        rest = re.sub(r"[\s,]", "", _STRING.sub("", inner))
        return [_unquoted(one) for one in _STRING.findall(inner)] if not rest else None
    return None


def _unquoted(raw: str) -> str:
    if raw.startswith("'"):
        return raw[1:-1]
    try:
        return str(json.loads(raw))
    except ValueError:
        return raw[1:-1]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text(one) for one in value) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
