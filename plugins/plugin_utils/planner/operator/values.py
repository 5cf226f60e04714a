# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The complete values: what a person asks for, dead keys translated, and what follows from the cluster."""

from __future__ import annotations

from typing import Any

from ...model import chart
from ...model.cluster import Cluster
from ...model.operator import OperatorDecision
from ...rules import mig, monitoring, operator_systems, sharing
from ...rules.context import Context

_TOLERATIONS = ("daemonsets.tolerations", "node-feature-discovery.worker.tolerations")
_OWN_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def begin(here: Cluster, decision: OperatorDecision) -> None:
    """Take over what a person asks for, with environment values as texts and dead keys in the words that count."""
    decision.values = {key: value for key, value in chart.copy(here.asked).items() if value is not None}
    _dead_keys(decision)
    for path, value in list(chart.paths(decision.values)):
        if path.endswith(".env"):
            _environment(decision.values, path)
        elif path.endswith(".version") and isinstance(value, (int, float)) and not isinstance(value, bool):
            chart.put(decision.values, path, str(value))


def _dead_keys(decision: OperatorDecision) -> None:
    if decision.release < (25, 3):
        return
    dead = chart.flag(decision.values, "driver.useOpenKernelModules")
    if dead:
        chart.put_if_absent(decision.values, "driver.kernelModuleType", "open")
    chart.drop(decision.values, "driver.useOpenKernelModules")


def _environment(values: dict[str, Any], path: str) -> None:
    listed = chart.at(values, path)
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and "value" in entry:
            told = chart.as_env(entry["value"])
            entry["value"] = entry["value"] if told is None else told


def finish(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Add what follows from release and cluster where nobody said otherwise."""
    settle(here, decision, "operator.upgradeCRD", False)  # the role applies the CRDs itself
    settle(here, decision, "devicePlugin.enabled", True)
    if decision.release < (25, 3):
        settle(here, decision, "operator.defaultRuntime", _runtime(context, here))
    _mig(context, here, decision)
    _monitoring(here, decision)
    _tolerations(here, decision.values)


def _runtime(context: Context, here: Cluster) -> str:
    """Return the runtime of the nodes, in the words of the releases that want it named."""
    node = here.node_of(context.name)
    told = (node.runtime or "").partition("://")[0] if node is not None else ""
    return {"cri-o": "crio", "docker": "docker"}.get(told, "containerd")


def settle(here: Cluster, decision: OperatorDecision, path: str, value: Any) -> None:
    """Set what nobody asked for: as it is where the operator runs already, else the given value.

    So a cluster that runs well is not touched for the sake of a value that the chart has by itself.
    """
    before = chart.at(here.installed_values, path)
    if before is not chart.ABSENT:
        chart.put_if_absent(decision.values, path, chart.copy(before))
    elif here.installed is None or here.installed != decision.version:
        chart.put_if_absent(decision.values, path, value)


def _mig(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Set the strategy that the nodes' layouts or MPS need; else the chart's own does. Groups have theirs already."""
    if context.wishes.sharing:
        return
    layouts = {node.labels.get(mig.LAYOUT, "") for node in here.gpu_nodes} - {"", "all-disabled"}
    if "all-balanced" in layouts:
        chart.put_if_absent(decision.values, "mig.strategy", "mixed")
    elif not layouts and sharing.wants_mps(context):
        chart.put_if_absent(decision.values, "mig.strategy", "none")


def _monitoring(here: Cluster, decision: OperatorDecision) -> None:
    values = decision.values
    if not isinstance(here.crds, dict):
        return
    if monitoring.CRD in here.crds and decision.release >= monitoring.OPERATOR_SINCE:
        _selected(here, values, "operator.metrics.serviceMonitor")    # what tells of failed upgrades of the driver
    if chart.flag(values, "dcgmExporter.enabled") is False:
        return
    if monitoring.CRD not in here.crds and decision.release >= monitoring.ON_SINCE:
        chart.put_if_absent(values, "dcgmExporter.serviceMonitor.enabled", False)
    elif monitoring.CRD in here.crds and here.prometheuses:
        chart.put_if_absent(values, "dcgmExporter.serviceMonitor.enabled", True)
    if not chart.flag(values, "dcgmExporter.serviceMonitor.enabled"):
        return
    every = monitoring.milliseconds(chart.at(values, "dcgmExporter.serviceMonitor.interval"))
    settle(here, decision, "dcgmExporter.env", [{"name": monitoring.INTERVAL, "value": str(every)}])
    _selected(here, values, "dcgmExporter.serviceMonitor")


def _selected(here: Cluster, values: dict[str, Any], monitor: str) -> None:
    """Give a ServiceMonitor the labels by which the cluster's Prometheus selects; what a person said stays."""
    for label, value in monitoring.selecting_labels(here).items():
        given = chart.at(values, f"{monitor}.additionalLabels")
        if not isinstance(given, dict) or label not in given:
            labels = {**(given if isinstance(given, dict) else {}), label: value}
            chart.put(values, f"{monitor}.additionalLabels", labels)


def _tolerations(here: Cluster, values: dict[str, Any]) -> None:
    """Let the operator onto tainted nodes. A person's list stays as it is; an installed one follows new taints."""
    taints, asked = operator_systems.foreign_taints(here), chart.at(here.values, _TOLERATIONS[0]) is not chart.ABSENT
    for path in () if asked else _TOLERATIONS:
        there = chart.at(values, path)
        if there is not chart.ABSENT and (here.values is not None or not isinstance(there, list)):
            continue
        listed = there if isinstance(there, list) else [dict(_OWN_TAINT)]
        extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in taints
                 if not any(_tolerates(one, key, effect) for one in listed)]
        if extra:
            chart.put(values, path, [*listed, *extra])


def _tolerates(one: object, key: str, effect: str) -> bool:
    """Say whether a toleration is about a taint; of which values is not asked."""
    return isinstance(one, dict) and one.get("key") in (None, "", key) and one.get("effect") in (None, "", effect)
