# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proof, before anything is applied, that each node with GPUs is served by one NVIDIADriver object and one alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...model import chart
from ...model.cluster import Cluster, DriverObject, Node
from ...model.version import try_loose
from .objects import DEFAULT_SINCE


def problems(here: Cluster, wanted: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the objects and labels as they will be; [] where no objects are used.

    ``wanted`` is what :func:`~..fleet.together` returned, with ``nodes`` (labels to change by node) and ``unused``
    (objects that go).
    """
    values = wanted["values"]
    by_objects = chart.flag(values, "driver.nvidiaDriverCRD.enabled")
    if not by_objects or chart.flag(values, "driver.enabled", True) is False:
        return []
    after = [node.labelled(wanted["nodes"].get(node.name) or {}) for node in here.nodes]
    return list(_problems([node for node in after if node.takes_driver], *_objects(here, wanted)))


def _objects(here: Cluster, wanted: Mapping[str, Any]) -> tuple[list[DriverObject], list[DriverObject]]:
    """Return the objects as they will be, and which of them stand back behind all others."""
    there = {one.name: one for one in here.drivers if one.name not in (wanted.get("unused") or ())}
    for one in wanted["drivers"]:
        there[one["name"]] = DriverObject(one["name"], one["spec"])
    made = chart.flag(wanted["values"], "driver.nvidiaDriverCRD.deployDefaultCR", True)
    stands_back = (try_loose(wanted["version"]) or ()) >= DEFAULT_SINCE
    if made:
        there["default"] = DriverObject("default", {"default": True} if stands_back else {})
    elif "default" in there and "default" not in [one["name"] for one in wanted["drivers"]]:
        del there["default"]    # the chart's own, which goes with deployDefaultCR: false
    defaults = [one for one in there.values() if stands_back and one.is_default]
    return [one for one in there.values() if one not in defaults], defaults


def _problems(nodes: list[Node], objects: list[DriverObject], defaults: list[DriverObject]) -> Iterator[str]:
    if len(defaults) > 1:
        yield f"{' and '.join(sorted(one.name for one in defaults))} are both the default NVIDIADriver"
    bare: list[str] = []
    shared: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        serving = tuple(sorted(one.name for one in objects if one.takes(node)))
        if len(serving) > 1:
            shared.setdefault(serving, []).append(node.name)
        elif not serving and not defaults:
            bare.append(node.name)
    for serving, names in sorted(shared.items()):
        empty = [one.name for one in objects if one.name in serving and not one.selector]
        why = f" ({empty[0]} has no selector and takes every node)" if empty else ""
        told = ", ".join(names[:5])
        yield f"{told} would be selected by {' and '.join(serving)}{why}: the operator serves neither then"
    if bare:
        yield (f"{', '.join(bare[:5])} would be selected by no NVIDIADriver object, and get no driver: plan these "
               "nodes too, label them nvidia.com/gpu.deploy.driver=false, or set deployDefaultCR: true (from v26.7.0)")
