# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a cluster: where a Prometheus takes them, with the labels it selects by, as their kinds want them."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import selectors
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import (
    adapter,
    catalogue,
    counters,
    files,
    objects,
    watchers,
)
from sources import ROOT, SOURCES

sys.path.insert(0, str(ROOT / "tests" / "kube"))
from emulator import schema

SHARED = ROOT.parent / "shared" / "reference" / "data" / "prometheus"
KINDS = {objects.RULE_KIND: {}, objects.MONITOR_KIND: {}}
VALUES: dict[str, Any] = {"dcgmExporter": {
    "config": counters.config(counters.text(catalogue.GROUPS, (4, 8, 3))),
    "serviceMonitor": {"enabled": True, "additionalLabels": {"release": "kps"}, "relabelings": [objects.NODE]}}}
SETTINGS: dict[str, Any] = {"namespace": "gpu-operator", "labels": {}, "dashboard_labels": {"grafana_dashboard": "1"}}


def _prometheus(namespace: str = "monitoring", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "kps", "namespace": namespace}, "spec": spec}


def _made(values: dict[str, Any] | None = None, settings: dict[str, Any] | None = None, **facts: Any) -> dict[str, Any]:
    return objects.for_cluster({"values": values or VALUES}, {"crds": KINDS, **facts}, {**SETTINGS, **(settings or {})})


def _one(made: dict[str, Any], kind: str) -> dict[str, Any] | None:
    return next((one for one in made["objects"] if one["kind"] == kind), None)


_KPS = {"matchLabels": {"release": "kps"}}
EVERYWHERE: dict[str, Any] = {"serviceMonitorSelector": _KPS, "ruleSelector": _KPS,
                              "serviceMonitorNamespaceSelector": {}, "ruleNamespaceSelector": {}}


def test_a_prometheus_that_looks_everywhere() -> None:
    made = _made(prometheuses=[_prometheus(**EVERYWHERE)])
    rule = _one(made, "PrometheusRule")
    assert rule is not None and rule["metadata"]["namespace"] == "gpu-operator"
    assert rule["metadata"]["labels"]["release"] == "kps" and made["namespace_labels"] == {} and made["missing"] == []
    assert _one(made, "ServiceMonitor") is None    # the operator's own is seen
    assert "by (node," in rule["spec"]["groups"][0]["rules"][0]["expr"]


def test_what_nobody_wants_any_more_goes_unless_something_is_missing() -> None:
    scaled = [{"namespace": "ai", "name": name, "max": 2} for name in ("llm", "small")]
    kps = [_prometheus(**EVERYWHERE)]
    before = _made(settings={"autoscaling": scaled}, prometheuses=kps)["objects"]
    # one scaler less, and Prometheus wants the rules elsewhere
    alone = _prometheus(serviceMonitorSelector=_KPS, ruleSelector=_KPS, serviceMonitorNamespaceSelector={})
    after = _made(settings={"autoscaling": scaled[:1], "there": before}, prometheuses=[alone])
    gone = sorted((one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]) for one in after["gone"])
    assert gone == [("HorizontalPodAutoscaler", "ai", "small-gpu"),
                    ("PrometheusRule", "gpu-operator", "baremetal-nvidia-gpu")]
    assert _made(settings={"autoscaling": scaled, "there": before}, prometheuses=kps)["gone"] == []
    assert _made(settings={"there": before}, prometheuses=[])["gone"] == []    # no Prometheus: maybe for a moment


def test_a_prometheus_that_looks_into_its_own_namespace_alone() -> None:
    spec = {key: value for key, value in EVERYWHERE.items() if "Namespace" not in key}
    made = _made(prometheuses=[_prometheus(**spec)])
    rule, monitor = _one(made, "PrometheusRule"), _one(made, "ServiceMonitor")
    assert rule is not None and rule["metadata"]["namespace"] == "monitoring"
    assert monitor is not None and monitor["metadata"]["namespace"] == "monitoring"
    assert monitor["spec"]["endpoints"][0]["relabelings"] == [objects.NODE]


