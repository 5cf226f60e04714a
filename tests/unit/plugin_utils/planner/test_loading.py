# SPDX-License-Identifier: GPL-3.0-or-later
"""A host as planned whose nvidia module is not loaded: the plan loads it, or says why nobody can; and verify fails."""
from __future__ import annotations

import copy
from typing import Any

import as_planned
import hosts
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import compare

LOAD = ("gpu_driver", "load", "nvidia")


@pytest.fixture(name="unloaded")
def fixture_unloaded(plan: Any) -> dict[str, Any]:
    """A host on which all is as planned, after a restart that did not load the module."""
    fresh = hosts.fresh()
    facts: dict[str, Any] = as_planned.carry_out(fresh, plan(fresh))
    assert plan(facts)["verdict"] == "ok"
    facts = copy.deepcopy(facts)
    facts["driver"].update(loaded=None, smi={"status": "failed", "rc": 9})
    facts["kernel"]["modules"] = [name for name in facts["kernel"].get("modules") or [] if "nvidia" not in name]
    for gpu in facts["gpus"]:
        gpu["driver"] = None
    return facts


def steps(made: dict[str, Any], key: str = "changes") -> list[tuple[str, str, str]]:
    return [(one["role"], one["action"], one["target"]) for one in made[key]]


def errors(made: dict[str, Any]) -> list[str]:
    return [one["rule"] for one in made["findings"] if one["severity"] == "error"]


def test_it_is_loaded_without_a_restart_and_until_then_the_host_is_not_as_planned(
        plan: Any, unloaded: dict[str, Any]) -> None:
    made = plan(unloaded)
    assert steps(made) == [LOAD] and made["pending"] == [] and errors(made) == []
    (load,) = made["changes"]
    assert load["disruption"] == "none" and unloaded["gpus"][0]["address"] in load["why"]
    assert [line for line in compare.differences(made, unloaded) if "load nvidia" in line]


def test_without_a_module_for_the_running_kernel_verify_fails_and_says_so(
        plan: Any, unloaded: dict[str, Any]) -> None:
    bare = {**unloaded["kernel"]["installed"][0], "release": "6.1.0-99-amd64", "nvidia": None, "initrd": False}
    unloaded["kernel"]["installed"].append(bare)
    unloaded["kernel"]["running"] = bare["release"]
    made = plan(unloaded, gpu_kernel_policy="off")
    assert steps(made) == [] and errors(made) == ["HLT011"]
    (told,) = compare.differences(made, unloaded)
    assert "no nvidia module is loaded" in told and "6.1.0-99-amd64 has none" in told
    assert "restart it: 6.1.0-50-amd64" in told


def test_what_cannot_be_read_of_the_running_kernels_module_is_told_as_that(plan: Any, unloaded: dict[str, Any]) -> None:
    del unloaded["kernel"]["installed"][0]["nvidia"]
    unloaded["unknown"] = {"kernel.installed[6.1.0-50-amd64].nvidia": "the file is damaged"}
    (found,) = [one for one in plan(unloaded)["findings"] if one["rule"] == "HLT011"]
    assert "whether 6.1.0-50-amd64 has one is not known (the file is damaged)" in found["summary"]


def test_a_module_whose_packages_wait_is_not_loaded_before_them(plan: Any, unloaded: dict[str, Any]) -> None:
    del unloaded["packages"]["installed"]["nvidia-modprobe"]
    comes = ("gpu_driver", "install", "nvidia-modprobe")
    found = steps(plan(unloaded))
    assert found.index(comes) < found.index(LOAD)
    hosts.containers(unloaded, gpu_containers=2)
    made = plan(unloaded)
    assert {comes, LOAD} <= set(steps(made, "pending")) and LOAD not in steps(made)
    assert {one["needs"] for one in made["pending"] if one["role"] == "gpu_driver"} == {"gpu_daemon_reload_allowed"}


@pytest.mark.parametrize("change", [
    {"gpus": {"driver": "vfio-pci"}}, {"gpus": {"driver": ...}}, {"driver": {"loaded": ...}},
    {"os": {"virt": "podman"}}, {"driver": {"origin": "operator"}}, {"kernel": {"modules": ["nvidia"]}},
    {"driver": {"nouveau": {"loaded": True, "blocked": True, "in_initramfs": False}}},
])
def test_where_it_is_right_or_not_known_nothing_is_loaded(
        plan: Any, unloaded: dict[str, Any], change: dict[str, dict[str, Any]]) -> None:
    """``...``: the key is absent, so that nobody looked."""
    for part, values in change.items():
        for here in unloaded[part] if isinstance(unloaded[part], list) else [unloaded[part]]:
            for key, value in values.items():
                if value is ...:
                    del here[key]
                else:
                    here[key] = value
    made = plan(unloaded)
    assert LOAD not in steps(made) + steps(made, "pending")
    assert "HLT011" not in [one["rule"] for one in made["findings"]]
