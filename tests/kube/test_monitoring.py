# SPDX-License-Identifier: GPL-3.0-or-later
"""What watches the GPUs: found by a Prometheus of the cluster, unchanged by a second run, gone when it is to go."""

from __future__ import annotations

import json
from typing import Any

from cluster import Cluster

_LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_RULE = {"type": "object", "required": ["expr"], "properties": {
    "alert": _TEXT, "record": _TEXT, "expr": _TEXT, "for": {"type": "string", "pattern": "^[0-9]+[smhd]$"},
    "labels": _TEXTS, "annotations": _TEXTS}}
_GROUP = {"type": "object", "required": ["name"],
          "properties": {"name": _TEXT, "rules": {"type": "array", "items": _RULE}}}
_RULES = {"type": "object", "properties": {"groups": {"type": "array", "items": _GROUP}}}


def _crd(plural: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A CRD of the Prometheus operator, as far as these tests look into it."""
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.monitoring.coreos.com"},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
                     "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": schema}}]}}


def _prometheus(cluster: Cluster, **spec: Any) -> None:
    """Add the Prometheus operator's kinds and a Prometheus in the namespace monitoring."""
    for plural, kind, schema in (("prometheuses", "Prometheus", _LOOSE), ("servicemonitors", "ServiceMonitor", _LOOSE),
                                 ("prometheusrules", "PrometheusRule", _RULES)):
        cluster.create(_crd(plural, kind, schema))
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}})
    cluster.create({"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus",
                    "metadata": {"name": "kps", "namespace": "monitoring"}, "spec": spec})


def test_alerts_and_dashboard_are_where_they_are_found(cluster: Cluster) -> None:
    cluster.add("g1")
    chosen = {"matchLabels": {"release": "kps"}}
    _prometheus(cluster, serviceMonitorSelector=chosen, ruleSelector=chosen,
                ruleNamespaceSelector={"matchLabels": {"watched": "yes"}})
    wanted = [{"namespace": "default", "name": "server", "max": 4}]
    first = cluster.run(gpu_operator_autoscaling=wanted)
    assert first.code == 0, first.output
    rule = cluster.one("prometheusrules", "baremetal-nvidia-gpu", "gpu-operator")
    assert rule is not None and rule["metadata"]["labels"]["release"] == "kps"
    alerts = {one["alert"] for group in rule["spec"]["groups"] for one in group["rules"]}
    assert {"GpuXidCritical", "GpuPowerBrake", "GpuHealthFailed", "DcgmExporterDown"} <= alerts
    namespace = cluster.one("namespaces", "gpu-operator")
    assert namespace is not None and namespace["metadata"]["labels"]["watched"] == "yes"
    # its Prometheus takes ServiceMonitors of its own namespace alone: the operator's would not be seen
    monitor = cluster.one("servicemonitors", "nvidia-dcgm-exporter", "monitoring")
    assert monitor is not None and monitor["spec"]["namespaceSelector"] == {"matchNames": ["gpu-operator"]}
    assert monitor["metadata"]["labels"]["release"] == "kps"
    policy = cluster.one("clusterpolicies", "cluster-policy")
    assert policy is not None
    exporter = policy["spec"]["dcgmExporter"]
    assert exporter["env"] == [{"name": "DCGM_EXPORTER_INTERVAL", "value": "15000"}]
    assert exporter["config"]["name"].startswith("baremetal-nvidia-dcgm-metrics-")
    assert "DCGM_FI_PROF_SM_ACTIVE" in exporter["config"]["data"]    # an L40S
    dashboard = cluster.one("configmaps", "baremetal-nvidia-gpu-dashboard", "gpu-operator")
    assert dashboard is not None and dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["nvidia-gpus.json"])["title"] == "NVIDIA GPUs"
    scaler = cluster.one("horizontalpodautoscalers", "server-gpu", "default")
    assert scaler is not None and scaler["spec"]["metrics"][0]["pods"]["metric"]["name"] == "gpu_utilization"

    second = cluster.run(gpu_operator_autoscaling=wanted)
    assert second.code == 0 and second.changed == 0, second.output

    fewer = cluster.run()
    assert fewer.code == 0, fewer.output
    assert cluster.one("horizontalpodautoscalers", "server-gpu", "default") is None
    assert cluster.one("prometheusrules", "baremetal-nvidia-gpu", "gpu-operator") is not None

    last = cluster.run(gpu_operator_monitoring="absent")
    assert last.code == 0, last.output
    left = {key[1] for key, one in cluster.store.objects.items()
            if (one["metadata"].get("labels") or {}).get("app.kubernetes.io/part-of") == "gpu-monitoring"}
    assert left == set()
    policy = cluster.one("clusterpolicies", "cluster-policy")
    assert policy is not None and "config" not in policy["spec"]["dcgmExporter"]


def test_a_watch_that_was_asked_for_is_refused_without_the_prometheus_operator(cluster: Cluster) -> None:
    cluster.add("g1")
    asked = cluster.run(gpu_operator_monitoring="present")
    said = " ".join(asked.output.split())
    assert asked.code != 0 and "no prometheusrules.monitoring.coreos.com" in said, asked.output
    assert cluster.store.writes == []
