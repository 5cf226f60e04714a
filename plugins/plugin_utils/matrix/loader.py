# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the data files and overlays, check them, and make a Matrix of them.

A file is a mapping of section names (see ``schema.SECTIONS``) to lists of rows. The collection's own files name sources
by the short names of ``sources.yml``; overlays may use these or plain text. An overlay row with the key of an existing
row overrules the fields it names; any other row is added.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import document
from .errors import MatrixError
from .matrix import Matrix
from .rows import Row
from .schema import SECTIONS, Path, Problem, Section, build, expand, key_of

DATA = pathlib.Path(__file__).parent / "data"
_META = ("name", "schema_version")


@dataclass(frozen=True)
class _Document:
    """A parsed file or inline overlay. text None: inline, without lines."""

    file: str
    text: str | None
    content: Any
    overlay: str | None = None

    def error(self, message: str, path: Path) -> MatrixError:
        line = document.line_of(self.text, path) if self.text is not None else None
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
        return MatrixError(f"{where}: {message}" if where else message, self.file, line)


@dataclass(frozen=True)
class _Raw:
    """A row before and after its check."""

    values: Mapping[str, Any]
    row: Row


_Table = dict[Path, _Raw]


def _sources(doc: _Document, value: Any, names: Mapping[str, str], path: Path) -> tuple[str, ...]:
    """Resolve the ``source`` of a row; own files must use the names of sources.yml."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(one, str) and one.strip() for one in items):
        raise doc.error("source: at least one source (a text or a list of texts) is wanted", (*path, "source"))
    for one in items:
        if doc.overlay is None and one not in names:
            raise doc.error(f"source {one!r} is not in sources.yml", (*path, "source"))
    return tuple(names.get(one, one) for one in items)


def _make(doc: _Document, section: Section, values: Mapping[str, Any], names: Mapping[str, str], path: Path) -> Row:
    """Check one row and build it."""
    more: dict[str, Any] = {"overlay": doc.overlay}
    if isinstance(values, Mapping) and "source" in values:
        more["source"] = _sources(doc, values["source"], names, path)
    if isinstance(values, Mapping) and "overlay" in values:
        raise doc.error("unknown key 'overlay': it is set by the loader", (*path, "overlay"))
    try:
        made: Row = build(section.row, values, path, **more)
    except Problem as problem:
        raise doc.error(problem.message, problem.path) from None
    return made


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a new row over those of the old one; mappings are merged one level deep."""
    merged = dict(old)
    for name, value in new.items():
        before = merged.get(name)
        merged[name] = {**before, **value} if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return merged


def _add(doc: _Document, tables: dict[str, _Table], names: Mapping[str, str]) -> None:
    """Put the rows of a document into the tables."""
    if doc.content is None:
        return
    if not isinstance(doc.content, Mapping):
        raise doc.error("a mapping of sections is wanted at the top", ())
    for title, listed in doc.content.items():
        if title in _META:
            continue
        section = SECTIONS.get(title)
        if section is None:
            raise doc.error(f"unknown section {title!r}; allowed: {', '.join(sorted(SECTIONS))}", (title,))
        if not isinstance(listed, list):
            raise doc.error("a list of rows is wanted", (title,))
        table = tables[title]
        for index, written in enumerate(listed):
            path = (title, index)
            if not isinstance(written, Mapping):
                raise doc.error("a mapping is wanted", path)
            for values in expand(section, written):
                key = key_of(section, values)
                if key in table:
                    if doc.overlay is None or table[key].row.overlay == doc.overlay:
                        raise doc.error(f"a row with {section.key} = {key} stands twice", path)
                    if lacking := {"source", "checked"} - values.keys():
                        raise doc.error(f"missing: {', '.join(sorted(lacking))}", path)
                    values = _merge(table[key].values, {"confidence": "high", "unconfirmed": False, **values})
                table[key] = _Raw(values, _make(doc, section, values, names, path))


def _file(path: pathlib.Path, overlay: str | None = None) -> _Document:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MatrixError(f"cannot be read: {getattr(error, 'strerror', None) or error}", str(path)) from None
    shown = path.name if overlay is None else str(path)
    doc = _Document(shown, text, document.read(text, shown), overlay)
    if overlay is not None:
        for key, line in document.duplicates(text):
            raise MatrixError(f"key {key!r} stands twice in one mapping", shown, line)
    return doc


@functools.cache
def _base(directory: pathlib.Path = DATA) -> tuple[Mapping[str, _Table], Mapping[str, str], str]:
    """Tables, source names and digest of the collection's own files."""
    digest = hashlib.sha256()
    tables: dict[str, _Table] = {title: {} for title in SECTIONS}
    listed = _file(directory / "sources.yml")
    names = listed.content.get("sources") if isinstance(listed.content, Mapping) else None
    if not isinstance(names, Mapping) or not all(isinstance(text, str) for text in (*names, *names.values())):
        raise listed.error("a mapping 'sources' of short names to texts is wanted", ())
    for path in sorted(directory.glob("*.yml")):
        doc = listed if path.name == "sources.yml" else _file(path)
        digest.update(f"{path.name}\0{doc.text}\0".encode())
        if doc is not listed:
            _add(doc, tables, names)
    return tables, names, digest.hexdigest()


def check(directory: pathlib.Path) -> int:
    """Read data files in another directory; returns the number of rows, raises MatrixError. Nothing is kept."""
    tables, _names, _digest = _base.__wrapped__(directory)
    return sum(len(table) for table in tables.values())


def _overlay(given: str | pathlib.PurePath | Mapping[str, Any], index: int) -> tuple[_Document, str]:
    """An overlay as a document, and what it adds to the digest."""
    if isinstance(given, Mapping):
        name = str(given.get("name") or f"overlay[{index}]")
        doc = _Document(name, None, given, name)
        return doc, json.dumps(given, sort_keys=True, default=_plain)
    if not isinstance(given, (str, pathlib.PurePath)):
        raise MatrixError(
            f"a file name or a mapping of sections is wanted, not {type(given).__name__}", f"overlay[{index}]"
        )
    path = pathlib.Path(given)
    doc = _file(path, str(path))
    named = doc.content.get("name") if isinstance(doc.content, Mapping) else None
    if named:
        doc = _Document(doc.file, doc.text, doc.content, str(named))
    return doc, doc.text or ""


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime.date) else repr(value)


@functools.cache
def _own() -> Matrix:
    tables, _names, digest = _base()
    return Matrix({title: tuple(raw.row for raw in table.values()) for title, table in tables.items()}, digest)


def load(overlays: Sequence[str | Mapping[str, Any]] = ()) -> Matrix:
    """The matrix: the collection's own rows, then each overlay in turn.

    overlays: file names or mappings of sections. Cached per process without overlays. Raises MatrixError with file,
    line and what is wrong.
    """
    if isinstance(overlays, (str, Mapping)):
        overlays = [overlays]
    if not overlays:
        return _own()
    base, names, digest = _base()
    tables = {title: dict(table) for title, table in base.items()}
    summed = hashlib.sha256(digest.encode())
    applied = []
    for index, given in enumerate(overlays):
        doc, text = _overlay(given, index)
        _add(doc, tables, names)
        summed.update(f"\0{doc.overlay}\0{text}".encode())
        applied.append(str(doc.overlay))
    return Matrix(
        {title: tuple(raw.row for raw in table.values()) for title, table in tables.items()},
        summed.hexdigest(),
        tuple(applied),
    )
