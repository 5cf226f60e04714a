# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a run does not plan (a host that did not answer, a run for some hosts alone): they keep what they have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...model import chart
from ...model.cluster import DRIVER_LABEL, TOOLKIT_LABEL, Cluster, Node

_PARTS = (("driver", DRIVER_LABEL), ("toolkit", TOOLKIT_LABEL))
_TOO = "plan these nodes too (gpu_facts_file takes stored facts for hosts that do not answer)"


def problems(here: Cluster, wanted: Mapping[str, Any], planned: Collection[str]) -> list[str]:
    """Return what the changes would do to nodes with GPUs that are not among the names of ``planned``."""
    others = [node for node in here.gpu_nodes if node.name not in planned]
    if here.installed is None or not others:
        return []
    return [*_switched_off(here, wanted["values"], others), *_exchanged(here, wanted["drivers"], others)]


def _switched_off(here: Cluster, values: Mapping[str, Any], others: list[Node]) -> Iterator[str]:
    """A switch of the chart that nobody set follows from the hosts that are planned, and holds for all."""
    for part, label in _PARTS:
        path = f"{part}.enabled"
        before, after = (chart.flag(one, path, True) for one in (here.installed_values, values))
        if not before or after or chart.flag(here.values, path) is False:
            continue
        served = [node.name for node in others if node.labels.get(label) not in ("false", "pre-installed")]
        if served:
            yield (f"{path} would become false, and {', '.join(served[:5])}, which this run does not plan, would lose "
                   f"the operator's {part}: {_TOO}, or set {path}: false in gpu_operator_values")


def _exchanged(here: Cluster, drivers: list[dict[str, Any]], others: list[Node]) -> Iterator[str]:
    """An object is changed for the nodes that are planned, and serves others as well."""
    there = {one.name: one for one in here.drivers}
    for one in drivers:
        before = there.get(one["name"])
        if before is None or _image(before.spec) == _image(one["spec"]):
            continue
        served = [node.name for node in others if before.takes(node)]
        if served:
            yield (f"NVIDIADriver {before.name} would go from {before.spec.get('version')} to "
                   f"{one['spec'].get('version')}, and {', '.join(served[:5])}, which this run does not plan, have "
                   f"their driver from it: {_TOO}")


def _image(spec: Mapping[str, Any]) -> tuple[str, bool]:
    return str(spec.get("version")), spec.get("usePrecompiled") is True
