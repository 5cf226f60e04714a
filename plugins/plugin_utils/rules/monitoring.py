# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about monitoring: ServiceMonitors that Prometheus finds, intervals that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..model import chart, selectors
from ..model.cluster import Cluster
from .context import Context
from .registry import Hit, plan_rule

CRD = "servicemonitors.monitoring.coreos.com"
RULE_CRD = "prometheusrules.monitoring.coreos.com"
ON_SINCE = (26, 7)  # dcgmExporter.serviceMonitor.enabled is true by default from here on
OPERATOR_SINCE = (26, 7)  # operator.metrics.serviceMonitor: before, the operator's own ServiceMonitor takes no labels
INTERVAL = "DCGM_EXPORTER_INTERVAL"
_COLLECTED = 30000  # milliseconds between two readings of the exporter by itself
_SCRAPED = 15000
_DURATION = re.compile(r"([0-9]+)(ms|s|m)\Z")
_UNITS = {"ms": 1, "s": 1000, "m": 60000}
_WRONG_ENV = {"DCGM_EXPORTER_COLLECT_INTERVAL": "DCGM_EXPORTER_INTERVAL"}


def selecting_labels(cluster: Cluster) -> dict[str, str]:
    """Return labels by which a Prometheus of the cluster selects ServiceMonitors; {} if any will do.

    A Prometheus without a selector selects none, so the first one that has a selector counts.
    """
    for one in cluster.prometheuses:
        selector = chart.at(one, "spec.serviceMonitorSelector")
        if isinstance(selector, Mapping):
            return selectors.wanted(selector)
    return {}


def milliseconds(interval: object) -> int:
    """Return a Prometheus duration in milliseconds; that of the chart, 15 s, for anything else."""
    found = _DURATION.match(interval) if isinstance(interval, str) else None
    return int(found.group(1)) * _UNITS[found.group(2)] if found else _SCRAPED


def _wanted(context: Context) -> bool:
    values = context.operator.values if context.operator is not None else {}
    default = context.operator is not None and context.operator.release >= ON_SINCE
    on = chart.flag(values, "dcgmExporter.enabled", True) and chart.flag(values, "dcgmExporter.serviceMonitor.enabled",
                                                                         default)
    return bool(on)


@plan_rule(
    "OPR050", "warning", "A ServiceMonitor is wanted and its kind is not there",
    why="The operator makes a ServiceMonitor only where the kind exists, and says nothing when it does not.",
    remedy="install the Prometheus operator first, or set dcgmExporter.serviceMonitor.enabled: false",
    sources=["docs/design.md, section 3", "https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/deployments/gpu-operator"],
)
def no_kind(context: Context) -> Iterator[Hit]:
    """Fires when dcgmExporter.serviceMonitor.enabled is on and the cluster has no such CRD."""
    here = context.cluster
    if here is None or not isinstance(here.crds, dict) or CRD in here.crds or not _wanted(context):
        return
    yield Hit(CRD, f"dcgmExporter.serviceMonitor.enabled is true, but the cluster has no {CRD}: nothing is scraped")


@plan_rule(
    "OPR051", "warning", "Prometheus does not select the ServiceMonitor",
    why="A Prometheus takes only ServiceMonitors with its own labels; one without them is never scraped, and silently.",
    remedy="leave the label out, so that it is taken from the Prometheus, or set its selector",
    sources=["https://github.com/prometheus-community/helm-charts/tree/main/charts/kube-prometheus-stack"],
)
def not_selected(context: Context) -> Iterator[Hit]:
    """Fires when additionalLabels lack or contradict the labels by which Prometheus selects."""
    if context.operator is None or context.cluster is None or not _wanted(context):
        return
    given = chart.at(context.operator.values, "dcgmExporter.serviceMonitor.additionalLabels")
    have = given if isinstance(given, Mapping) else {}
    for label, value in selecting_labels(context.cluster).items():
        if str(have.get(label)) != value:
            yield Hit("dcgmExporter.serviceMonitor.additionalLabels",
                      f"the label {label} is {have.get(label)!r}; the cluster's Prometheus selects {label}={value}",
                      f"set dcgmExporter.serviceMonitor.additionalLabels.{label}: {value}")


@plan_rule(
    "OPR052", "warning", "The exporter does not know this variable",
    why="dcgm-exporter ignores variables that it does not know; the interval stays at 30 seconds.",
    remedy="use the name that the exporter reads",
    sources=["https://github.com/NVIDIA/dcgm-exporter/blob/main/pkg/cmd/app.go"],
)
def unknown_variable(context: Context) -> Iterator[Hit]:
    """Fires for a variable in dcgmExporter.env that looks right and is not."""
    for name in chart.env(context.operator.values, "dcgmExporter") if context.operator is not None else ():
        if name in _WRONG_ENV:
            yield Hit(f"dcgmExporter.env {name}", f"dcgm-exporter does not read {name}",
                      f"use {_WRONG_ENV[name]}, in milliseconds")


@plan_rule(
    "OPR053", "info", "Scraped more often than collected",
    why="The exporter reads the GPUs each 30 seconds by itself; scrapes in between get the same numbers again.",
    remedy="set DCGM_EXPORTER_INTERVAL in dcgmExporter.env to the interval of the scrape, in milliseconds",
    sources=["https://github.com/NVIDIA/dcgm-exporter/blob/main/pkg/cmd/app.go"],
)
def too_seldom(context: Context) -> Iterator[Hit]:
    """Fires when the ServiceMonitor's interval is shorter than that of the exporter."""
    here = context.cluster
    if context.operator is None or here is None or not isinstance(here.crds, dict) or CRD not in here.crds:
        return
    if not _wanted(context):
        return
    values = context.operator.values
    scraped = milliseconds(chart.at(values, "dcgmExporter.serviceMonitor.interval"))
    told = chart.env(values, "dcgmExporter").get(INTERVAL)
    collected = int(told) if isinstance(told, str) and told.isascii() and told.isdigit() else _COLLECTED
    if scraped < collected:
        yield Hit("dcgmExporter.env", f"Prometheus asks each {scraped / 1000:g} s, and the exporter looks each "
                                      f"{collected / 1000:g} s", f"set {INTERVAL}: \"{scraped}\" in dcgmExporter.env")


@plan_rule(
    "OPR054", "error", "Monitoring is asked for in a cluster without the Prometheus operator",
    why="Alerts and the exporter's scrape are objects of its kinds; without them nothing would be seen, nobody told.",
    remedy="install the Prometheus operator (kube-prometheus-stack brings it), or leave gpu_operator_monitoring auto",
    sources=["https://github.com/prometheus-community/helm-charts/tree/main/charts/kube-prometheus-stack"],
)
def no_operator(context: Context) -> Iterator[Hit]:
    """Fires when gpu_operator_monitoring is present and the cluster lacks PrometheusRule or ServiceMonitor."""
    here = context.cluster
    if context.operator is None or here is None or context.wishes.operator_monitoring != "present":
        return
    missing = [name for name in (RULE_CRD, CRD) if isinstance(here.crds, dict) and name not in here.crds]
    if missing:
        yield Hit("gpu_operator_monitoring", f"gpu_operator_monitoring is present, and the cluster has no "
                                             f"{' and no '.join(missing)}")