def test_a_prometheus_that_looks_into_labelled_namespaces() -> None:
    chosen = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["ops", "gpu"]}]}
    spec = {**EVERYWHERE, "ruleNamespaceSelector": chosen, "serviceMonitorNamespaceSelector": chosen}
    assert _made(prometheuses=[_prometheus(**spec)])["namespace_labels"] == {"team": "ops"}
    there = _made(prometheuses=[_prometheus(**spec)], settings={"labels": {"team": "gpu"}})
    assert there["namespace_labels"] == {}    # as it is
    other = _made(prometheuses=[_prometheus(**spec)], settings={"labels": {"team": "web"}})
    assert _one(other, "PrometheusRule") is None and other["missing"]    # somebody's label is not overwritten


def test_a_prometheus_without_a_selector_takes_nothing() -> None:
    made = _made(prometheuses=[_prometheus()])
    assert _one(made, "PrometheusRule") is None and "ruleSelector" in made["missing"][0]
    named = _made(prometheuses=[], settings={"rule_labels": {"vm": "yes"}})
    rule = _one(named, "PrometheusRule")
    assert rule is not None and rule["metadata"]["labels"]["vm"] == "yes"


def test_the_better_of_two() -> None:
    narrow = {key: value for key, value in EVERYWHERE.items() if "Namespace" not in key}
    place = watchers.place([_prometheus(**narrow), _prometheus("other", **EVERYWHERE)], "rule", "gpu-operator", {}, {})
    assert place.namespace == "gpu-operator" and place.prometheus == "other/kps"


@pytest.mark.parametrize(("selector", "labels", "taken"), [
    ({}, {}, True), (None, {"a": "b"}, False), ({"matchLabels": {"a": "b"}}, {"a": "b"}, True),
    ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
    ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {"a": "b"}, False),
    ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {}, True),
    ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
    ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
    ({"matchExpressions": [{"key": "a", "operator": "Unheard"}]}, {"a": "b"}, False)])
def test_selectors(selector: Any, labels: dict[str, str], taken: bool) -> None:
    assert selectors.matches(selector, labels) is taken
    if taken:
        assert selectors.matches(selector, {**labels, **selectors.wanted(selector)})


def test_without_the_operator_of_prometheus_it_is_said() -> None:
    made = objects.for_cluster({"values": VALUES}, {"crds": {}}, SETTINGS)
    assert made["objects"] == [] and "servicemonitors.monitoring.coreos.com" in made["missing"][0]


def test_alerts_follow_the_list_that_is_in_force() -> None:
    own = {"dcgmExporter": {"config": {"name": "mine"}, "serviceMonitor": {"enabled": True}}}
    text = "DCGM_FI_DEV_GPU_TEMP, gauge, t\nDCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, e\n"
    made = _made(own, prometheuses=[_prometheus(**EVERYWHERE)], config_maps={"mine": {"dcgm-metrics.csv": text}})
    rule = _one(made, "PrometheusRule")
    assert rule is not None
    names = {one["alert"] for group in rule["spec"]["groups"] for one in group["rules"]}
    assert "GpuEccUncorrectable" in names and "GpuXidCritical" not in names and "GpuXidCritical" in made["left_out"]
    assert "by (instance," in json.dumps(rule)    # nobody relabels to node there


