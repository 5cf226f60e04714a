# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as a table a person can read, in 80 columns or more; colours only if the caller brings a painter."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import describe, fleet
from .hostnames import fold

Painter = Callable[[str, str], str]
HEADER = ("HOST", "GPU", "SYSTEM", "KERNEL", "DRIVER", "PLAN")
NARROWEST = 80
_GAP = 2
_SMALLEST_CELL = 8
_MARK = {"error": "error", "warning": "warn", "info": "info"}
_LABEL = 9


def no_paint(text: str, _style: str) -> str:
    """Leave a text as it is: for files, pipes and job logs."""
    return text


def render(
    plans: Mapping[str, Mapping[str, Any]],
    unread: Iterable[str] = (),
    width: int = 120,
    paint: Painter = no_paint,
) -> str:
    """Return the table of all plans, hosts of the same shape in one row, each row followed by what it means."""
    width = max(NARROWEST, width)
    found = fleet.shapes(plans)
    rows = [_cells(shape) for shape in found]
    lost = sorted(set(unread))
    if lost:
        rows.append((_hosts(lost), "", "", "", "", "not read"))
    widths = _widths([HEADER, *rows], width)
    lines = [paint(line, "head") for line in _row(HEADER, widths)]
    for cells, shape in zip(rows, found):
        lines += [paint(line, str(shape.plan["verdict"])) for line in _row(cells, widths)]
        lines += _details(shape.plan, width, paint)
    if lost:
        lines += [paint(line, "unread") for line in _row(rows[-1], widths)]
    lines += ["", *_total(plans, lost, width, paint)]
    return "\n".join(line.rstrip() for line in lines)


def _cells(shape: fleet.Shape) -> tuple[str, ...]:
    subject = shape.plan.get("subject") or {}
    return (
        _hosts(shape.hosts),
        subject.get("gpus") or "unknown",
        subject.get("os") or "unknown",
        subject.get("kernel") or "unknown",
        describe.driver_movement(shape.plan),
        _verdict(shape.plan),
    )


def _hosts(hosts: Sequence[str]) -> str:
    return fold(hosts) + (f" ({len(hosts)})" if len(hosts) > 1 else "")


def _verdict(plan: Mapping[str, Any]) -> str:
    parts = [str(plan["verdict"])]
    if plan.get("changes") and plan["verdict"] != "blocked":
        parts.append(f"{len(plan['changes'])} to change")
    if plan.get("pending"):
        parts.append(f"{len(plan['pending'])} pending")
    return ", ".join(parts)


def _details(plan: Mapping[str, Any], width: int, paint: Painter) -> list[str]:
    lines: list[str] = []
    for finding in describe.open_findings(plan):
        severity = str(finding.get("severity"))
        lines += _item(_MARK.get(severity, severity), describe.finding_line(finding), width, paint, severity)
    waived = [item for item in plan.get("findings") or () if item.get("waived")]
    for finding in waived:
        lines += _item("waived", describe.finding_line(finding), width, paint, "info")
    cuda = describe.cuda_line(plan)
    if cuda is not None:
        lines += _item("cuda", cuda, width, paint, "info")
    for line in describe.change_lines(plan.get("changes") or ()):
        lines += _item("change", line, width, paint, "change")
    for line in describe.change_lines(plan.get("pending") or ()):
        lines += _item("pending", line, width, paint, "pending")
    return lines


def _item(label: str, text: str, width: int, paint: Painter, style: str) -> list[str]:
    """Return one wrapped detail: a painted label, the text hanging behind it."""
    indent = " " * (2 + _LABEL)
    body = textwrap.wrap(text, width - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    first = "  " + paint(f"{label:<{_LABEL}}", style) + body[0]
    return [first, *(indent + line for line in body[1:])]


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the columns' widths: the widest ones give way until the row fits."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    room = width - _GAP * (len(HEADER) - 1)
    while sum(widths) > room and max(widths) > _SMALLEST_CELL:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    wrapped = [textwrap.wrap(cell, size, break_on_hyphens=False) or [""] for cell, size in zip(cells, widths)]
    height = max(len(lines) for lines in wrapped)
    gap = " " * _GAP
    return [
        gap.join(
            (lines[index] if index < len(lines) else "").ljust(size) for lines, size in zip(wrapped, widths)
        ).rstrip()
        for index in range(height)
    ]


def _total(plans: Mapping[str, Mapping[str, Any]], lost: Sequence[str], width: int, paint: Painter) -> list[str]:
    counted = fleet.summary(plans, lost)
    parts = [paint(f"{counted['verdicts'][name]} {name}", name) for name in ("ok", "change", "blocked")]
    if lost:
        parts.append(paint(f"{len(lost)} not read", "unread"))
    lines = [f"{counted['hosts']} host(s): " + ", ".join(parts)]
    if counted["pending"]:
        needs = f", allowed by {', '.join(counted['needs'])}" if counted["needs"] else ""
        lines += textwrap.wrap(f"{counted['pending']} pending change(s){needs}", width, break_long_words=False)
    return lines
