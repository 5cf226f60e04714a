# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a person's own rows of the matrix had a say in a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model.facts import each
from ..rules import kernels
from ..rules.context import Context


def used(context: Context) -> list[dict[str, str]]:
    """Return the overlay rows that the decisions rest on: name of the overlay, and what the row is about."""
    rows = [(row, what) for row, what in _rows(context) if getattr(row, "overlay", None)]
    found = [{"overlay": str(row.overlay), "row": what} for row, what in rows]
    return [one for index, one in enumerate(found) if one not in found[:index]]


def _rows(context: Context) -> Iterator[tuple[Any, str]]:
    for card in each(context.cards):
        yield card.product, f"product {card.label}"
        yield card.architecture, f"architecture of {card.label}"
    for candidate in (context.asked, context.candidate):
        if candidate is None:
            continue
        yield context.matrix.branch(candidate.branch), f"branch {candidate.branch}"
        if candidate.version is not None:
            yield context.matrix.version(candidate.version), f"version {candidate.version}"
        yield candidate.series, f"packages of R{candidate.branch} from {candidate.source}"
        fit = kernels.fit(context, candidate, context.boot)
        for row in fit.rows if fit is not None else ():
            yield row, f"{candidate.version} on {context.boot}"
    for name, version in context.wishes.frameworks.items():
        yield context.matrix.framework(name, version), f"{name} {version}"