def test_autoscalers_have_the_metric_that_the_adapter_offers() -> None:
    wanted = [{"namespace": "ai", "name": "llm", "max": 8, "min": 2, "target": 60},
              {"namespace": "ai", "name": "mig", "max": 3, "metric": "gpu_engine_active"}]
    made = _made(prometheuses=[_prometheus(**EVERYWHERE)], settings={"autoscaling": wanted})
    scalers = [one for one in made["objects"] if one["kind"] == "HorizontalPodAutoscaler"]
    assert [one["spec"]["maxReplicas"] for one in scalers] == [8, 3]
    assert scalers[0]["spec"]["metrics"][0]["pods"]["target"] == {"type": "AverageValue", "averageValue": "60"}
    table = next(one for one in made["objects"] if one["metadata"]["name"].endswith("adapter-rules"))
    rules = yaml.safe_load(table["data"]["config.yaml"])["rules"]
    assert {one["name"]["as"] for one in rules} == {"gpu_utilization", "gpu_engine_active"}
    for rule in rules:
        assert set(rule) == {"seriesQuery", "resources", "name", "metricsQuery"}
        assert {one["resource"] for one in rule["resources"]["overrides"].values()} == {"namespace", "pod"}
        assert all(f"{label}!=" in rule["seriesQuery"] for label in rule["resources"]["overrides"])
    plain = _made({"dcgmExporter": {}}, prometheuses=[_prometheus(**EVERYWHERE)], settings={"autoscaling": wanted})
    assert any("ai/mig is to follow gpu_engine_active" in one for one in plain["missing"])
    assert list(adapter.rules(SOURCES["plain"])[0]["resources"]["overrides"]) == ["namespace", "pod"]    # honorLabels


@pytest.mark.parametrize(("entry", "said"), [
    ("llm", "a mapping"), ({"name": "a", "max": 1}, "namespace: None"), ({"namespace": "a", "name": "b"}, "max: None"),
    ({"namespace": "a", "name": "b", "max": 1, "min": 3}, "max: 1 is not allowed; allowed is a whole number from 3"),
    ({"namespace": "a", "name": "b", "max": 1, "metric": "cpu"}, "gpu_utilization"),
    ({"namespace": "a", "name": "b", "max": 1, "maks": 2}, "maks is unknown"),
    ({"namespace": "a", "name": "b", "max": True}, "max: True")])
def test_an_autoscaler_that_cannot_be_meant(entry: Any, said: str) -> None:
    with pytest.raises(objects.SettingError, match=r"gpu_operator_autoscaling\[0\]") as caught:
        _made(prometheuses=[], settings={"autoscaling": [entry]})
    assert said in str(caught.value)


@pytest.mark.skipif(not SHARED.exists(), reason="the CRDs of the Prometheus operator are not here (../shared)")
def test_the_real_kinds_keep_every_field() -> None:
    spec = {key: value for key, value in EVERYWHERE.items() if "Namespace" not in key}
    made = _made(prometheuses=[_prometheus(**spec)])
    for kind, plural in (("PrometheusRule", "prometheusrules"), ("ServiceMonitor", "servicemonitors")):
        file = next(SHARED.glob(f"crd-monitoring.coreos.com_{plural}-*.yaml"))
        definition = yaml.safe_load(file.read_text(encoding="utf-8"))
        sent = _one(made, kind)
        assert sent is not None
        kept = schema.admit(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], sent)
        assert _lost(sent, kept) == []


def _lost(sent: Any, kept: Any, path: str = "") -> list[str]:
    if isinstance(sent, dict):
        return [one for key, value in sent.items()
                for one in (_lost(value, kept[key], f"{path}.{key}") if key in kept else [f"{path}.{key}"])]
    if isinstance(sent, list):
        return [one for index, value in enumerate(sent) for one in _lost(value, kept[index], f"{path}[{index}]")]
    return [] if sent == kept else [path]


def test_files_for_hosts() -> None:
    made = files.for_hosts("dcgm", {"groups": ["base"]}, "gpus", {"team": "ops"})
    rules = yaml.safe_load(made["rules.yml"])["groups"]
    assert any('up{job="gpus"} == 0' in one["expr"] for group in rules for one in group["rules"])
    assert all(one["labels"]["team"] == "ops" for group in rules for one in group["rules"])
    assert "PROF" not in made["counters.csv"] and "counters.csv" not in files.for_hosts("textfile", None, "j", {})
    with pytest.raises(ValueError, match="one of dcgm, textfile"):
        files.for_hosts("snmp", None, "j", {})
