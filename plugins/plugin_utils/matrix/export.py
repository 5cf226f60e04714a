# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows as plain data: for lookups, reports and JSON."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from .matrix import Matrix
from .ranges import Range
from .row import Row
from .schema import SECTIONS


class UnknownSection(KeyError):
    """A section that there is none of; the message names those there are."""

    def __str__(self) -> str:
        return str(self.args[0])


def plain(value: Any) -> Any:
    """A row (or a value of one) as dicts, lists and scalars: dates as ISO text, ranges as they were written."""
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Range)):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Range):
        return value.text
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _found(matrix: Matrix, section: str) -> Iterable[Row]:
    """The rows of a section, filled in where a question of the matrix fills them in."""
    if section == "branches":
        return matrix.branches()
    if section == "products":
        listed: tuple[Any, ...] = matrix.tables[section]
        return tuple(matrix.product(row.id, (row.subsystems or (None,))[0]) or row for row in listed)
    if section == "series":
        return matrix.systems.series
    return matrix.tables[section]


def rows(matrix: Matrix, term: str) -> list[dict[str, Any]]:
    """Rows by section, or one by ``section/key``: ``branches``, ``branches/580``, ``products/10de:1eb8``.

    The key is the first field that tells rows of the section apart (see ``docs/matrix.md``). A product by its PCI id is
    found even if only its chip is known. Raises UnknownSection.
    """
    section, slash, key = term.partition("/")
    if section not in SECTIONS:
        raise UnknownSection(f"unknown section {section!r}; allowed: {', '.join(sorted(SECTIONS))}")
    if not slash:
        return [plain(row) for row in _found(matrix, section)]
    if section == "products":
        device, _slash, subsystem = key.partition("/")
        product = matrix.product(device, subsystem or None)
        return [plain(product)] if product else []
    name = SECTIONS[section].key[0]
    return [made for row in _found(matrix, section) if str((made := plain(row))[name]) == key]
