# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container runtimes, their vulnerabilities, Kubernetes and operator releases, indexed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.version import loose, try_loose
from . import rows


def _line(version: str) -> str:
    return ".".join(version.removeprefix("v").split(".")[:2])


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
        for row in tables["cves"]:
            self.cves.setdefault(row.component, []).append(row)

    def containerd_line(self, version: str) -> rows.ContainerdLine | None:
        """``1.7.24~ds1-6`` → the row of 1.7."""
        return self.containerd.get(_line(version.split("~")[0].split("+")[0].split("-")[0]))

    def _fix_for(self, row: rows.Cve, line: str) -> str | None:
        """The fix of a line, None where the line got none (or is not affected)."""
        return next((one for one in row.fixed or () if _line(one) == line), None)

    def open_cves(self, component: str, version: str) -> tuple[rows.Cve, ...]:
        """Vulnerabilities that a version still has; those whose fixed versions nobody knows are left out."""
        have = try_loose(version)
        return (
            ()
            if have is None
            else tuple(
                row
                for row in self.cves.get(component, ())
                if row.fixed and row.decides and self._open(row, have, version)
            )
        )

    def _open(self, row: rows.Cve, have: tuple[int, ...], version: str) -> bool:
        if row.affected_from and have < loose(row.affected_from):
            return False
        if own := self._fix_for(row, _line(version)):
            return have < loose(own)
        fixes = [loose(one) for one in row.fixed or ()]
        return (have < max(fixes) and not any(have >= fix and have[:2] > fix[:2] for fix in fixes)) or have < min(fixes)

    def floor(self, component: str, line: str | None = None) -> str | None:
        """Oldest release (of a line) with every fix; None where the line got no fix for some vulnerability."""
        fixes = [row.fixed for row in self.cves.get(component, ()) if row.fixed and row.decides]
        if not fixes:
            return None
        candidates = sorted(
            {one for fixed in fixes for one in fixed if line is None or _line(one) == _line(line)}, key=loose
        )
        for one in candidates:
            if not self.open_cves(component, one):
                return one
        return None

    def operator_floor(self) -> str | None:
        """Oldest operator release that carries the fix of every vulnerability of what it ships."""
        needed = [
            row.operator_fixed for found in self.cves.values() for row in found if row.operator_fixed and row.decides
        ]
        return max(needed, key=loose, default=None)
