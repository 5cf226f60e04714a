# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator decision: the chart's release and values, driver objects and node labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Owner = Literal["host", "operator", "none"]


@dataclass(slots=True)
class OperatorDecision:
    """What the GPU Operator of a cluster is to be like, as far as one host tells."""

    version: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    drivers: list[dict[str, Any]] = field(default_factory=list)
    labels: dict[str, str | None] = field(default_factory=dict)    # None takes a label away
    because: list[str] = field(default_factory=list)
    driver_owner: Owner = "none"
    toolkit_owner: Owner = "none"
    sharing: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)    # mode; exporter and groups where its list is ours
    config_maps: dict[str, dict[str, str]] = field(default_factory=dict)
    components: dict[str, str] = field(default_factory=dict)    # of the release: driver, gds, gdrcopy

    @property
    def release(self) -> tuple[int, ...]:
        """Return the release to compare with: ``(26, 7, 0)``, and () if it is not known."""
        digits = (self.version or "").removeprefix("v").split(".")
        return tuple(int(one) for one in digits) if all(one.isdigit() for one in digits) else ()

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        names = ("version", "values", "drivers", "labels", "metrics", "components", "sharing", "config_maps", "because")
        return {name: getattr(self, name) for name in names}
