# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An edit of one file as data: what the file says once it is made, and the text of a file that is new."""
from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tomllib

from . import toml_text
from .toml_text import Path
from .want import Refusal

MARKER = "# nvidia runtime, written by the Ansible collection baremetal.nvidia"


@dataclass(frozen=True)
class FileEdit:
    """A file to write. ``document``: a new file; else ``sets`` are made in the present one, ``removes`` taken out."""

    path: str
    document: Mapping[str, Any] | None = None
    sets: tuple[tuple[Path, Any], ...] = ()
    imports: str | None = None  # an entry to add to `imports`
    version: int | None = None  # a version line to add
    removes: tuple[Path, ...] = ()  # settings or tables to take out
    own_headers: tuple[Path, ...] = ()  # tables whose header goes with the last of these
    drop_imports: tuple[str, ...] = ()  # entries of `imports` to take out
    keep_imports: bool = False  # the key stays, as an empty list, after its last entry
    drop_version: bool = False  # take the version line out
    delete: bool = False  # the file goes


def outcome(edit: FileEdit, text: str | None) -> dict[str, Any]:
    """What the file says once the edit is made."""
    if edit.document is not None:
        return copy.deepcopy(dict(edit.document))
    document = parsed(text or "") or {}
    if edit.version is not None:
        document["version"] = edit.version
    for path, value in edit.sets:
        put(document, path, copy.deepcopy(value))
    for path in edit.removes:
        take(document, path)
    if edit.drop_version:
        document.pop("version", None)
    present = document.get("imports")
    present = present if isinstance(present, list) else []
    if edit.drop_imports:
        document["imports"] = present = [entry for entry in present if entry not in edit.drop_imports]
        if not present and not edit.keep_imports:
            del document["imports"]
    if edit.imports is not None:
        document["imports"] = [*present, edit.imports]
    return document


def take(document: dict[str, Any], path: Path) -> None:
    """Take a setting out of nested tables, and the tables that it leaves empty."""
    tables: list[dict[str, Any]] = [document]
    for name in path[:-1]:
        inner = tables[-1].get(name)
        if not isinstance(inner, dict):
            return
        tables.append(inner)
    tables[-1].pop(path[-1], None)
    for holder, name in zip(reversed(tables[:-1]), reversed(path[:-1])):
        if holder[name] == {}:
            del holder[name]


def put(document: dict[str, Any], path: Path, value: Any) -> None:
    """Set a value in nested tables. Raises Refusal where something that is no table stands in the way."""
    for name in path[:-1]:
        document = document.setdefault(name, {})
        if not isinstance(document, dict):
            raise Refusal("unexpected_type", f"{name} is no table", "correct the file by hand")
    document[path[-1]] = value


def new_text(document: Mapping[str, Any]) -> str:
    """The text of a file that was not there before."""
    lines = [MARKER] + [f"{toml_text.key(name)} = {toml_text.value(item)}" for name, item in document.items()
                        if not isinstance(item, Mapping)]
    for name, item in document.items():
        if isinstance(item, Mapping):
            lines += _tables((name,), item)
    return "\n".join(lines) + "\n"


def _tables(path: Path, item: Mapping[str, Any]) -> list[str]:
    """Headers as deep as they can be: a table that holds only tables gets none of its own."""
    if path[-1] == "runtimes" or (item and all(isinstance(inner, Mapping) for inner in item.values())):
        return [line for name, inner in item.items() for line in _tables((*path, name), inner)]
    if len(path) > 1 and path[-2] == "runtimes":
        return ["", *toml_text.table(path, item)]
    own = {name: inner for name, inner in item.items() if not isinstance(inner, Mapping)}
    rest = {name: inner for name, inner in item.items() if isinstance(inner, Mapping)}
    return ["", *toml_text.table(path, own), *(line for name, inner in rest.items()
                                               for line in _tables((*path, name), inner))]


def parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
