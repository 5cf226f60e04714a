# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics that dcgm-exporter is asked for: what the GPUs have and the exporter of that release knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...model import chart
from ...model.cluster import Cluster
from ...model.facts import each
from ...model.operator import OperatorDecision
from ...model.version import try_loose
from ...monitoring import catalogue, counters
from ...monitoring.objects import NODE
from ...rules.context import Card, Context

CONFIG = "dcgmExporter.config"
_MONITOR = "dcgmExporter.serviceMonitor"
_PROFILED = (7, 0)     # DCGM profiles data-center GPUs from Volta on
_REMAPS = (8, 0)       # rows are remapped from Ampere on; before, pages were retired


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Give the exporter its list. A person's own list stays; with `auto` so does one that runs without ours."""
    mode, values = context.wishes.operator_monitoring, decision.values
    decision.metrics = {"mode": mode}
    name = chart.text(values, f"{CONFIG}.name")
    if mode == "absent" or chart.flag(values, "dcgmExporter.enabled") is False:
        if counters.ours(name):
            chart.drop(values, CONFIG)
        return
    given = chart.at(values, CONFIG)
    if (given is not chart.ABSENT and not counters.ours(name)) or not decision.release:
        return
    before = chart.at(here.installed_values, CONFIG)
    moves = here.installed is None or here.installed != decision.version
    if mode == "auto" and not moves and not counters.ours(chart.text(before, "name")):
        return
    tag = chart.text(values, "dcgmExporter.version")
    row = context.matrix.operator(decision.version)
    tag = tag or (row.components.get("dcgm_exporter") if row is not None else None)
    decision.metrics.update(exporter=tag, groups=groups(each(context.cards)))
    chart.put(values, CONFIG, _config(decision.metrics, [before]))
    if chart.flag(values, f"{_MONITOR}.enabled"):
        chart.put_if_absent(values, f"{_MONITOR}.relabelings", [dict(NODE)])


def groups(cards: Iterable[Card]) -> list[str]:
    """Return the groups of metrics that some of the cards have."""
    found = {"base"}
    for card in cards:
        capability, product = _capability(card), card.product
        if capability is not None:
            found.add("remap" if capability >= _REMAPS else "retired")
        if product is None or not product.datacenter:
            continue
        found.add("nvlink")
        if capability is not None and capability >= _PROFILED:
            found |= {"profiling", "profiling_sm"} if capability >= _REMAPS else {"profiling"}
        if product.fabric is not None:
            found |= {"fabric"} if product.fabric == "nvswitch" else {"fabric", "nvlink5"}
    return [group for group in catalogue.GROUPS if group in found]


def _capability(card: Card) -> tuple[int, ...] | None:
    known = getattr(card.product, "compute_capability", None)
    listed = getattr(card.architecture, "compute_capability", None) or ()
    return try_loose(str(known or next(iter(listed), "")))


def together(values: dict[str, Any], decided: Iterable[Mapping[str, Any]]) -> str:
    """Give the values of a cluster the list that serves all its hosts; return whether it is to be watched."""
    plans = list(decided)
    modes = {(one.get("metrics") or {}).get("mode") for one in plans}
    mode = "present" if "present" in modes else "absent" if modes == {"absent"} else "auto"
    listed = [one for one in plans if (one.get("metrics") or {}).get("groups")]
    if not listed:
        return mode
    union = {group for one in listed for group in one["metrics"]["groups"]}
    chart.put(values, CONFIG, _config({"exporter": listed[0]["metrics"]["exporter"], "groups": union},
                                      [chart.at(one["values"], CONFIG) for one in listed]))
    return mode


def _config(metrics: Mapping[str, Any], there: Iterable[object]) -> dict[str, Any]:
    """Return the chart's value: one that is there already if it has all that is needed and nothing unknown.

    So a run that is limited to some hosts does not take from the list what the others need.
    """
    exporter = catalogue.exporter(metrics["exporter"])
    text = counters.text(metrics["groups"], exporter)
    known = counters.fields(counters.text(catalogue.GROUPS, exporter))
    for one in there:
        data = chart.text(one, "data")
        if counters.ours(chart.text(one, "name")) and counters.fields(text) <= counters.fields(data) <= known:
            return dict(chart.copy(one))
    return counters.config(text)
