# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about NVIDIADriver objects: each node has one, and one alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

from ..model import chart
from ..model.cluster import Cluster, DriverObject
from .context import Context
from .registry import Hit, plan_rule

_OWNER = "nvidia.com/gpu-operator.driver.owner"
_DOCS = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-driver-configuration.html"
_REAL_DEFAULT = (26, 7)  # the default object stands back behind each other one


def _used(context: Context) -> bool:
    decision = context.operator
    return (
        decision is not None
        and decision.driver_owner != "host"
        and bool(chart.flag(decision.values, "driver.nvidiaDriverCRD.enabled"))
        and chart.flag(decision.values, "driver.enabled", True) is True
    )


@lru_cache(maxsize=16)
def _objects(cluster: Cluster, release: tuple[int, ...]) -> list[DriverObject]:
    """Return the objects without the default ones."""
    there = [one for one in cluster.drivers if not one.is_default]
    return there if release >= _REAL_DEFAULT else [one for one in there if one.name != "default"]


@lru_cache(maxsize=16)
def _meeting(cluster: Cluster, release: tuple[int, ...]) -> list[tuple[DriverObject, DriverObject, list[str]]]:
    """Return the pairs of objects that select the same nodes, with these."""
    taken = {one.name: [node.name for node in cluster.nodes if one.takes(node)] for one in _objects(cluster, release)}
    pairs = combinations(_objects(cluster, release), 2)
    found = [(first, second, set(taken[first.name]).intersection(taken[second.name])) for first, second in pairs]
    return [(one, other, [name for name in taken[one.name] if name in both]) for one, other, both in found if both]


@lru_cache(maxsize=16)
def _bare(cluster: Cluster) -> list[str]:
    """Return the nodes that no object selects."""
    return [node.name for node in cluster.nodes
            if node.takes_driver and not any(one.takes(node) for one in cluster.drivers)]


@plan_rule(
    "OPR065", "error", "Two NVIDIADriver objects for one node",
    why="The operator then does nothing at all for either: both stay notReady (ConflictingNodeSelector).",
    remedy="make the selectors disjoint",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/2259", _DOCS],
)
def same_node(context: Context) -> Iterator[Hit]:
    """Fires when the selectors of two objects match one node with GPUs, or name the operator's own label."""
    if not _used(context) or context.cluster is None:
        return
    release = context.operator.release if context.operator is not None else ()
    for first, second, both in _meeting(context.cluster, release):
        empty = [one.name for one in (first, second) if not one.selector]
        all_nodes = f"; {empty[0]} has no selector and takes every node" if empty else ""
        yield Hit(", ".join(both[:5]), f"the NVIDIADriver objects {first.name} and {second.name} both select "
                                       f"{', '.join(both[:5])}{all_nodes}")
    node = context.cluster.node_of(context.name)
    if node is not None and context.operator is not None:    # as its labels will be: they lead it to another object
        node = node.labelled(context.operator.labels)
    for planned in context.operator.drivers if context.operator is not None and node is not None else ():
        for one in _objects(context.cluster, release):
            if node is not None and one.takes(node) and one.name != planned["name"]:
                yield Hit(node.name, f"{planned['name']} ({planned['spec']['version']}) is wanted for {node.name}, "
                                     f"which {one.name} ({one.spec.get('version')}) selects already",
                          f"change {one.name}, or its selector")
    for one in context.cluster.drivers:
        if _OWNER in one.selector:
            yield Hit(one.name, f"the selector of {one.name} uses {_OWNER}, which the operator sets itself",
                      "select by a label of your own")
    defaults = [one.name for one in context.cluster.drivers if one.is_default]
    if len(defaults) > 1:
        yield Hit(", ".join(defaults), f"{' and '.join(defaults)} are both the default NVIDIADriver",
                  "leave default: true on one of them")


@plan_rule(
    "OPR066", "error", "The default NVIDIADriver gets in the way of others",
    why="Before 26.7 the default object has no selector and takes every node, so it conflicts with each other object.",
    remedy="set driver.nvidiaDriverCRD.deployDefaultCR: false and delete the object named default",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/2259", _DOCS],
)
def default_in_the_way(context: Context) -> Iterator[Hit]:
    """Fires before 26.7 when a default object stands beside others, or is to be made beside them."""
    if not _used(context) or context.cluster is None or context.operator is None:
        return
    others = [one.name for one in _objects(context.cluster, context.operator.release)]
    others += [one["name"] for one in context.operator.drivers if one["name"] not in others]
    there = any(one.name == "default" and not one.selector for one in context.cluster.drivers)
    made = chart.flag(context.operator.values, "driver.nvidiaDriverCRD.deployDefaultCR", True)
    if context.operator.release < _REAL_DEFAULT and others and (there or made):
        what = "is there" if there else "would be made"
        yield Hit("default", f"the NVIDIADriver default {what} beside {', '.join(others)}, and takes every node")


@plan_rule(
    "OPR067", "warning", "NVIDIADriver objects that nobody reads, or a node without one",
    why="Objects count only where the chart is told to use them; then a node that none selects gets no driver.",
    remedy="let each GPU node be selected by one object, or leave the objects out",
    sources=[_DOCS],
)
def not_covered(context: Context) -> Iterator[Hit]:
    """Fires for objects while driver.nvidiaDriverCRD.enabled is false, and for a GPU node that no object selects."""
    decision, here = context.operator, context.cluster
    if decision is None or here is None or decision.driver_owner == "host":
        return
    values, wanted = decision.values, chart.flag(decision.values, "driver.enabled", True)
    if wanted and here.drivers and not chart.flag(values, "driver.nvidiaDriverCRD.enabled"):
        names = ", ".join(one.name for one in here.drivers)
        yield Hit(names, f"driver.nvidiaDriverCRD.enabled is false, so the NVIDIADriver objects {names} are ignored")
    if not _used(context) or not here.drivers or decision.drivers:
        return
    if chart.flag(values, "driver.nvidiaDriverCRD.deployDefaultCR", True):
        return
    bare = _bare(here)
    if bare:
        yield Hit(", ".join(bare[:5]), f"no NVIDIADriver object selects {', '.join(bare[:5])}: no driver goes there")
