# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back: what was set on a host is taken out again, and what was there before comes back.

The state of the host records, file by file, what was set and what stood there (``record``). A setting that somebody
changed since is left. Where the record is lost, the runtime, its drop-in and a default runtime that names it go.
"""
from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import toml_text
from .diff import ABSENT, leaves, same
from .edits import MARKER, FileEdit, outcome, parsed
from .generation import CRI_V1, CRI_V2, HANDLER, RUNTIME_V3
from .merge import Loaded, glob_regex, resolve_import, table_at
from .toml_text import Path

_FRAME = (("version",), ("imports",))
_PLUGINS = (CRI_V1, CRI_V2, RUNTIME_V3)
Record = Mapping[str, Mapping[str, Any]]


def note(edit: FileEdit, text: str | None) -> dict[str, Any]:
    """What the state of the host keeps of an edit, so that it can be taken back."""
    before = parsed(text) if text is not None else None
    sets = list(edit.sets)
    if edit.document is not None:
        before = None if text is None or MARKER in text else before
        sets = [(path, value) for path, value in leaves(edit.document) if path[:1] not in _FRAME and path]
    headers = toml_text.headers(text) if before is not None and text is not None else set()
    kept = []
    for path, value in sets:
        old = _at(before, path)
        kept.append({"path": list(path), "before": None if old is ABSENT else old, "there": old is not ABSENT,
                     "after": value, "header": text is not None and tuple(path[:-1]) in headers})
    return {
        "sets": kept,
        "imports": [edit.imports] if edit.imports else list((edit.document or {}).get("imports", [])),
        "imports_there": isinstance((before or {}).get("imports"), list),
        "version": edit.version is not None,
    }


def edits(files: Mapping[str, str], loaded: Loaded, main: str, drop_in: str, record: Record | None,
          runtime_path: str) -> tuple[FileEdit, ...]:
    """The edits that take everything of ours out; the main file first, so that no import is ever missing."""
    known = record or {}
    names = dict.fromkeys([*loaded.order, *(path for path in (*known, drop_in) if path in files)])
    made: list[FileEdit] = []
    for path in names:
        document = loaded.documents.get(path) or parsed(files.get(path, "")) or {}
        edit = _one(path, files.get(path, ""), document, known.get(path) or {}, runtime_path)
        if edit is not None:
            made.append(edit)
    gone = {edit.path for edit in made if edit.delete}
    return tuple(_without_imports(made, files, loaded, main, known, gone))


def _one(path: str, text: str, document: Mapping[str, Any], mine: Mapping[str, Any],
         runtime_path: str) -> FileEdit | None:
    marked = text.startswith(MARKER)
    removes: list[Path] = []
    sets: list[tuple[Path, Any]] = []
    for plugin in _PLUGINS:
        base: Path = ("plugins", plugin, "containerd")
        handler = table_at(document, (*base, "runtimes")).get(HANDLER)
        ours = marked or bool(mine) or table_at(handler, ("options",)).get("BinaryName") == runtime_path
        if handler is None or not ours:
            continue
        removes.append((*base, "runtimes", HANDLER))
        recorded = any(tuple(entry["path"]) == (*base, "default_runtime_name") for entry in mine.get("sets", ()))
        if table_at(document, base).get("default_runtime_name") == HANDLER and not recorded:
            removes.append((*base, "default_runtime_name"))
    for entry in mine.get("sets", ()):
        where = tuple(entry["path"])
        there = _at(document, where)
        if there is ABSENT or any(where[: len(one)] == one for one in removes) or not _as_set(there, entry["after"]):
            continue
        if entry["there"]:
            sets.append((where, entry["before"]))
        else:
            removes.append(where)
    drop_version = bool(mine.get("version")) and "version" in document
    if not removes and not sets and not marked and not drop_version:
        return None
    made = [tuple(entry["path"]) for entry in mine.get("sets", ())]
    removes.sort(key=lambda one: -made.index(one) if one in made else -len(made))  # the last that came goes first
    headers = tuple(tuple(entry["path"][:-1]) for entry in mine.get("sets", ()) if entry.get("header") is False)
    edit = FileEdit(path, sets=tuple(sets), removes=tuple(removes), drop_version=drop_version, own_headers=headers)
    rest = outcome(edit, text)
    if marked and not _says(rest) and not rest.get("imports"):
        return FileEdit(path, delete=True)
    if drop_version and any(rest.get(name) for name in ("plugins", "disabled_plugins", "required_plugins")):
        edit = replace(edit, drop_version=False)  # somebody's settings rest on that version now
    return edit if edit.removes or edit.sets or edit.drop_version else None


def _as_set(there: Any, after: Any) -> bool:
    """Whether a setting is still as it was set. A table that we added may have grown: then it stays."""
    return same(there, after) if not isinstance(after, Mapping) else same(there, dict(after))


def _says(document: Mapping[str, Any]) -> bool:
    """Whether a document says anything beside its version and imports."""
    return any(path and path[0] not in ("version", "imports") and item != {} for path, item in leaves(document))


def _without_imports(made: list[FileEdit], files: Mapping[str, str], loaded: Loaded, main: str, record: Record,
                     gone: set[str]) -> list[FileEdit]:
    """Entries of ``imports`` that were ours, unless they reach another file, and such that would name a missing one."""
    by_path = {edit.path: edit for edit in made}
    for path in loaded.order:
        entries = loaded.documents[path].get("imports")
        drop = []
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, str):
                continue
            goal = resolve_import(path, entry)
            added = entry in (record.get(path) or {}).get("imports", ())
            literal = "*" not in goal
            reach = {goal} & set(files) if literal else {one for one in files if glob_regex(goal).match(one)}
            if (literal and goal in gone) or (added and not reach - gone):
                drop.append(entry)
        if not drop:
            continue
        edit = by_path.get(path) or FileEdit(path)
        if edit.delete:
            continue
        stays = bool((record.get(path) or {}).get("imports_there"))
        by_path[path] = replace(edit, drop_imports=tuple(drop), keep_imports=stays)
    # a file that was created only to hold the import
    for path in list(by_path):
        edit = by_path[path]
        if not edit.delete and files.get(path, "").startswith(MARKER):
            rest = outcome(edit, files.get(path))
            if not _says(rest) and not rest.get("imports"):
                by_path[path] = FileEdit(path, delete=True)
    return sorted(by_path.values(), key=lambda edit: (edit.path != main, edit.delete, posixpath.basename(edit.path)))


def _at(document: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(document, Mapping) or name not in document:
            return ABSENT
        document = document[name]
    return document
