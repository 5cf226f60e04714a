# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit data files of the matrix as text: rows are added or replaced, everything else stays as a person wrote it."""

from __future__ import annotations

import difflib
import pathlib
from collections.abc import Mapping
from typing import Any

import yaml

WIDTH = 118
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def scalar(value: Any) -> str:
    """A scalar as it stands inside a flow mapping."""
    text = yaml.safe_dump([value], default_flow_style=True, width=10**6, allow_unicode=True).strip()
    return text[1:-1]


def _tokens(value: Any) -> list[str]:
    """A value in pieces between which a line may break."""
    if isinstance(value, Mapping):
        opened, closed = "{", "}"
        parts = []
        for key, item in value.items():
            first, *rest = _tokens(item)
            parts.append([f"{scalar(key)}: {first}", *rest])
    elif isinstance(value, (list, tuple)):
        opened, closed = "[", "]"
        parts = [_tokens(item) for item in value]
    else:
        return [scalar(value)]
    if not parts:
        return [opened + closed]
    made = [piece for part in parts for piece in [*part[:-1], part[-1] + ","]]
    made[0] = opened + made[0]
    made[-1] = made[-1][:-1] + closed
    return made


def row_text(row: Mapping[str, Any], indent: int = 2) -> str:
    """A row in the style of the data files: flow, wrapped, without line end."""
    lines, current = [], " " * indent + "- "
    for number, piece in enumerate(_tokens(row)):
        more = (" " if number else "") + piece
        if number and len(current) + len(more) > WIDTH:
            lines.append(current)
            current = " " * (indent + 3) + piece
        else:
            current += more
    return "\n".join([*lines, current])


class DataFile:
    """A data file with its edits."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.before = path, path.read_text(encoding="utf-8")
        self.text = self.before

    def _section(self, section: str) -> yaml.SequenceNode:
        root = yaml.compose(self.text, Loader=LOADER)
        for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
            if key.value == section and isinstance(value, yaml.SequenceNode):
                return value
        raise KeyError(f"{self.path.name} has no section {section}")

    def rows(self, section: str) -> list[dict[str, Any]]:
        """The rows of a section as they stand in the text."""
        found: list[dict[str, Any]] = yaml.load(self.text, Loader=LOADER)[section]
        return found

    def add(self, section: str, row: Mapping[str, Any], after: int | None = None) -> None:
        """Put a row behind the row with index ``after`` (the last one by default)."""
        nodes = self._section(section).value
        node = nodes[-1 if after is None else after]
        lines = self.text.split("\n")
        at = node.end_mark.line + (1 if node.end_mark.column else 0)
        lines[at:at] = row_text(row).split("\n")
        self.text = "\n".join(lines)

    def replace(self, section: str, index: int, row: Mapping[str, Any]) -> None:
        """Write a row anew."""
        node = self._section(section).value[index]
        lines = self.text.split("\n")
        end = node.end_mark.line + (1 if node.end_mark.column else 0)
        lines[node.start_mark.line : end] = row_text(row).split("\n")
        self.text = "\n".join(lines)

    def add_source(self, name: str, text: str) -> None:
        """Give a source a short name (``sources.yml``)."""
        sources = yaml.load(self.text, Loader=LOADER)["sources"]
        if name in sources:
            return
        later = sorted(key for key in sources if key > name)
        line = f"  {name}: {scalar(text)}"
        lines = self.text.split("\n")
        at = next((i for i, old in enumerate(lines) if later and old.startswith(f"  {later[0]}:")), len(lines) - 1)
        self.text = "\n".join([*lines[:at], line, *lines[at:]])

    def diff(self) -> str:
        """The edits as a unified diff, empty without edits."""
        name = f"plugins/plugin_utils/matrix/data/{self.path.name}"
        return "".join(
            difflib.unified_diff(self.before.splitlines(True), self.text.splitlines(True), f"a/{name}", f"b/{name}")
        )
