# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that watch the GPUs of a cluster, and in words what is missing for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..model import chart
from . import adapter, alerts, catalogue, counters, dashboard, watchers
from .source import Source

RULE_KIND, MONITOR_KIND = "prometheusrules.monitoring.coreos.com", "servicemonitors.monitoring.coreos.com"
OURS = {"app.kubernetes.io/managed-by": "baremetal.nvidia", "app.kubernetes.io/part-of": "gpu-monitoring"}
NAME = "baremetal-nvidia-gpu"
NODE = {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node", "action": "replace"}
_EXPORTER = "nvidia-dcgm-exporter"


class SettingError(ValueError):
    """A setting that cannot be meant; the message names variable, value and what is allowed."""


def for_cluster(wanted: Mapping[str, Any], facts: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{objects, gone, namespace_labels, told, missing, left_out}``.

    wanted: what the role applies (``values``), facts: those of the cluster. settings: ``namespace``, ``labels`` of that
    namespace, ``dashboard_labels``, ``dashboard_namespace``, ``rule_labels``, ``autoscaling``, and of ours what is
    ``there``. ``missing`` says why nothing would be seen; ``objects`` are then those that serve all the same. ``gone``
    is what nobody wants any more; nothing while something is missing, which may be away for a moment.
    """
    values = wanted.get("values") or {}
    made: dict[str, Any] = {"namespace_labels": {},
                            **{key: [] for key in ("objects", "gone", "told", "missing", "left_out")}}
    if chart.flag(values, "dcgmExporter.enabled", True) is False:
        made["missing"].append("dcgmExporter.enabled is false: there are no metrics")
        return made
    source = of_values(values, facts, settings.get("alert_labels") or {})
    kinds = facts.get("crds") or {}
    absent = [kind for kind in (RULE_KIND, MONITOR_KIND) if kind not in kinds]
    if absent:
        made["missing"].append(
            f"the cluster has no {' and no '.join(absent)}: the Prometheus operator is not installed")
    else:
        _prometheus(made, source, values, facts, settings)
        _dashboard(made, source, settings)
    _autoscaling(made, source, settings)
    if not made["missing"]:
        wanted_ones = {_key(one) for one in made["objects"]}
        made["gone"] = [one for one in settings.get("there") or () if _key(one) not in wanted_ones]
    return made


def _key(one: Mapping[str, Any]) -> tuple[str, str, str]:
    meta = one["metadata"]
    return str(one["kind"]), str(meta["namespace"]), str(meta["name"])


def of_values(values: Mapping[str, Any], facts: Mapping[str, Any], labels: Mapping[str, str]) -> Source:
    """Return the source that the operator's exporter is with these values."""
    relabelings = chart.at(values, "dcgmExporter.serviceMonitor.relabelings")
    named = any(isinstance(one, Mapping) and one.get("targetLabel") == "node"
                for one in (relabelings if isinstance(relabelings, (list, tuple)) else ()))
    return Source("cluster", collected(values, facts), where="node" if named else "instance",
                  honor=bool(chart.flag(values, "dcgmExporter.serviceMonitor.honorLabels")), labels=dict(labels))


def collected(values: Mapping[str, Any], facts: Mapping[str, Any]) -> frozenset[str]:
    """Return the metrics that the exporter collects: of its list, of the ConfigMap named, or the common ones."""
    listed = chart.text(values, "dcgmExporter.config.data")
    name = chart.text(values, "dcgmExporter.config.name")
    if name is not None and not chart.flag(values, "dcgmExporter.config.create"):
        held = (facts.get("config_maps") or {}).get(name)
        listed = held.get("dcgm-metrics.csv") if isinstance(held, Mapping) else None
    return counters.fields(listed) or catalogue.DEFAULT - {"DCGM_FI_DRIVER_VERSION"}


def _prometheus(made: dict[str, Any], source: Source, values: Mapping[str, Any], facts: Mapping[str, Any],
                settings: Mapping[str, Any]) -> None:
    prometheuses, namespace = facts.get("prometheuses") or [], str(settings["namespace"])
    labels = settings.get("labels") or {}
    where = watchers.place(prometheuses, "rule", namespace, {**OURS, **(settings.get("rule_labels") or {})}, labels)
    if where.namespace is None and not settings.get("rule_labels"):
        made["missing"].append(f"{where.why}: gpu_operator_rule_labels names the labels that yours selects by")
    else:
        made["objects"].append(rule(source, where.namespace or namespace,
                                    where.labels or {**OURS, **(settings.get("rule_labels") or {})}))
        made["namespace_labels"].update(where.namespace_labels)
        made["left_out"] = alerts.left_out(source)
    if not chart.flag(values, "dcgmExporter.serviceMonitor.enabled"):
        made["told"].append("dcgmExporter.serviceMonitor.enabled is not true: the operator makes no ServiceMonitor")
        return
    given = chart.at(values, "dcgmExporter.serviceMonitor.additionalLabels")
    seen = watchers.place(prometheuses, "serviceMonitor", namespace,
                          {"app": _EXPORTER, **(given if isinstance(given, Mapping) else {})}, labels)
    if seen.namespace is not None and seen.namespace != namespace:
        made["objects"].append(monitor(values, seen, namespace))
        made["told"].append(f"Prometheus {seen.prometheus} looks into its own namespace alone: a second ServiceMonitor "
                            f"{_EXPORTER} is put there")
    made["namespace_labels"].update(seen.namespace_labels)


def rule(source: Source, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the PrometheusRule."""
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
            "metadata": {"name": NAME, "namespace": namespace, "labels": dict(labels)},
            "spec": {"groups": alerts.groups(source)}}


def monitor(values: Mapping[str, Any], where: watchers.Place, namespace: str) -> dict[str, Any]:
    """Return a ServiceMonitor for the operator's exporter, to be put where the operator itself puts none."""
    given = chart.at(values, "dcgmExporter.serviceMonitor")
    endpoint: dict[str, Any] = {
        "port": "gpu-metrics", "path": "/metrics", "interval": given.get("interval") or "15s",
        **{key: given[key] for key in ("scrapeTimeout", "honorLabels", "relabelings") if given.get(key)}}
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
            "metadata": {"name": _EXPORTER, "namespace": where.namespace, "labels": {**OURS, **where.labels}},
            "spec": {"jobLabel": "app", "endpoints": [endpoint], "namespaceSelector": {"matchNames": [namespace]},
                     "selector": {"matchLabels": {"app": _EXPORTER}}}}


def _dashboard(made: dict[str, Any], source: Source, settings: Mapping[str, Any]) -> None:
    labels = settings.get("dashboard_labels") or {}
    if labels:
        made["objects"].append(config_map(
            f"{NAME}-dashboard", settings.get("dashboard_namespace") or settings["namespace"], labels,
            {"nvidia-gpus.json": json.dumps(dashboard.build(source), indent=1, sort_keys=True) + "\n"}))


def _autoscaling(made: dict[str, Any], source: Source, settings: Mapping[str, Any]) -> None:
    listed = settings.get("autoscaling") or []
    if not listed:
        return
    for number, one in enumerate(listed):
        _check(one, f"gpu_operator_autoscaling[{number}]")
    offered = adapter.rules(source)
    names = {one["name"]["as"] for one in offered}
    for one in listed:
        metric = one.get("metric") or adapter.UTILISATION
        if metric not in names:
            made["missing"].append(f"{one['namespace']}/{one['name']} is to follow {metric}, which is not collected")
        else:
            made["objects"].append(adapter.autoscaler(one, OURS))
    made["objects"].append(config_map(f"{NAME}-adapter-rules", settings["namespace"], {},
                                      {"config.yaml": json.dumps({"rules": offered}, indent=1) + "\n"}))
    made["told"].append(f"the HorizontalPodAutoscalers need prometheus-adapter with the rules in the ConfigMap "
                        f"{settings['namespace']}/{NAME}-adapter-rules (its value rules.existing)")


def config_map(name: str, namespace: str, labels: Mapping[str, str], data: Mapping[str, str]) -> dict[str, Any]:
    """Return a ConfigMap of ours."""
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {**OURS, **labels}}, "data": dict(data)}


def _check(entry: object, where: str) -> None:
    """Raise SettingError for an entry of gpu_operator_autoscaling that cannot be meant."""
    if not isinstance(entry, Mapping):
        raise SettingError(f"{where}: {entry!r} is not allowed; allowed is a mapping with namespace, name and max")
    for key in ("namespace", "name"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise SettingError(f"{where}.{key}: {entry.get(key)!r} is not allowed; allowed is a name")
    for key, least in (("max", entry.get("min") or 1), ("min", 1), ("target", 1)):
        value = entry.get(key, None if key == "max" else least)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise SettingError(f"{where}.{key}: {value!r} is not allowed; allowed is a whole number from {least} on")
    metrics = (adapter.UTILISATION, adapter.ENGINE)
    if entry.get("metric", adapter.UTILISATION) not in metrics:
        raise SettingError(f"{where}.metric: {entry['metric']!r} is not allowed; allowed are {', '.join(metrics)}")
    known = ("namespace", "name", "kind", "hpa", "min", "max", "target", "metric")
    unknown = sorted(set(map(str, entry)) - set(known))
    if unknown:
        raise SettingError(f"{where}.{unknown[0]} is unknown; known are {', '.join(known)}")
