# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server dropped, which labels and objects go, and what there is to go back to."""

from __future__ import annotations

from typing import Any

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import cluster, operator
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import cluster as clusters
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner.operator import nodes

DRIVER = "nvidia.com/gpu.deploy.driver"


def _object(name: str, spec: dict[str, Any], kind: str = "ClusterPolicy", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "nvidia.com/v1", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def test_dropped_and_changed_fields_are_named_and_defaults_are_none() -> None:
    spec = {"cdi": {"enabled": True}, "env": [{"name": "X"}], "none": None, "empty": {}, "mig": "single"}
    sent = [_object("a", spec),
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 1}}]
    more = {"cdi": {"enabled": True, "default": False}, "env": [{"name": "X", "value": ""}], "mig": "mixed"}
    kept = _object("a", more)
    assert operator.dropped(sent, [kept]) == ["ClusterPolicy a: spec.mig"]
    kept["spec"]["cdi"] = {}
    assert operator.dropped(sent, [kept]) == ["ClusterPolicy a: spec.cdi.enabled", "ClusterPolicy a: spec.mig"]
    assert operator.dropped(sent, []) == ["ClusterPolicy a: all of it"]


def test_false_that_was_dropped_counts() -> None:
    assert operator.dropped([_object("a", {"x": False})], [_object("a", {})]) == ["ClusterPolicy a: spec.x"]


def test_objects_in_the_way_are_ours_or_cannot_change() -> None:
    ours = _object("old", {}, "NVIDIADriver", labels=dict(cluster.MADE_BY))
    theirs = _object("mine", {}, "NVIDIADriver")
    frozen = _object("h100", {"usePrecompiled": True}, "NVIDIADriver")
    wanted = [{"name": "h100", "spec": {"usePrecompiled": False}}]
    assert operator.in_the_way([ours, theirs, frozen], wanted) == ["h100", "old"]


def _cluster(labels: dict[str, str], ours: tuple[str, ...] = ()) -> clusters.Cluster:
    found = clusters.read({"version": "1.34", "nodes": [{"name": "g1", "labels": labels, "ours": list(ours)}]})
    assert found is not None
    return found


def test_labels_of_ours_go_when_nobody_wants_them_and_others_stay() -> None:
    here = _cluster({DRIVER: "pre-installed", "rack": "7", "driver.config": "a"}, (DRIVER, "driver.config"))
    assert nodes.differing(here, {}, ["g1"]) == {"g1": {DRIVER: None}}
    assert nodes.differing(here, {}, ["g1"], by_objects=False) == {"g1": {"driver.config": None, DRIVER: None}}
    assert nodes.differing(here, {}, []) == {}    # the host was not planned in this run


def test_marks_remember_what_is_ours_and_not_what_was_mended() -> None:
    here = _cluster({"x": "paused-for-driver-upgrade"}, ())
    wanted = {"g1": {"driver.config": "a", "x": "true", DRIVER: None}}
    changes = nodes.differing(here, wanted)
    assert nodes.marks(here, wanted, changes) == {"g1": "driver.config"}


def test_the_way_back_leaves_mended_labels_mended() -> None:
    here = _cluster({"driver.config": "a", "x": "paused-for-driver-upgrade", DRIVER: "pre-installed"})
    changes = {"g1": {"driver.config": "b", "x": "true", DRIVER: None, "new": "1"}}
    assert nodes.former(here, changes) == {"g1": {"driver.config": "a", "new": None}}


def test_a_release_that_was_uninstalled_with_its_history_is_none() -> None:
    read = {"version": "v1.34.1", "namespaces": [{"metadata": {"name": "kube-system", "uid": "u"}}],
            "release": {"chart": "gpu-operator-v26.7.0", "status": "uninstalled", "revision": 3}}
    assert cluster.shape(read)["operator"] is None
    read["release"] = {"chart": "gpu-operator-v26.7.0", "status": "pending-upgrade", "revision": 3,
                       "updated": "2026-11-30 11:33:01.123456789 +0100 CET"}
    told = cluster.shape(read)["operator"]
    assert told["updated"] == 1796034781 and told["status"] == "pending-upgrade"


@pytest.mark.parametrize("told", [{"values": {"a": 1}}, {"release_values": {"a": 1}},
                                  {"release_values": {"a": 1}, "values": {"a": 1}}])
def test_values_of_a_release_are_read_by_their_older_and_newer_name(told: dict[str, Any]) -> None:
    read = {"version": "v1.34.1", "namespaces": [{"metadata": {"name": "kube-system", "uid": "u"}}],
            "release": {"chart": "gpu-operator-v26.7.0", "status": "deployed", **told}}
    assert cluster.shape(read)["operator"]["values"] == {"a": 1}


@pytest.mark.parametrize("told", [{"chart": "gpu-operator-v26.7.0"}, {"chart": "gpu-operator-26.7.0"},
                                  {"app_version": "v26.7.0"}])
def test_the_release_of_a_chart_has_a_v_also_where_a_mirror_left_it_out(told: dict[str, Any]) -> None:
    read = {"version": "v1.34.1", "namespaces": [{"metadata": {"name": "kube-system", "uid": "u"}}],
            "release": {"status": "deployed", **told}}
    assert cluster.shape(read)["operator"]["version"] == "v26.7.0"


def test_trouble_is_told_with_conditions_pods_and_nodes() -> None:
    policy = _object("p", {})
    policy["status"] = {"state": "notReady", "conditions": [
        {"type": "Error", "status": "True", "reason": "OperandNotReady", "message": "no"}]}
    pod = {"metadata": {"name": "d"}, "status": {"phase": "Pending", "containerStatuses": [
        {"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}}
    told = operator.state({"ClusterPolicy": [policy], "Pod": [pod], "Node": [
        {"metadata": {"name": "g1", "labels": {"nvidia.com/gpu-driver-upgrade-state": "upgrade-failed"}}}]})
    assert "ClusterPolicy p is notReady (Error=True OperandNotReady: no)" in told
    assert "Pod d waits (ImagePullBackOff)" in told and "Node g1: the driver upgrade failed" in told
    assert operator.state({}) == "The cluster says nothing of the operator."
