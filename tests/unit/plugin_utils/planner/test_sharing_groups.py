# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of nodes that share their GPUs: one host's part, many hosts together, and what the role has to do."""
from __future__ import annotations

import copy
import datetime
import pathlib
from typing import Any

import pytest
import run
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.cluster import read
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan, plan_fleet
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner.operator import sharing
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.rules import mig_layout, plugin_config

NOW = datetime.date(2026, 11, 30)
CASE = next(one for one in run.load(pathlib.Path(run.__file__).parent / "rules" / "sharing_groups.yml")
            if one["id"] == "rule-opr034-apart")
L40S, H100, A100 = "10de:26b9", "10de:2330", "10de:20b2"
BATCH, SERVING = {"name": "jobs", "preset": "batch"}, {"name": "web", "preset": "serving"}
SEVENTHS = {"name": "parts", "strategy": "mig", "mig_profile": "1g.10gb"}
OWN = {"name": "own", "strategy": "mig", "mig_profile": {"3g.40gb": 1, "1g.10gb": 4}}
DEFAULTS = (pathlib.Path(__file__).resolve().parents[5] / "shared" / "reference" / "data" / "mig"
            / "default-mig-parted-config-gpuoperator-v26.7.0.yaml")


def cluster(nodes: dict[str, dict[str, str]], **more: Any) -> dict[str, Any]:
    one = CASE["cluster"]["nodes"][0]
    made = [{**one, "name": name, "labels": {"nvidia.com/gpu.present": "true", **labels}}
            for name, labels in nodes.items()]
    return {**CASE["cluster"], "nodes": made, **more}


def planned(
    name: str, gpu: str, groups: list[dict[str, Any]], where: dict[str, Any], inventory: tuple[str, ...] = ()
) -> dict[str, Any]:
    facts = {**copy.deepcopy(CASE["facts"]), "host": name, "controller": {"groups": list(inventory)}}
    facts["gpus"][0]["id"] = gpu
    policy = {"gpu_driver_owner": "operator", "gpu_kernel_policy": "off", "gpu_sharing": groups}
    return plan(name, facts, policy, matrix.load(), NOW, where)


def fleet(hosts: dict[str, tuple[str, list[dict[str, Any]]]], where: dict[str, Any] | None = None) -> dict[str, Any]:
    there = where or cluster({name: {} for name in hosts})
    return plan_fleet(planned(name, gpu, groups, there) for name, (gpu, groups) in hosts.items())["operator"]


def test_groups_in_variables_of_single_hosts_make_one_configuration() -> None:
    made = fleet({"a": (L40S, [BATCH]), "b": (L40S, [SERVING]), "c": (L40S, [])})
    assert made["conflicts"] == []
    assert made["values"]["devicePlugin"]["config"] == {"name": sharing.PLUGIN_MAP, "default": "whole"}
    names = sorted(made["sharing"]["config_maps"][sharing.PLUGIN_MAP])
    assert [name.split("-")[0] for name in names] == ["jobs", "web", "whole"]
    assert made["sharing"]["labels"]["a"]["nvidia.com/device-plugin.config"] == names[0]
    assert "c" not in made["sharing"]["labels"]
    for text in made["sharing"]["config_maps"][sharing.PLUGIN_MAP].values():
        assert list(plugin_config.problems(plugin_config.parse(text))) == []


def test_a_group_takes_an_inventory_group() -> None:
    made = planned("a", L40S, [{**BATCH, "hosts": ["inference"]}], cluster({"a": {}}), ("all", "inference"))
    assert made["decisions"]["operator"]["sharing"]["group"] == "jobs"


def test_hosts_that_name_different_groups_alike_do_not_agree() -> None:
    made = fleet({"a": (L40S, [BATCH]), "b": (L40S, [{**BATCH, "replicas": 8}])})
    assert [one["path"] for one in made["conflicts"]] == ["gpu_sharing jobs"]


def test_mps_and_mixed_in_variables_of_different_hosts_are_refused() -> None:
    made = fleet({"a": (L40S, [SERVING]), "b": (H100, [OWN])})
    assert made["conflicts"] == [{"path": "mig.strategy", "wanted": {"own": "mixed", "web": "mps"}}]


