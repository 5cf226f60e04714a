# SPDX-License-Identifier: GPL-3.0-or-later
"""How GPUs get into containers: every wish is planned once, and a host as planned has nothing left to do."""
from __future__ import annotations

import copy
from typing import Any

import as_planned
import hosts
import pytest

UNIT = "/etc/systemd/system/nvidia-cdi-refresh.service.d/baremetal-nvidia.conf"
RULE = "/etc/udev/rules.d/71-baremetal-nvidia-dev-char.rules"
SUMS = {f"{name}_1.20.0-1_amd64.deb": "ab" * 32 for name in (
    "nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1")}


def host() -> dict[str, Any]:
    """Return facts of a host that knows about everything here and has none of it."""
    facts = copy.deepcopy(hosts.fresh())
    facts["os"]["init"] = "systemd"
    facts["files"] = {UNIT: None, RULE: None}
    facts.setdefault("containers", {}).update(
        docker={"version": "26.1.5", "active": True, "config": {
            "path": "/etc/docker/daemon.json", "runtimes": {}, "default_runtime": None, "cdi": None}},
        crio={"version": "1.34.1", "active": True, "config": {"runtimes": {}, "default_runtime": None}},
        gpu={"running": 0, "detachable": 0}, dev_char={"devices": 4, "missing": 4}, toolkit=None)
    return facts


def steps(plan: dict[str, Any], key: str = "changes") -> list[tuple[str, str]]:
    return [(one["action"], one["target"]) for one in plan[key] if one["role"] == "gpu_toolkit"]


@pytest.mark.parametrize(("policy", "step"), [
    ({}, ("cdi_unit", UNIT)),
    ({"gpu_container_mode": "cdi"}, ("config", "nvidia-container-runtime.mode")),
    ({"gpu_container_mode": "legacy"}, ("dev_char", RULE)),
    ({"gpu_container_hardened": True}, ("config", "accept-nvidia-visible-devices-as-volume-mounts")),
    ({"gpu_toolkit_config": {"nvidia-container-cli.debug": "/x"}}, ("config", "nvidia-container-cli.debug")),
    ({"gpu_container_runtime": ["containerd", "docker"]}, ("docker", "/etc/docker/daemon.json")),
    ({"gpu_container_runtime": "docker", "gpu_docker_default_runtime": "x"}, ("docker", "/etc/docker/daemon.json")),
    ({"gpu_container_runtime": "crio"}, ("crio", "/etc/crio/crio.conf.d/99-nvidia.conf")),
    ({"gpu_toolkit_offline": {"path": "/srv/x", "sha256": SUMS}}, ("install", "libnvidia-container1")),
])
def test_each_wish_is_planned_once(plan: Any, policy: dict[str, Any], step: tuple[str, str]) -> None:
    made = plan(host(), **policy)
    assert step in steps(made), steps(made)
    done = as_planned.carry_out(host(), made)
    again = plan(done, **policy)
    assert (again["verdict"], again["changes"], again["pending"]) == ("ok", [], [])
    if step[0] != "install" and step[0] != "cdi_unit":
        assert step not in steps(plan(host()))


def test_links_go_with_the_legacy_mode(plan: Any) -> None:
    done = as_planned.carry_out(host(), plan(host(), gpu_container_mode="legacy"))
    made = plan(done, gpu_container_mode="cdi")
    assert ("dev_char", RULE) in steps(made)
    assert made["decisions"]["toolkit"]["dev_char"]["content"] == ""


@pytest.mark.parametrize(("gpu", "waits"), [
    ({"running": 2, "detachable": 2}, True),
    ({"running": 2, "detachable": 0}, False),
    ({"running": 0, "detachable": 0}, False),
])
def test_packages_wait_only_for_containers_that_would_lose_gpus(plan: Any, gpu: dict[str, int], waits: bool) -> None:
    facts = host()
    facts["containers"]["gpu"] = gpu
    made = plan(facts)
    waiting = [one for one in made["pending"] if one["role"] == "gpu_toolkit" and one["action"] == "install"]
    assert bool(waiting) is waits
    assert {one["needs"] for one in waiting} <= {"gpu_daemon_reload_allowed"}
    assert any(one["rule"] == "CTR010" for one in made["findings"]) is waits
    allowed = plan(facts, gpu_daemon_reload_allowed=True)
    assert not [one for one in allowed["pending"] if one["role"] == "gpu_toolkit"]


def test_crio_restarts_and_docker_does_not(plan: Any) -> None:
    facts = as_planned.carry_out(host(), plan(host()))
    facts["containers"]["gpu"] = {"running": 1, "detachable": 0}
    made = plan(facts, gpu_container_runtime=["containerd", "docker", "crio"])
    assert ("docker", "/etc/docker/daemon.json") in steps(made)
    assert ("crio", "/etc/crio/crio.conf.d/99-nvidia.conf") in steps(made, "pending")


def test_a_mode_that_was_set_by_hand_stays(plan: Any) -> None:
    facts = as_planned.carry_out(host(), plan(host()))
    facts["containers"]["toolkit"].update(mode="legacy", config={"nvidia-container-runtime.mode": "legacy"})
    made = plan(facts)
    assert made["decisions"]["toolkit"]["injection"] == "legacy"
    assert not [one for one in steps(made) if one[0] == "config"]


def test_what_could_not_be_read_is_not_written(plan: Any) -> None:
    facts = as_planned.carry_out(host(), plan(host()))
    del facts["containers"]["docker"]["config"]
    del facts["containers"]["toolkit"]["config"]
    made = plan(facts, gpu_container_runtime=["docker"], gpu_container_hardened=True)
    assert not [one for one in steps(made) if one[0] in ("docker", "config")]
    assert [one["rule"] for one in made["findings"] if one["rule"] == "CTR014"] == ["CTR014", "CTR014"]
