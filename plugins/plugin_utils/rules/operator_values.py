# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the chart's values: keys that nobody reads, contradictions, environment lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import chart
from . import chart_keys, chart_types
from .context import Context
from .registry import Hit, plan_rule

_NOTES = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/release-notes.html"
_VALIDATIONS = "https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/deployments/gpu-operator/templates/validations.yaml"
# key: (dead since, what counts instead)
_DEAD = {
    "driver.useOpenKernelModules": ((25, 3), "driver.kernelModuleType"),
    "operator.defaultRuntime": ((25, 3), None),
    "cdi.default": ((25, 10), "cdi.enabled"),
    "driver.nvidiaDriverCRD.nodeSelector": ((26, 7), "nodeSelector of the NVIDIADriver objects"),
}


def _asked(context: Context) -> Mapping[str, Any]:
    return context.cluster.asked if context.cluster is not None and context.operator is not None else {}


@plan_rule(
    "OPR010", "error", "A key that the chart does not know",
    why="The chart has no schema: Helm takes a mistyped key without a word, and what it was meant to change stays.",
    remedy="correct the key, or leave it out",
    sources=[chart_keys.SOURCE],
)
def unknown_key(context: Context) -> Iterator[Hit]:
    """Fires for a key that is not in this release's chart; a warning where no known key is near."""
    if context.operator is None:
        return
    for path, near in chart_keys.unknown(_asked(context), context.operator.release):
        if path in _DEAD:
            continue
        meant = f"; {near} is near" if near else ""
        yield Hit(path, f"the chart of {context.operator.version} has no key {path}{meant}",
                  f"write {near}" if near else None, severity=None if near else "warning")


@plan_rule(
    "OPR011", "warning", "A key that this release ignores",
    why="It did something in older releases; today it is read by nobody, and what it says does not hold.",
    remedy="take it out and use the key that counts",
    sources=[_NOTES],
)
def dead_key(context: Context) -> Iterator[Hit]:
    """Fires for a value whose key is dead in this release, and says when another key contradicts it."""
    decision, asked = context.operator, _asked(context)
    for key, (since, instead) in _DEAD.items():
        value = chart.at(asked, key)
        if decision is None or value is chart.ABSENT or value in (None, {}) or decision.release < since:
            continue
        told = f"{key} is ignored since {since[0]}.{since[1]}"
        live = chart.text(asked, "driver.kernelModuleType")
        if key == "driver.useOpenKernelModules":
            meant = "open" if value is True else "proprietary"
            if live in ("open", "proprietary") and live != meant:
                yield Hit(key, f"{told}; it says {meant} modules while driver.kernelModuleType: {live} counts",
                          "take useOpenKernelModules out and say what is meant in driver.kernelModuleType")
                continue
            if value is not True:
                continue
            counts = chart.text(decision.values, "driver.kernelModuleType")
            told += f"; driver.kernelModuleType: {counts} is set instead"
        yield Hit(key, told, f"use {instead}" if instead else "take it out")


@plan_rule(
    "OPR012", "error", "An environment variable that is no text",
    why="The ClusterPolicy takes texts there; a list, a mapping or an entry without a name is refused or dropped.",
    remedy="write name and value, the value as text",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/207"],
)
def bad_environment(context: Context) -> Iterator[Hit]:
    """Fires for an env list whose entries have no name, or a list or mapping as value."""
    for path, listed in chart.paths(_asked(context)):
        if not path.endswith(".env") or path.startswith(("node-feature-discovery", "extraObjects")):
            continue
        if not isinstance(listed, (list, tuple)):
            if listed is not None:
                yield Hit(path, f"{path} has to be a list of name and value")
            continue
        for index, entry in enumerate(listed):
            named = isinstance(entry, Mapping) and isinstance(entry.get("name"), str)
            if not named:
                yield Hit(f"{path}[{index}]", f"{path}[{index}] has no name")
            elif isinstance(entry.get("value"), (list, tuple, Mapping)):
                yield Hit(f"{path}[{index}].value", f"{path}[{index}].value ({entry['name']}) is no text")


@plan_rule(
    "OPR014", "error", "A value of another type than the chart takes",
    why="Helm's templates take a text as true, \"false\" too, and the API server refuses the rest in the middle of the "
        "installation.",
    remedy="write the value as its type",
    sources=[chart_keys.SOURCE],
)
def wrong_type(context: Context) -> Iterator[Hit]:
    """Fires for a text where the chart takes a boolean or number, and the reverse, and for a word it does not know."""
    if context.operator is None:
        return
    for path, value, taken in chart_types.wrong(_asked(context), context.operator.release):
        if path != "mig.strategy":    # rule OPR041
            yield Hit(path, f"{path} is {value!r}; the chart of {context.operator.version} takes {taken}",
                      f"write {taken}")


@plan_rule(
    "OPR013", "error", "Values that the chart refuses together",
    why="The chart's own templates end with an error, in the middle of the upgrade.",
    remedy="settle the contradiction",
    sources=[_VALIDATIONS],
)
def refused_together(context: Context) -> Iterator[Hit]:
    """Fires for the combinations that the chart's validations refuse."""
    if context.operator is None:
        return
    values, since = context.operator.values, context.operator.release

    def on(path: str, default: bool = False) -> bool:
        return bool(chart.flag(values, path, default))

    if on("cdi.nriPluginEnabled") and not on("cdi.enabled", since >= (25, 10)):
        yield Hit("cdi.nriPluginEnabled", "cdi.nriPluginEnabled needs cdi.enabled: true")
    if on("cdi.nriPluginEnabled") and not on("toolkit.enabled", True):
        yield Hit("cdi.nriPluginEnabled", "cdi.nriPluginEnabled needs toolkit.enabled: true")
    if on("gpuCluster.deployCR") and on("clusterPolicy.deployCR", True):
        yield Hit("gpuCluster.deployCR", "gpuCluster.deployCR and clusterPolicy.deployCR exclude each other")
    if on("gpuCluster.deployCR") and on("driver.enabled", True) and not on("driver.nvidiaDriverCRD.enabled"):
        yield Hit("gpuCluster.deployCR", "gpuCluster.deployCR with driver.enabled needs driver.nvidiaDriverCRD.enabled")
