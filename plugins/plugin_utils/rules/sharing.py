# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about time-slicing and MPS: the device plugin's configuration and what it needs around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import chart
from ..model.facts import each
from ..model.version import try_loose
from . import plugin_config
from .context import Context
from .registry import Hit, plan_rule
from .sharing_groups import CONFIG_LABEL, GROUP_LABEL

_CONFIG = "devicePlugin.config"
_NODE_LABEL = CONFIG_LABEL
_LAYOUT = "nvidia.com/mig.config"
_PLUGIN = "https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md"
_SHARING = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html"


def _values(context: Context) -> Mapping[str, Any]:
    return context.operator.values if context.operator is not None else {}


def _data(context: Context) -> Mapping[str, Any] | None:
    """Return the configurations by key, None if nobody can tell."""
    values = _values(context)
    planned = context.operator.config_maps if context.operator is not None else {}
    if chart.text(values, f"{_CONFIG}.name") in planned:
        return planned[str(chart.text(values, f"{_CONFIG}.name"))]
    if chart.flag(values, f"{_CONFIG}.create"):
        data = chart.at(values, f"{_CONFIG}.data")
        return data if isinstance(data, Mapping) else {}
    name = chart.text(values, f"{_CONFIG}.name")
    return context.cluster.config_maps.get(name) if context.cluster is not None and name is not None else None


def _key(context: Context) -> str | None:
    """Return the key of the configuration that the host's node gets; None if nobody can tell, "" where it gets none."""
    told = context.operator.sharing.get("labels") if context.operator is not None else None
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    if node is None:
        return None
    label = told[_NODE_LABEL] if told and _NODE_LABEL in told else node.labels.get(_NODE_LABEL)
    return label or chart.text(_values(context), f"{_CONFIG}.default") or ""


def _configs(context: Context) -> Iterator[tuple[str, Any]]:
    """Yield key and parsed configuration of each text that can be read and is for the host's node."""
    data, mine = _data(context) or {}, _key(context)
    if mine == "":
        mine = "default" if "default" in data else min(data) if len(data) == 1 else ""
    for key, text in data.items():
        if mine is not None and key != mine:
            continue
        config = plugin_config.parse(text) if isinstance(text, str) else None
        if config is not None and isinstance(config.tree, Mapping):
            yield str(key), config.tree


def wants_mps(context: Context) -> bool:
    """Say whether one of the configurations shares GPUs by MPS."""
    return any(True for _found in _mps(context))


def _mps(context: Context) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, tree in _configs(context):
        mps = chart.at(tree, "sharing.mps")
        if isinstance(mps, Mapping):
            yield key, mps


@plan_rule(
    "OPR030", "error", "The device plugin's configuration is not found",
    why="Name, data and default belong together; with one of them wrong the plugin waits for ever, or runs without "
        "sharing.",
    remedy="give the ConfigMap's name in devicePlugin.config.name, and one of its keys in devicePlugin.config.default",
    sources=["https://github.com/NVIDIA/k8s-device-plugin/issues/990", _SHARING],
)
def not_found(context: Context) -> Iterator[Hit]:
    """Fires when default or a node label is no key of the configuration, or name or data are missing."""
    values, data = _values(context), _data(context)
    name, default = chart.text(values, f"{_CONFIG}.name"), chart.text(values, f"{_CONFIG}.default")
    create = chart.flag(values, f"{_CONFIG}.create")
    if default is not None and name is None:
        yield Hit(f"{_CONFIG}.name",
                  f"{_CONFIG}.default is {default}, but {_CONFIG}.name is empty: no ConfigMap is read",
                  f"put the ConfigMap's name into {_CONFIG}.name; the default is a key in it")
    if create and (name is None or not data):
        yield Hit(_CONFIG, f"{_CONFIG}.create needs {_CONFIG}.name and {_CONFIG}.data")
    if not create and chart.at(values, f"{_CONFIG}.data") not in (chart.ABSENT, None, {}):
        yield Hit(f"{_CONFIG}.data", f"{_CONFIG}.data is given, but {_CONFIG}.create is not true: it goes nowhere",
                  f"set {_CONFIG}.create: true", severity="warning")
    if not data or name is None:
        return
    keys = ", ".join(sorted(map(str, data)))
    if default is not None and default not in data:
        yield Hit(f"{_CONFIG}.default", f"{_CONFIG}.default is {default}, which is no key of {name}; there are {keys}",
                  f"set {_CONFIG}.default to one of {keys}")
    for node in context.cluster.gpu_nodes if context.cluster is not None else ():
        label = node.labels.get(_NODE_LABEL)
        if label and label not in data and GROUP_LABEL not in node.labels:
            yield Hit(f"{node.name} {_NODE_LABEL}", f"{node.name} asks for the configuration {label}, which is no key "
                                                    f"of {name}; there are {keys}",
                      f"label {node.name} {_NODE_LABEL} with one of {keys}")


