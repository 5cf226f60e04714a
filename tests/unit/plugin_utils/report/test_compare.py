# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof: each way a host can differ from its plan is seen, and a host as planned has none."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import compare
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.rules import kernel_moves

PLAN: dict[str, Any] = {
    "verdict": "ok",
    "changes": [],
    "pending": [],
    "findings": [],
    "decisions": {
        "driver": {"owner": "host", "version": "535.309.01", "flavour": "proprietary", "kernels": ["6.1.0-57-amd64"]}
    },
    "previous": {"driver": {"version": "535.309.01", "predicted": False}},
}
FACTS: dict[str, Any] = {
    "gpus": [{"id": "10de:1eb8"}],
    "kernel": {
        "installed": [
            {
                "release": "6.1.0-57-amd64",
                "initrd": True,
                "nvidia": {"version": "535.309.01", "flavour": "proprietary", "vermagic_ok": True},
            }
        ]
    },
    "driver": {"smi": {"status": "ok", "gpus": 1}, "loaded": {"version": "535.309.01"}},
}


def changed(source: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    result = copy.deepcopy(source)
    place: Any = result
    *way, last = path.split(".")
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[last] = value
    return result


def test_a_host_as_planned_has_no_difference() -> None:
    assert compare.differences(PLAN, FACTS) == []
    assert compare.level_of(FACTS) == "device"
    for good in (None, {"version": "535.309.01", "flavour": "proprietary"}):
        assert compare.differences(PLAN, changed(FACTS, "kernel.installed.0.nvidia_in_initrd", good)) == []


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("kernel.installed.0.nvidia", None, "6.1.0-57-amd64 has no nvidia module"),
        ("kernel.installed.0.nvidia.version", "535.1", "version is 535.1, planned is 535.309.01"),
        ("kernel.installed.0.nvidia.flavour", "open", "flavour is open, planned is proprietary"),
        ("kernel.installed.0.nvidia.vermagic_ok", False, "built for another kernel"),
        ("kernel.installed.0.initrd", False, "no initrd"),
        ("kernel.installed.0.nvidia_in_initrd", {"version": "535.261.03"}, "initrd holds nvidia 535.261.03"),
        ("kernel.installed.0.release", "6.1.0-50-amd64", "not installed"),
        ("kernel.installed", None, "unknown"),
        ("driver.loaded.version", "535.1", "loaded driver is 535.1"),
        ("driver.smi.gpus", 0, "0 of 1 GPUs answer"),
        ("gpus", [{"address": "0000:3b:00.0", "fabric": {"state": "In Progress", "status": None}}],
         "the fabric of 0000:3b:00.0 is not complete: In Progress"),
        ("gpus", [{"address": "0000:3b:00.0", "fabric": {"state": "Completed", "status": "Insufficient Resources"}}],
         "not complete: Completed, Insufficient Resources"),
    ],
)
def test_each_difference_in_the_facts_is_seen(path: str, value: Any, says: str) -> None:
    found = compare.differences(PLAN, changed(FACTS, path, value))
    assert len(found) == 1 and says in found[0]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (
            "changes",
            [{"role": "gpu_kernel", "action": "hold", "target": "linux-image-amd64"}],
            "still to be done: gpu_kernel hold",
        ),
        ("findings", [{"rule": "KRN001", "severity": "error", "subject": "s", "summary": "bad"}], "KRN001 s: bad"),
        ("previous.driver.version", "535.1", "535.1 was applied"),
    ],
)
def test_each_difference_in_the_plan_is_seen(path: str, value: Any, says: str) -> None:
    found = compare.differences(changed(PLAN, path, value), FACTS)
    assert len(found) == 1 and says in found[0]


def test_gpus_that_joined_their_fabric_or_have_none_are_fine() -> None:
    for fabric in ({"state": "Completed", "status": "Success"}, None):
        assert compare.differences(PLAN, changed(FACTS, "gpus", [{"address": "0000:3b:00.0", "fabric": fabric}])) == []


def test_a_predicted_version_may_come_out_differently() -> None:
    plan = changed(PLAN, "previous.driver", {"version": "535.1", "predicted": True})
    assert compare.differences(plan, FACTS) == []


def test_pending_changes_are_no_difference() -> None:
    plan = changed(
        PLAN, "pending", [{"role": "gpu_driver", "action": "upgrade", "target": "x", "needs": "gpu_reboot_allowed"}]
    )
    facts = changed(changed(FACTS, "kernel.installed.0.nvidia.version", "535.1"), "driver.loaded.version", "535.1")
    assert compare.differences(plan, facts) == []


def test_levels() -> None:
    dark = changed(FACTS, "driver.smi", {"status": "missing"})
    dark["driver"]["loaded"] = None
    assert compare.level_of(dark) == "static"
    assert compare.differences(PLAN, dark) == [], "no GPU answers: what is installed is proved"
    assert "nvidia-smi does not answer (missing)" in compare.differences(PLAN, dark, "device")[0]
    assert compare.differences(PLAN, changed(FACTS, "driver.smi.gpus", 0), "static") == []
    with pytest.raises(ValueError, match=r"gpu_verify_level.*'deep'"):
        compare.level_of(FACTS, "deep")


@pytest.mark.parametrize(
    "driver", [None, {}, {"version": None}, {"version": "1", "owner": "operator"}, {"version": "1", "owner": "none"}]
)
def test_a_host_without_a_driver_of_ours_needs_no_module(driver: Any) -> None:
    plan = changed(changed(PLAN, "decisions.driver", driver), "previous", None)
    assert compare.differences(plan, {"kernel": {"installed": [{"release": "6.1.0-57-amd64", "nvidia": None}]}}) == []


def test_what_moved_behind_our_back_is_told_apart() -> None:
    finding = {"rule": "KRN021", "severity": "warning", "subject": "6.1.0-57-amd64", "remedy": "remove it",
               "summary": "6.1.0-57-amd64 came in without a proof: apt-get dist-upgrade by ops"}
    plan = {"findings": [finding, {**finding, "rule": "KRN004"}]}
    assert compare.drift(plan) == [
        "KRN021 6.1.0-57-amd64: 6.1.0-57-amd64 came in without a proof: apt-get dist-upgrade by ops — remove it"]
    assert compare.DRIFT == kernel_moves.DRIFT