def test_layouts_of_several_kinds_of_gpus_stand_side_by_side() -> None:
    groups = [{**SEVENTHS, "hosts": ["a", "b"]}, {**OWN, "hosts": "c"}]
    made = fleet({"a": (H100, groups), "b": (A100, groups), "c": (H100, groups)})
    layouts = yaml.safe_load(made["sharing"]["config_maps"][sharing.MIG_MAP]["config.yaml"])["mig-configs"]
    assert sorted(name.split("-")[0] for name in layouts) == ["all", "all", "own"]
    assert [(one["device-filter"], one["mig-devices"]) for one in layouts["all-1g.10gb"]] == [
        (["0x233010DE"], {"1g.10gb": 7}), (["0x20B210DE"], {"1g.10gb": 7})]
    assert made["values"]["mig"]["strategy"] == "mixed" and made["conflicts"] == []


def test_the_last_group_takes_everything_back() -> None:
    there = cluster({"a": {"baremetal.nvidia/sharing": "jobs", "nvidia.com/device-plugin.config": "jobs"}},
                    config_maps={sharing.PLUGIN_MAP: {"whole": "", "jobs": ""}}, operator={
                        "version": "v26.7.0", "values": {"devicePlugin": {"config": {"name": sharing.PLUGIN_MAP}}}})
    made = fleet({"a": (L40S, [])}, there)
    # the node relies on it until its labels are gone, and a release comes before the nodes
    assert made["values"]["devicePlugin"] == {"config": {"name": sharing.PLUGIN_MAP}}
    assert "devicePlugin" not in made["values_after"] and made["sharing"]["config_maps"] == {}
    todo = sharing.to_do(read(there), made["sharing"])
    assert todo["gone"] == [sharing.PLUGIN_MAP]
    assert todo["nodes"] == [{"name": "a", "empty": False, "may_stop": False, "layout": None, "restart": [],
                              "cordoned": False, "labels": {
                                  "baremetal.nvidia/sharing": None, "nvidia.com/device-plugin.config": None}}]


def _installed(labels: dict[str, dict[str, str]], strategy: str, **more: Any) -> dict[str, Any]:
    return cluster(labels, operator={"version": "v26.7.0", "values": {"mig": {"strategy": strategy}}}, **more)


PARTS = {"baremetal.nvidia/sharing": "parts", "nvidia.com/mig.config": "all-1g.10gb"}


def test_the_strategy_of_mig_goes_with_the_last_group_that_needed_it() -> None:
    """First the nodes, then the strategy: pods on a node that waits go on asking for what it offers."""
    made = fleet({"a": (H100, [])}, _installed({"a": PARTS}, "mixed"))
    assert made["values"]["mig"] == {"strategy": "mixed"} and "mig" not in made["values_after"]
    assert made["sharing"]["labels"]["a"]["nvidia.com/mig.config"] == "all-disabled"
    # the run after it: nothing tells of groups any more, and nothing is left to take back
    after = fleet({"a": (H100, [])}, cluster({"a": {"nvidia.com/mig.config": "all-disabled"}}))
    assert "mig" not in after["values"] and after["values_after"] is None


@pytest.mark.parametrize(
    ("labels", "more"),
    [
        ({"a": {"nvidia.com/mig.config": "all-1g.10gb"}}, {}),    # no group brought it
        ({"a": PARTS, "b": {"nvidia.com/mig.config": "all-balanced"}}, {}),    # somebody else's node needs it, too
        ({"a": PARTS}, {"values": {"mig": {"strategy": "mixed"}}}),    # asked for
    ],
)
def test_a_strategy_of_mig_that_is_not_the_groups_own_stays(
    labels: dict[str, dict[str, str]], more: dict[str, Any]
) -> None:
    made = fleet({"a": (H100, [])}, _installed(labels, "mixed", **more))
    assert made["values"]["mig"] == {"strategy": "mixed"} and made["values_after"] is None


def test_the_strategy_that_mps_needed_goes_with_it() -> None:
    mps = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
    there = _installed({"a": {"baremetal.nvidia/sharing": "web", "nvidia.com/device-plugin.config": "web"}}, "none",
                       config_maps={sharing.PLUGIN_MAP: {"web": mps}})
    made = fleet({"a": (L40S, [])}, there)
    assert made["values"]["mig"] == {"strategy": "none"} and "mig" not in made["values_after"]


def test_a_node_that_a_run_left_cordoned_is_let_in_again() -> None:
    there = cluster({"a": {}, "b": {"nvidia.com/mig.config": "all-1g.10gb"}})
    for node in there["nodes"]:
        node["cordoned"] = True
    todo = sharing.to_do(read(there), fleet({"a": (L40S, [])}, there)["sharing"])
    assert [(one["name"], one["labels"], one["layout"], one["empty"], one["cordoned"]) for one in todo["nodes"]] == [
        ("a", {}, None, False, True), ("b", {}, "all-1g.10gb", False, True)]


