# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a run does not plan keep what they have; hosts of other clusters are no node; the second run is quiet."""
from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller.operator import for_cluster
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.cluster import DRIVER_LABEL, TOOLKIT_LABEL, read
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner.operator import sharing
from operator_plans import MINE, OBJECTS, OPERATOR, applied, cluster, fleet, planned

NEWER = {**OPERATOR, "gpu_driver_version": "580.178.04"}
JOBS = {**OPERATOR, "gpu_sharing": [{"name": "jobs", "preset": "batch"}]}
PARTS = {**OPERATOR, "gpu_sharing": [{"name": "parts", "strategy": "mig", "mig_profile": {"1g.10gb": 7}}]}
OTHER_PARTS = {**OPERATOR, "gpu_sharing": [{"name": "other", "strategy": "mig", "mig_profile": {"2g.20gb": 3}}]}


@pytest.mark.parametrize("values", [None, {}])
def test_a_host_with_its_own_driver_and_toolkit_is_labelled_first_and_stays_so(values: dict[str, Any] | None) -> None:
    there = cluster("a", "b", values=values)
    first = fleet(there, a=OPERATOR, b=MINE)
    assert first["nodes"] == {"b": {DRIVER_LABEL: "pre-installed", TOOLKIT_LABEL: "false"}}
    assert first["values"]["driver"]["enabled"] is True and first["values"]["toolkit"]["enabled"] is True
    second = fleet(applied(there, first), a=OPERATOR, b=MINE)
    assert second["nodes"] == {} and second["values"] == first["values"] and second["former"] is None


def test_a_host_that_gives_its_driver_up_gets_both_from_the_operator() -> None:
    there = cluster("a", "b", values=None)
    after = applied(there, fleet(there, a=OPERATOR, b=MINE))
    assert fleet(after, a=OPERATOR, b=OPERATOR)["nodes"] == {"b": {DRIVER_LABEL: None, TOOLKIT_LABEL: None}}


def test_a_host_without_gpus_is_not_labelled() -> None:
    there = cluster("a", "b", values=None)
    made = for_cluster([planned(there, "a", OPERATOR), planned(there, "b", MINE, gpus=[])], there)
    assert made is not None and made["labels"] == {}


def test_what_is_switched_on_for_nodes_that_nobody_plans_stays_on() -> None:
    there = cluster("a", "b", values={})
    after = applied(there, fleet(there, a=OPERATOR, b=MINE))
    driver, toolkit = fleet(after, b=MINE)["unproved"]
    assert driver.startswith("driver.enabled would become false, and a, which this run does not plan")
    assert toolkit.startswith("toolkit.enabled would become false, and a, which this run does not plan")
    assert fleet(after, a=OPERATOR)["unproved"] == []
    asked = {**after, "values": {"driver": {"enabled": False}, "toolkit": {"enabled": False}}}
    assert fleet(asked, b=MINE)["unproved"] == []


def test_an_object_that_serves_nodes_that_nobody_plans_keeps_its_driver() -> None:
    there = cluster("a", "b", "c", values=OBJECTS)
    after = applied(there, fleet(there, a=OPERATOR, b=OPERATOR, c=OPERATOR))
    (told,) = fleet(after, a=NEWER, b=NEWER)["unproved"]
    assert told.startswith("NVIDIADriver driver-580 would go from 580.173.02 to 580.178.04, and c, which this run "
                           "does not plan, have their driver from it: plan these nodes too")
    assert fleet(after, a=NEWER, b=NEWER, c=NEWER)["unproved"] == []
    assert fleet(after, a=OPERATOR)["unproved"] == []


def test_what_nodes_of_groups_rely_on_stays_while_nobody_plans_them() -> None:
    there = cluster("a", "b", "c", values={})
    first = fleet(there, a=JOBS, b=OPERATOR, c=OPERATOR)
    after = applied(there, first)
    (there_now,) = first["sharing"]["config_maps"]
    without = fleet(after, b=OPERATOR)
    assert without["sharing"] == {"config_maps": [], "gone": [], "nodes": []}
    assert without["values"]["devicePlugin"] == first["values"]["devicePlugin"] and without["values_after"] is None
    web = {**OPERATOR, "gpu_sharing": [{"name": "web", "preset": "serving"}]}
    (beside,) = fleet(after, b=web)["sharing"]["config_maps"]
    assert there_now["data"].items() <= beside["data"].items() and len(beside["data"]) == 3
    assert beside["stale"] == [] and beside["first"] == beside["data"]
    # the same hosts, all of them planned: now it goes
    everybody = fleet(after, a=OPERATOR, b=OPERATOR, c=OPERATOR)
    assert everybody["sharing"]["gone"] == [sharing.PLUGIN_MAP] and everybody["values_after"] is not None


def test_a_layout_of_a_node_that_nobody_plans_stays() -> None:
    there = cluster("a", "b", values={})
    after = applied(there, fleet(there, a=PARTS, b=OPERATOR))
    (beside,) = fleet(after, b=OTHER_PARTS)["sharing"]["config_maps"]
    layouts = yaml.safe_load(beside["data"][sharing.MIG_KEY])["mig-configs"]
    assert [name.split("-")[0] for name in sorted(layouts)] == ["all", "other", "parts"]


def test_hosts_of_other_clusters_are_not_the_only_node() -> None:
    older = {**OPERATOR, "gpu_driver_version": "550.90.07"}
    made = fleet(cluster("a", values={}), a=OPERATOR, b=MINE, c=older)
    assert made["nodes"] == {"a": {"driver.config": "driver-580"}}


@pytest.mark.parametrize(("hosts", "found"), [
    (["10.0.0.5"], {"10.0.0.5": "g1.a.example"}),    # the only one there is
    (["10.0.0.5", "10.0.0.6"], {}),
    (["g1", "10.0.0.6"], {"g1": "g1.a.example"}),
    (["g1.b.example"], {"g1.b.example": "g1.a.example"}),    # another network's name for it
    (["g1.a.example", "g1.b.example"], {"g1.a.example": "g1.a.example"}),
    (["g1.b.example", "g1.c.example"], {}),
])
def test_a_guess_counts_where_nobody_else_could_be_the_node(hosts: list[str], found: dict[str, str]) -> None:
    here = read({"nodes": [{"name": "g1.a.example", "labels": {"nvidia.com/gpu.present": "true"}}]})
    assert here is not None and here.nodes_of(hosts) == found


def test_an_object_that_the_plan_replaces_is_not_judged() -> None:
    precompiled = {"gpu_driver_owner": "operator", "gpu_kernel_policy": "off", "gpu_driver_branch": "580",
                   "gpu_driver_method": "precompiled"}
    there = cluster("a", values=OBJECTS)
    after = applied(there, fleet(there, a=precompiled))
    after["drivers"][0]["spec"]["version"] = "580.173.02"    # by hand: such an image has no tag
    plan = planned(after, "a", precompiled)
    assert "OPR060" not in [one["rule"] for one in plan["findings"]] and plan["verdict"] != "blocked"
    assert plan["decisions"]["operator"]["drivers"][0]["spec"]["version"] == "580"
    # nobody asks for a driver, so the object stays: then it counts
    unasked = planned(after, "a", {"gpu_driver_owner": "operator", "gpu_kernel_policy": "off"})
    assert "OPR060" in [one["rule"] for one in unasked["findings"]] and unasked["verdict"] == "blocked"
