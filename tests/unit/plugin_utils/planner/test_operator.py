# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's part of a plan: second runs, whole fleets, any cluster facts, and what the real charts know."""
from __future__ import annotations

import copy
import datetime
import pathlib
from typing import Any

import pytest
import run
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import chart
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan, plan_fleet
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.rules import chart_keys, plugin_config
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NOW = datetime.date(2026, 11, 30)
CASES = pathlib.Path(run.__file__).parent
CLUSTER_CASES = [
    case
    for name in ("operator", "operator_settings", "sharing", "monitoring", "rules/operator", "rules/sharing",
                 "rules/sharing_groups")
    for case in run.load(CASES / f"{name}.yml")
    if case.get("cluster")
]
HOST = next(case for case in CLUSTER_CASES if case["id"] == "settings-new-cluster")
REFERENCE = pathlib.Path(__file__).resolve().parents[5] / "shared" / "reference" / "data" / "gpu-operator"
RELEASES = ("v24.9.2", "v25.3.4", "v25.10.1", "v26.3.3", "v26.7.0")
needs_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no charts and CRDs in {REFERENCE}")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def made(host: str, policy: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    facts = {**HOST["facts"], "host": host}
    return plan(host, facts, policy, matrix.load(), NOW, {**HOST["cluster"], **cluster})


