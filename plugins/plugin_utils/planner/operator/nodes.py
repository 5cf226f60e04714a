# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of nodes: what earlier drivers and upgrades left behind is mended, and hosts' labels become those of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...model import chart
from ...model.cluster import DRIVER_LABEL, TOOLKIT_LABEL, Cluster
from ...model.operator import OperatorDecision
from ...rules import operator as rules
from ...rules.context import Context
from .objects import LABEL


def mend(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Take back labels that keep the operator away for nothing; rule OPR006 tells of them in words."""
    node = here.node_of(context.name)
    if node is None:
        return
    for label in rules.paused(node):
        decision.labels.setdefault(label, "true")
    if rules.without_its_driver(context, decision, node):
        decision.labels.setdefault(DRIVER_LABEL, None)


def of_their_own(plans: Iterable[Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, dict[str, str | None]]:
    """Return labels by host for hosts that want nothing of the operator: where it comes all the same, it keeps away.

    Before the first installation only hosts whose driver the operator brings know of it.
    """
    found: dict[str, dict[str, str | None]] = {}
    for one in plans:
        decisions = one.get("decisions") or {}
        if decisions.get("operator"):
            continue
        labels: dict[str, str | None] = {}
        own_driver = chart.text(decisions, "driver.owner") == "host" and chart.text(decisions, "driver.version")
        if own_driver and chart.flag(values, "driver.enabled", True):
            labels[DRIVER_LABEL] = "pre-installed"
        if chart.text(decisions, "toolkit.version") and chart.flag(values, "toolkit.enabled", True):
            labels[TOOLKIT_LABEL] = "false"
        if labels:
            found[str(one.get("host"))] = labels
    return found


def differing(
    here: Cluster, labels: Mapping[str, Mapping[str, str | None]], hosts: Iterable[str] = (), by_objects: bool = True
) -> dict[str, Any]:
    """Return ``{node: {label: value or None}}``, only what is to change; None takes a label away.

    ``labels`` are those that are wanted by host; hosts that are no nodes are left out. On nodes of ``hosts`` the labels
    that an earlier run set go where nobody wants them any more; what an object of the cluster selects by
    (``by_objects``: NVIDIADriver objects are in use) stays, since `auto` leaves it unsaid.
    """
    found: dict[str, dict[str, str | None]] = {}
    for host in sorted({*labels, *hosts}):
        node, wanted = here.node_of(host), dict(labels.get(host) or {})
        if node is None:
            continue
        for label in sorted(node.ours - set(wanted)):
            if not (by_objects and label == LABEL):
                wanted[label] = None
        changes = {label: value for label, value in wanted.items() if node.labels.get(label) != value}
        if changes:
            found.setdefault(node.name, {}).update(changes)
    return found


def marks(here: Cluster, labels: Mapping[str, Mapping[str, str | None]], changes: Mapping[str, Any]) -> dict[str, str]:
    """Return by node what the labels of ours are after ``changes``, as the text that an annotation holds.

    A label that was only mended (set back to true, taken away) is nobody's.
    """
    found = {}
    for host, wanted in labels.items():
        node = here.node_of(host)
        if node is not None and node.name in changes:
            set_ = {label for label, value in wanted.items() if value not in (None, "true")}
            kept = {label for label in node.ours if label not in changes[node.name]}
            found[node.name] = ",".join(sorted(set_ | kept))
    for name in changes:
        found.setdefault(name, "")
    return found


def patches(changes: Mapping[str, Mapping[str, str | None]], ours: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the changes as merge patches of nodes, each with the annotation that remembers which labels are ours."""
    return [{"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": name, "labels": dict(labels), "annotations": {"baremetal.nvidia/labels": ours.get(name) or None}}}
        for name, labels in sorted(changes.items())]


def former(here: Cluster, changes: Mapping[str, Mapping[str, str | None]]) -> dict[str, Any]:
    """Return the labels as they are before ``changes``; what is mended by them stays mended."""
    found: dict[str, dict[str, str | None]] = {}
    for name, changed in changes.items():
        node = here.node_of(name)
        before = {label: node.labels.get(label) for label in changed} if node is not None else {}
        kept = {label: value for label, value in before.items()
                if not str(value).endswith("paused-for-driver-upgrade")
                and not (label == DRIVER_LABEL and value == "pre-installed" and changed[label] is None)}
        if kept:
            found[name] = kept
    return found