@pytest.mark.parametrize(
    ("gpu", "group", "labels", "empty"),
    [
        (L40S, BATCH, {}, False),
        (L40S, SERVING, {}, True),
        (H100, SEVENTHS, {}, True),
        (H100, SEVENTHS, {"nvidia.com/mig.config": "all-1g.10gb"}, False),
        (L40S, BATCH, {"baremetal.nvidia/sharing": "web", "nvidia.com/device-plugin.config": "web"}, True),
        (H100, {"name": "one", "strategy": "none"}, {"nvidia.com/mig.config": "all-1g.10gb"}, True),
    ],
)
def test_a_node_is_emptied_where_pods_would_lose_their_gpus(
    gpu: str, group: dict[str, Any], labels: dict[str, str], empty: bool
) -> None:
    mps = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
    there = cluster({"a": labels}, config_maps={sharing.PLUGIN_MAP: {"web": mps}})
    todo = sharing.to_do(read(there), fleet({"a": (gpu, [group])}, there)["sharing"])
    assert todo["nodes"][0]["empty"] is empty


def test_nothing_is_left_to_do_after_it_was_done() -> None:
    first = fleet({"a": (L40S, [BATCH])})
    labels = first["sharing"]["labels"]["a"]
    there = cluster({"a": {key: value for key, value in labels.items() if value is not None}},
                    config_maps=first["sharing"]["config_maps"],
                    operator={"version": "v26.7.0", "values": first["values"]})
    again = planned("a", L40S, [BATCH], there)
    assert [one for one in again["changes"] if one["role"] == "gpu_operator" and one["action"] != "crd"] == []
    todo = sharing.to_do(read(there), plan_fleet([again])["operator"]["sharing"])
    assert todo["nodes"] == [] and todo["gone"] == [] and todo["config_maps"][0]["stale"] == []


def test_a_layout_that_nodes_still_have_stays_until_they_have_another() -> None:
    old = yaml.safe_dump({"version": "v1", "mig-configs": {"own-1": [{"devices": [0]}], "own-0": [{"devices": [1]}]}})
    there = cluster({"a": {"baremetal.nvidia/sharing": "own", "nvidia.com/mig.config": "own-1"}},
                    config_maps={sharing.MIG_MAP: {"config.yaml": old}})
    todo = sharing.to_do(read(there), fleet({"a": (H100, [OWN])}, there)["sharing"])
    texts = (todo["config_maps"][0][key]["config.yaml"] for key in ("first", "data"))
    first, last = (yaml.safe_load(text)["mig-configs"] for text in texts)
    assert "own-1" in first and "own-0" not in first and "own-1" not in last
    (node,) = todo["nodes"]
    assert node["layout"] in last and node["restart"] == ["nvidia-mig-manager"] and node["empty"]


def test_what_is_new_in_a_configuration_reaches_a_node_by_a_restart() -> None:
    old = {"whole": "version: v1\n", "old": "version: v1\n"}
    there = cluster({"a": {}, "b": {}}, config_maps={sharing.PLUGIN_MAP: old})
    todo = sharing.to_do(read(there), fleet({"a": (L40S, [BATCH]), "b": (L40S, [])}, there)["sharing"])
    assert [(one["name"], one["restart"]) for one in todo["nodes"]] == [("a", [
        "nvidia-device-plugin-daemonset", "nvidia-device-plugin-mps-control-daemon", "gpu-feature-discovery"])]
    assert todo["config_maps"][0]["stale"] == ["old"]


@pytest.mark.skipif(not DEFAULTS.is_file(), reason=f"MIG manager's own layouts are not in {DEFAULTS}")
def test_counts_are_those_of_mig_managers_own_layouts() -> None:
    text = yaml.safe_load(DEFAULTS.read_text())["data"]["config.yaml"]
    layouts = yaml.safe_load(text)["mig-configs"]
    wrong = []
    names = ("a30", "a100-40gb", "a100-80gb", "h100-80gb", "h100-94gb", "h100-96gb", "h200", "gh200-144gb", "b200",
             "gb200", "rtx-pro-6000")
    rows = [row for row in map(matrix.load().mig, names) if row is not None]
    for row in rows:
        for profile in row.profiles:
            entries = layouts.get("all-" + profile.replace("+", "."), [])
            counts = {one["mig-devices"].get(profile) for one in entries}
            if counts and mig_layout.most(row, profile) not in counts:
                wrong.append((row.name, profile, mig_layout.most(row, profile), counts))
    assert wrong == []