def carried_out(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case as it is after the role gpu_operator did its part."""
    after = copy.deepcopy(case)
    first = run.make_plan(case, matrix.load())
    decision, cluster = first["decisions"]["operator"], after["cluster"]
    cluster["operator"] = {"version": decision["version"], "values": decision["values"]}
    there = {one["name"]: one for one in cluster.get("drivers") or []}
    cluster["drivers"] = list({**there, **{one["name"]: one for one in decision["drivers"]}}.values())
    cluster["config_maps"] = {**(cluster.get("config_maps") or {}), **decision["config_maps"]}
    for change in (*first["changes"], *first["pending"]):
        if change["role"] == "gpu_operator" and change["action"] == "crd":
            cluster["crds"][change["target"]] = {}
        elif change["role"] == "gpu_operator" and change["action"] == "label":
            name, label = change["target"].split()
            node = next((one for one in cluster["nodes"] if one["name"] == name), None)
            if node is not None and change["after"] is None:
                node["labels"].pop(label, None)
            elif node is not None:
                node["labels"][label] = change["after"]
    return after


@pytest.mark.parametrize("case", CLUSTER_CASES, ids=lambda case: str(case["id"]))
def test_what_was_applied_is_not_applied_again(case: dict[str, Any]) -> None:
    if run.make_plan(case, matrix.load())["decisions"]["operator"] is None:
        return
    done = run.make_plan(carried_out(case), matrix.load())
    left = [one for one in (*done["changes"], *done["pending"]) if one["role"] == "gpu_operator"]
    assert left == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON, JSON, JSON, JSON)
def test_any_cluster_can_be_planned(whole: Any, values: Any, nodes: Any, crds: Any) -> None:
    facts, policy = HOST["facts"], HOST["policy"]
    installed = {"version": "v26.7.0", "values": whole}
    for cluster in (whole, {**HOST["cluster"], "values": values, "crds": crds, "operator": installed},
                    {**HOST["cluster"], "nodes": nodes, "drivers": nodes, "prometheuses": nodes, "config_maps": whole}):
        assert plan("gpu-01", facts, policy, matrix.load(), NOW, cluster)["verdict"] in ("ok", "change", "blocked")


@pytest.mark.parametrize("section", ["driver", "toolkit", "devicePlugin", "dcgmExporter", "operator", "daemonsets"])
@pytest.mark.parametrize("value", [None, True, 7, "text", [], ["x"], {"env": "x"}, {"config": []}, {"enabled": "yes"}])
def test_odd_values_are_no_traceback(section: str, value: Any) -> None:
    assert made("gpu-01", HOST["policy"], values={section: value})["decisions"]["operator"]["values"]


def test_a_host_without_a_cluster_has_no_operator() -> None:
    without = plan("gpu-01", HOST["facts"], {}, matrix.load(), NOW)
    assert without["decisions"]["operator"] is None
    assert not [one for one in without["changes"] if one["role"] == "gpu_operator"]


def test_a_host_without_gpus_is_left_out_of_it() -> None:
    done = plan("cp-1", {**HOST["facts"], "gpus": []}, {}, matrix.load(), NOW, {**HOST["cluster"], "values": {}})
    assert done["decisions"]["operator"] is None


def test_hosts_that_want_the_same_need_no_objects() -> None:
    fleet = plan_fleet(made(name, HOST["policy"]) for name in ("gpu-01", "gpu-02"))["operator"]
    assert (fleet["drivers"], fleet["labels"], fleet["conflicts"]) == ([], {}, [])
    assert fleet["values"]["driver"]["version"] == "580.173.02"


def test_hosts_that_want_different_drivers_get_an_object_each() -> None:
    other = {**HOST["policy"], "gpu_driver_version": "550.90.07"}
    fleet = plan_fleet([made("gpu-01", HOST["policy"]), made("gpu-02", other), made("gpu-03", other)])["operator"]
    assert fleet["values"]["driver"]["nvidiaDriverCRD"] == {"enabled": True, "deployDefaultCR": False}
    assert "version" not in fleet["values"]["driver"]
    assert [(one["name"], one["spec"]["version"], one["spec"]["nodeSelector"]) for one in fleet["drivers"]] == [
        ("driver-550", "550.90.07", {"driver.config": "driver-550"}),
        ("driver-580", "580.173.02", {"driver.config": "driver-580"}),
    ]
    assert fleet["labels"]["gpu-03"] == {"driver.config": "driver-550"}
    assert fleet["conflicts"] == []


def test_two_versions_of_one_branch_are_told_apart() -> None:
    other = {**HOST["policy"], "gpu_driver_version": "580.178.04"}
    fleet = plan_fleet([made("gpu-01", HOST["policy"]), made("gpu-02", other)])["operator"]
    assert [one["name"] for one in fleet["drivers"]] == ["driver-580.173.02", "driver-580.178.04"]


def test_mixed_owners_are_kept_apart_by_labels() -> None:
    mine = made("gpu-02", {"gpu_driver_owner": "host", "gpu_driver_version": "580.173.02", "gpu_kernel_policy": "off"})
    fleet = plan_fleet([made("gpu-01", HOST["policy"]), mine])["operator"]
    assert fleet["values"]["driver"]["enabled"] is True
    assert fleet["labels"]["gpu-02"]["nvidia.com/gpu.deploy.driver"] == "pre-installed"
    assert "gpu-01" not in fleet["labels"]


def test_what_one_chart_cannot_have_twice_is_named() -> None:
    k3s = copy.deepcopy(HOST["facts"])
    k3s["containers"]["containerd"]["owner"] = "k3s"
    other = plan("gpu-02", k3s, HOST["policy"], matrix.load(), NOW, HOST["cluster"])
    fleet = plan_fleet([made("gpu-01", HOST["policy"]), other])["operator"]
    assert [one["path"] for one in fleet["conflicts"]] == ["toolkit.env"]


def test_near_keys_are_found() -> None:
    release = (26, 7, 0)
    assert list(chart_keys.unknown({"drivr": {}}, release)) == [("drivr", "driver")]
    assert list(chart_keys.unknown({"driver": {"enbled": 1}}, release)) == [("driver.enbled", "driver.enabled")]
    assert list(chart_keys.unknown({"driver": {"zzz": 1}}, release)) == [("driver.zzz", None)]
    assert list(chart_keys.unknown({"draDriver": {}}, release)) == []
    assert [path for path, _near in chart_keys.unknown({"draDriver": {}}, (26, 3, 3))] == ["draDriver"]
    assert list(chart_keys.unknown({"anything": {}}, (22, 9, 0))) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "no mapping"),
        ("version: v2", "v2"),
        ("a: [", "line"),
        ("version: v1\nsharing: {timeSlicing: {}}", "no resources"),
        ("version: v1\nsharing: {mps: {resources: [{name: nvidia.com/mig-1g.10gb, replicas: 2}]}}", "MIG device"),
        ("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: '4'}]}}", "replicas"),
        ("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replica: 4}]}}", "replicas is near"),
        ("version: v1\nfailRequestsGreaterThanOne: true", "belongs under sharing"),
    ],
)
def test_what_the_plugin_refuses(text: str, words: str) -> None:
    assert words in " ".join(one.summary for one in plugin_config.problems(plugin_config.parse(text)))


@needs_reference
@pytest.mark.parametrize("release", RELEASES)
def test_the_charts_own_values_are_all_known(release: str) -> None:
    values = yaml.safe_load((REFERENCE / f"values-{release}.yaml").read_text(encoding="utf-8"))
    parsed = tuple(int(part) for part in release[1:].split("."))
    unknown = [path for path, _near in chart_keys.unknown(values, parsed)]
    assert unknown in ([], ["driver.useOpenKernelModules"], ["driver.useOpenKernelModules", "cdi.default"],
                       ["cdi.default", "driver.useOpenKernelModules"], ["cdi.default"])


@needs_reference
@pytest.mark.parametrize("release", RELEASES)
def test_what_is_decided_reaches_the_real_clusterpolicy(release: str) -> None:
    crd = yaml.safe_load((REFERENCE / f"crd-nvidia.com_clusterpolicies-{release}.yaml").read_text(encoding="utf-8"))
    policy = {**HOST["policy"], "gpu_operator_version": release, "gpu_driver_version": "580.173.02"}
    done = made("gpu-01", policy, version="1.33", crds={"clusterpolicies.nvidia.com": crd})
    stale = [one for one in done["changes"] if one["action"] == "crd" and one["target"] == "clusterpolicies.nvidia.com"]
    assert stale == []
    parsed = tuple(int(part) for part in release[1:].split("."))
    assert list(chart_keys.unknown(done["decisions"]["operator"]["values"], parsed)) == []


@needs_reference
def test_an_older_crd_is_seen_to_drop_a_field() -> None:
    crd = yaml.safe_load((REFERENCE / "crd-nvidia.com_clusterpolicies-v25.3.4.yaml").read_text(encoding="utf-8"))
    done = made("gpu-01", HOST["policy"], crds={"clusterpolicies.nvidia.com": crd},
                values={"dcgmExporter": {"hostNetwork": True}, "hostPaths": {"kubeletRootDir": "/data/kubelet"}})
    change = next(one for one in done["changes"] if one["target"] == "clusterpolicies.nvidia.com")
    assert "dcgmExporter.hostNetwork" in change["why"]
    assert "hostPaths.kubeletRootDir" in change["why"]


@needs_reference
@pytest.mark.parametrize("release", RELEASES)
def test_driver_objects_fit_the_real_crd(release: str) -> None:
    crd = yaml.safe_load((REFERENCE / f"crd-nvidia.com_nvidiadrivers-{release}.yaml").read_text(encoding="utf-8"))
    spec = chart.at(crd["spec"]["versions"][0], "schema.openAPIV3Schema.properties.spec")
    policy = {**HOST["policy"], "gpu_operator_version": release, "gpu_driver_version": "550.90.07"}
    done = made("gpu-01", policy, version="1.33", values={"driver": {"nvidiaDriverCRD": {"enabled": True}}})
    for one in done["decisions"]["operator"]["drivers"]:
        assert set(one["spec"]) <= set(spec["properties"]), release
        assert set(spec.get("required") or ()) <= set(one["spec"]), release
    assert done["decisions"]["operator"]["drivers"]
