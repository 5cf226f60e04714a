# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container runtimes, their vulnerabilities, Kubernetes and operator releases, indexed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..model.version import loose, try_loose
from . import rows


def _line(version: str) -> str:
    return ".".join(version.removeprefix("v").split(".")[:2])


@dataclass(frozen=True, slots=True)
class _Known:
    """A vulnerability with its versions taken apart."""

    row: rows.Cve
    since: tuple[int, ...]
    fixes: Mapping[str, tuple[int, ...]]  # by line
    newest: tuple[int, ...]

    @staticmethod
    def of(row: rows.Cve) -> _Known:
        fixes = {_line(one): loose(one) for one in row.fixed or ()}
        return _Known(row, loose(row.affected_from) if row.affected_from else (), fixes, max(fixes.values()))

    def open_in(self, have: tuple[int, ...], line: str) -> bool:
        """True if a version has it. A line without a fix of its own, older than the newest fix, got none."""
        return self.since <= have < self.fixes.get(line, self.newest)


class Runtimes:
    """What runs containers, by component and version."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self.toolkits: tuple[rows.ToolkitRelease, ...] = tuple(
            sorted(tables["toolkit_releases"], key=lambda row: loose(row.version), reverse=True)
        )
        self.containerd: dict[str, rows.ContainerdLine] = {
            row.release: row for row in sorted(tables["containerd_lines"], key=lambda row: loose(row.release))
        }
        self.kubernetes: dict[str, rows.KubernetesRelease] = {
            row.version: row
            for row in sorted(tables["kubernetes_releases"], key=lambda row: loose(row.version), reverse=True)
        }
        self.operators: dict[str, rows.OperatorRelease] = {
            row.version: row
            for row in sorted(tables["operator_releases"], key=lambda row: loose(row.version), reverse=True)
        }
        self.packages: tuple[rows.DistroPackage, ...] = tables["distro_packages"]
        self.cves: dict[str, list[rows.Cve]] = {}
        self._deciding: dict[str, list[_Known]] = {}
        for row in tables["cves"]:
            self.cves.setdefault(row.component, []).append(row)
            if row.fixed and row.decides:
                self._deciding.setdefault(row.component, []).append(_Known.of(row))
        self._floors: dict[tuple[str, str | None], str | None] = {}
        for component, known in self._deciding.items():
            lines = {_line(one) for entry in known for one in entry.row.fixed or ()}
            for line in (None, *sorted(lines)):
                self._floors[component, line] = self._floor(component, line)
        needed = [
            row.operator_fixed for found in self.cves.values() for row in found if row.operator_fixed and row.decides
        ]
        self.operator_floor: str | None = max(needed, key=loose, default=None)

    def containerd_line(self, version: str) -> rows.ContainerdLine | None:
        """``1.7.24~ds1-6`` → the row of 1.7."""
        return self.containerd.get(_line(version.split("~")[0].split("+")[0].split("-")[0]))

    def open_cves(self, component: str, version: str) -> tuple[rows.Cve, ...]:
        """Vulnerabilities that a version still has; those whose fixed versions nobody knows are left out."""
        have = try_loose(version)
        if have is None:
            return ()
        line = _line(version)
        return tuple(entry.row for entry in self._deciding.get(component, ()) if entry.open_in(have, line))

    def floor(self, component: str, line: str | None = None) -> str | None:
        """Oldest release (of a line) with every fix; None where the line got no fix for some vulnerability."""
        return self._floors.get((component, _line(line) if line else None))

    def _floor(self, component: str, line: str | None) -> str | None:
        fixes = {one for entry in self._deciding[component] for one in entry.row.fixed or ()}
        candidates = sorted((one for one in fixes if line is None or _line(one) == line), key=loose)
        return next((one for one in candidates if not self.open_cves(component, one)), None)
