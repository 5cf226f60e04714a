# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIADriver objects: what the values say of the driver stands in them, and each node has one and one alone."""
from __future__ import annotations

from typing import Any

import pytest
from operator_plans import OPERATOR, cluster, fleet

OLD = {**OPERATOR, "gpu_driver_version": "550.90.07"}
AROUND = {
    "driver": {"nvidiaDriverCRD": {"enabled": True}, "imagePullSecrets": ["pull"],
               "repoConfig": {"configMapName": "repos"}, "certConfig": {"name": "ca"},
               "rdma": {"enabled": True}, "env": [{"name": "A", "value": "1"}],
               "upgradePolicy": {"maxParallelUpgrades": 4, "gpuPodDeletion": {"force": True}},
               "licensingConfig": {"nlsEnabled": True}},
    "daemonsets": {"tolerations": [{"key": "team", "operator": "Exists"}]}, "gds": {"enabled": True},
    "gdrcopy": {"enabled": True, "version": "v2.5"},
}


@pytest.mark.parametrize("policies", [{"a": OPERATOR}, {"a": OPERATOR, "b": OLD}])
def test_what_the_values_say_of_the_driver_stands_in_each_object(policies: dict[str, Any]) -> None:
    made = fleet(cluster(*policies, values=AROUND), **policies)
    assert len(made["drivers"]) == len(policies)
    for one in made["drivers"]:
        spec = one["spec"]
        assert spec["tolerations"] == [{"key": "team", "operator": "Exists"}] and spec["imagePullSecrets"] == ["pull"]
        assert spec["repoConfig"] == {"name": "repos"} and spec["certConfig"] == {"name": "ca"}
        assert spec["rdma"] == {"enabled": True} and spec["env"] == [{"name": "A", "value": "1"}]
        assert spec["upgradePolicy"] == {"maxParallelUpgrades": 4, "podDeletion": {"force": True}}
        assert spec["gds"] == {"enabled": True, "repository": "nvcr.io/nvidia/cloud-native", "image": "nvidia-fs",
                               "version": "2.29.4"}
        assert spec["gdrcopy"]["version"] == "v2.5" and "licensingConfig" not in spec


def test_before_26_7_the_upgrade_policy_stays_with_the_clusterpolicy() -> None:
    policy = {**OPERATOR, "gpu_operator_version": "v25.10.1"}
    (one,) = fleet(cluster("a", values=AROUND, version="1.34"), a=policy)["drivers"]
    assert "upgradePolicy" not in one["spec"] and "default" not in one["spec"]


def test_an_object_of_ours_follows_the_values_and_keeps_its_driver() -> None:
    first = fleet(cluster("a", values=AROUND), a=OLD)
    there = cluster("a", values={**AROUND, "gds": {"enabled": False}}, drivers=first["drivers"], operator={
        "version": "v26.7.0", "values": first["values"]})
    there["nodes"][0]["labels"]["driver.config"] = "driver-550"
    unasked = {key: value for key, value in OLD.items() if key != "gpu_driver_version"}
    for policy in (OLD, unasked):
        (one,) = fleet(there, a=policy)["drivers"]
        assert one["name"] == "driver-550" and one["spec"]["version"] == "550.90.07" and "gds" not in one["spec"]


def test_a_node_that_nobody_plans_would_get_no_driver() -> None:
    made = fleet(cluster("a", "b", "c"), a=OPERATOR, b=OLD)
    assert len(made["unproved"]) == 1
    assert made["unproved"][0].startswith("c would be selected by no NVIDIADriver object")
    there = cluster("a", "b", "c")
    there["nodes"][2]["labels"]["nvidia.com/gpu.deploy.driver"] = "false"
    assert fleet(there, a=OPERATOR, b=OLD)["unproved"] == []


def test_the_default_object_covers_the_rest_from_26_7_on() -> None:
    values = {"driver": {"nvidiaDriverCRD": {"enabled": True, "deployDefaultCR": True}}}
    assert fleet(cluster("a", "c", values=values), a=OPERATOR)["unproved"] == []


def test_an_object_without_a_selector_meets_each_other_one() -> None:
    there = cluster("a", drivers=[{"name": "mine", "spec": {"version": "570.1", "nodeSelector": {}}}],
                    values={"driver": {"nvidiaDriverCRD": {"enabled": True}}})
    (told,) = fleet(there, a=OPERATOR)["unproved"]
    assert "driver-580 and mine (mine has no selector" in told


def test_two_defaults_are_one_too_many() -> None:
    there = cluster("a", drivers=[{"name": name, "spec": {"version": "570.1", "default": True}} for name in ("x", "y")],
                    values={"driver": {"nvidiaDriverCRD": {"enabled": True}}})
    assert "x and y are both the default NVIDIADriver" in fleet(there, a=OPERATOR)["unproved"]
