# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes stay with their NVIDIADriver object: those led to another lose their driver pods all at once."""
from __future__ import annotations

from typing import Any

from operator_plans import OBJECTS, OLD, OPERATOR, applied, cluster, fleet

NEWER = {**OPERATOR, "gpu_driver_version": "580.178.04"}
UNASKED = {"gpu_driver_owner": "operator", "gpu_kernel_policy": "off"}


def versions(made: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["spec"]["version"] for one in made["drivers"]}


def three() -> dict[str, Any]:
    there = cluster("a", "b", "c", values=OBJECTS)
    return applied(there, fleet(there, a=OPERATOR, b=OPERATOR, c=OPERATOR))


def test_one_host_with_a_newer_driver_moves_alone() -> None:
    made = fleet(three(), a=NEWER, b=OPERATOR, c=OPERATOR)
    assert versions(made) == {"driver-580": "580.173.02", "driver-580.178.04": "580.178.04"}
    assert made["nodes"] == {"a": {"driver.config": "driver-580.178.04"}} and made["unused"] == []
    again = fleet(applied(three(), made), a=NEWER, b=OPERATOR, c=OPERATOR)
    assert versions(again) == versions(made) and again["nodes"] == {} and again["former"] is None


def test_a_run_for_one_host_alone_gives_it_an_object_of_its_own() -> None:
    made = fleet(three(), a=NEWER)
    assert versions(made) == {"driver-580.178.04": "580.178.04"} and made["unproved"] == []
    assert made["nodes"] == {"a": {"driver.config": "driver-580.178.04"}} and made["unused"] == []


def test_the_rest_follows_in_place() -> None:
    there = three()
    moved = applied(there, fleet(there, a=NEWER, b=OPERATOR, c=OPERATOR))
    made = fleet(moved, a=NEWER, b=NEWER, c=NEWER)
    assert versions(made) == {"driver-580": "580.178.04", "driver-580.178.04": "580.178.04"}
    assert made["nodes"] == {} and made["unused"] == []
    # a new node comes to one of the two
    moved["nodes"].append(cluster("d")["nodes"][0])
    assert fleet(moved, a=NEWER, b=NEWER, c=NEWER, d=NEWER)["nodes"] == {"d": {"driver.config": "driver-580"}}


def test_an_upgrade_is_in_place_where_most_nodes_want_it() -> None:
    assert versions(fleet(three(), a=NEWER, b=NEWER, c=NEWER)) == {"driver-580": "580.178.04"}
    made = fleet(three(), a=NEWER, b=NEWER, c=OPERATOR)
    assert versions(made) == {"driver-580": "580.178.04", "driver-580.173.02": "580.173.02"}
    assert made["nodes"] == {"c": {"driver.config": "driver-580.173.02"}}


def test_another_branch_is_another_object() -> None:
    made = fleet(three(), a=OLD, b=OLD, c=OLD)
    assert versions(made) == {"driver-550": "550.90.07"} and made["unused"] == ["driver-580"]


def test_an_object_of_somebody_else_is_not_written_over() -> None:
    theirs = {"name": "driver-580", "spec": {"version": "580.126.20", "nodeSelector": {"pool": "other"}}}
    made = fleet(cluster("a", values=OBJECTS, drivers=[theirs]), a=OPERATOR)
    assert versions(made) == {"driver-580.173.02": "580.173.02"}


def test_the_charts_own_driver_has_a_version_in_its_object() -> None:
    there = cluster("a", "b", values=None, operator={"version": "v26.7.0", "values": {}})
    made = fleet(there, a=UNASKED, b=OLD)
    assert versions(made) == {"driver-550": "550.90.07", "driver-595": "595.91.07"} and made["conflicts"] == []


def test_a_driver_that_nobody_can_name_is_refused() -> None:
    there = cluster("a", "b", values=None, operator={"version": "v26.9.0", "values": {}})
    made = fleet(there, a=UNASKED, b=OLD)
    assert {"path": "driver.version", "wanted": {"a": None, "b": "550.90.07"}} in made["conflicts"]