@plan_rule(
    "OPR031", "error", "The device plugin refuses its configuration",
    why="It is strict about keys and numbers: a wrong one stops the plugin, and the node offers no GPUs.",
    remedy="correct the text of this key",
    sources=[_PLUGIN, "https://github.com/NVIDIA/k8s-device-plugin/issues/1433"],
)
def refused(context: Context) -> Iterator[Hit]:
    """Fires for a text that is no configuration, an unknown or misplaced key, and replicas below 2."""
    for key, text in (_data(context) or {}).items():
        where = f"{_CONFIG}.data.{key}"
        if not isinstance(text, str):
            yield Hit(where, f"{where} has to be a text; write it with |")
            continue
        for problem in plugin_config.problems(plugin_config.parse(text)):
            yield Hit(where, f"{where}: {problem.summary}", problem.remedy, severity=problem.severity)


@plan_rule(
    "OPR032", "error", "MPS lacks something that it needs",
    why="Without root directory, control daemon or whole GPUs the pods that ask for shared GPUs never start.",
    remedy="give MPS what it needs, or use time-slicing",
    sources=[_PLUGIN, _SHARING],
)
def mps_lacks(context: Context) -> Iterator[Hit]:
    """Fires when MPS is asked for with an empty root, without feature discovery, or on MIG devices."""
    keys = [key for key, _mps_config in _mps(context)]
    if not keys:
        return
    values, about = _values(context), f"MPS ({', '.join(keys)})"
    root = chart.at(values, "devicePlugin.mps.root")
    if root is not chart.ABSENT and not (isinstance(root, str) and root.startswith("/")):
        yield Hit("devicePlugin.mps.root", f"{about} needs devicePlugin.mps.root, and it is {root!r}",
                  "set devicePlugin.mps.root: /run/nvidia/mps, or leave it out")
    nodes = context.cluster.gpu_nodes if context.cluster is not None else ()
    if chart.flag(values, "gfd.enabled") is False and not any(
        node.labels.get("nvidia.com/mps.capable") == "true" for node in nodes
    ):
        yield Hit("gfd.enabled", f"{about} runs where feature discovery puts nvidia.com/mps.capable, and gfd.enabled "
                                 "is false: the control daemon goes nowhere", "set gfd.enabled: true",
                  severity="warning")
    strategy = chart.text(values, "mig.strategy")
    if strategy == "mixed" and not context.wishes.sharing:
        yield Hit("mig.strategy", f"{about} works on whole GPUs alone: under mig.strategy mixed the device plugin "
                                  "ends with an error", "set mig.strategy: none")
    here = context.cluster.node_of(context.name) if context.cluster is not None else None
    layout = here.labels.get(_LAYOUT, "all-disabled") if here is not None else "all-disabled"
    planned = (context.operator.sharing.get("labels") or {}) if context.operator is not None else {}
    layout = planned.get(_LAYOUT, layout)
    partitioned = any(card.gpu.mig is True for card in each(context.cards)) and _LAYOUT not in planned
    if partitioned or layout not in ("all-disabled", ""):
        what = f"{here.name} has the MIG layout {layout}" if here is not None and layout != "all-disabled" else (
            f"{context.name} has GPUs in MIG mode")
        yield Hit("sharing.mps", f"{about} works on whole GPUs alone, and {what}",
                  "switch MIG off on this node, or use time-slicing there")


@plan_rule(
    "OPR033", "error", "More MPS clients than the GPU takes",
    why="A GPU serves 48 MPS clients from compute capability 7.5 on, 16 before; the control daemon refuses more.",
    remedy="lower replicas",
    sources=["https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/cmd/mps-control-daemon/mps/device.go"],
)
def too_many(context: Context) -> Iterator[Hit]:
    """Fires when replicas of an MPS resource are above what the host's GPUs take."""
    known = [(capability, card.label) for card in each(context.cards) if card.product is not None
             and (capability := try_loose(str(card.product.compute_capability))) is not None]
    low = min(known, default=((7, 5), "this GPU"))
    limit = 48 if low[0] >= (7, 5) else 16
    for key, mps in _mps(context):
        for entry in plugin_config.resources(mps):
            replicas = entry.get("replicas")
            if isinstance(replicas, int) and not isinstance(replicas, bool) and replicas > limit:
                yield Hit(f"{_CONFIG}.data.{key}", f"{replicas} MPS replicas, but {low[1]} takes {limit}",
                          f"set replicas to {limit} or less")
