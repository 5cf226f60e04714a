# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input and bad days: each ends in a finding with a way out, or in a change that waits."""
from __future__ import annotations

from typing import Any

import as_planned
import hosts
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.policy import PolicyError


def errors(plan: dict[str, Any]) -> list[str]:
    return [one["rule"] for one in plan["findings"] if one["severity"] == "error"]


def steps(plan: dict[str, Any], role: str = "gpu_driver", key: str = "changes") -> list[tuple[str, str]]:
    return [(one["action"], one["target"]) for one in plan[key] if one["role"] == role]


def test_fresh_debian_gets_the_archives_driver(plan: Any) -> None:
    made = plan(hosts.fresh("debian 12"))
    assert made["verdict"] == "change", made["findings"]
    driver = made["decisions"]["driver"]
    assert (driver["branch"], driver["source"], driver["method"]) == ("535", "distro", "dkms")
    assert driver["packages"]["nvidia-kernel-dkms"] == driver["packages"]["libcuda1"]
    assert driver["dkms"] == {"name": "nvidia-current", "version": driver["version"]}
    assert driver["kernels"] == ["6.1.0-50-amd64"]
    assert ("prove", "6.1.0-50-amd64") in steps(made)
    assert steps(made).index(("prove", "6.1.0-50-amd64")) < steps(made).index(("install", "nvidia-kernel-dkms"))


def test_unknown_branch(plan: Any) -> None:
    made = plan(hosts.fresh(), gpu_driver_branch="599")
    assert made["verdict"] == "blocked"
    assert "DRV001" in errors(made)


def test_version_that_the_source_does_not_have(plan: Any) -> None:
    facts = hosts.fresh()
    facts["packages"]["available"] = {"nvidia-kernel-dkms": ["535.261.03-1"], "libcuda1": ["535.261.03-1"]}
    made = plan(facts, gpu_driver_version="535.183.01", gpu_driver_source="distro")
    assert "PKG001" in errors(made)
    told = next(one for one in made["findings"] if one["rule"] == "PKG001")
    assert "535.183.01" in told["summary"] and "535.261.03" in told["summary"]


def test_a_package_that_is_gone_but_installed_is_no_failure(plan: Any) -> None:
    facts = hosts.fresh()
    done = as_planned.carry_out(facts, plan(facts))
    done["packages"]["available"] = {"nvidia-tesla-470-kernel-dkms": ["470.256.02-1"]}
    assert plan(done)["verdict"] == "ok"


def test_operator_owner_with_a_host_driver(plan: Any) -> None:
    facts = hosts.fresh()
    done = as_planned.carry_out(facts, plan(facts))
    made = plan(done, gpu_driver_owner="operator")
    assert made["verdict"] == "blocked"
    assert "DRV009" in errors(made)
    assert plan(facts, gpu_driver_owner="operator")["decisions"]["driver"]["packages"] == {}


def test_no_gpu_is_said_once_and_is_ok(plan: Any) -> None:
    facts = hosts.fresh(gpus=())
    made = plan(facts)
    assert made["verdict"] == "ok"
    assert made["changes"] == [] and made["pending"] == []
    assert [one["rule"] for one in made["findings"]] == ["GPU002"]


def test_gpus_that_no_driver_serves(plan: Any) -> None:
    made = plan(hosts.fresh("ubuntu 24.04", gpus=("rtx5090", "p40")))
    assert made["verdict"] == "blocked"
    assert "GPU007" in errors(made)
    assert made["decisions"]["driver"]["version"] is None


def test_unknown_gpu_is_never_called_fine(plan: Any) -> None:
    made = plan(hosts.fresh(gpus=("10de:ffff",)))
    assert any(one["rule"] == "GPU001" and one["severity"] == "warning" for one in made["findings"])
    assert made["decisions"]["driver"]["flavour"] != "proprietary"


def test_kernel_without_headers_in_the_archive(plan: Any) -> None:
    facts = hosts.fresh()
    facts["kernel"]["installed"][0]["headers"] = False
    del facts["packages"]["installed"]["linux-headers-6.1.0-50-amd64"]
    facts["packages"]["available"] = {name: ["6.1.192-3"] for name in ("linux-headers-amd64", "linux-image-amd64")}
    made = plan(facts)
    assert "KRN003" in errors(made)
    facts["packages"]["available"]["linux-headers-6.1.0-50-amd64"] = ["6.1.176-1"]
    made = plan(facts)
    assert made["decisions"]["kernel"]["headers"] == ["linux-headers-6.1.0-50-amd64"]
    assert ("headers", "linux-headers-6.1.0-50-amd64") in steps(made, "gpu_kernel")


def test_package_manager_locked_names_the_holder(plan: Any) -> None:
    facts = hosts.fresh()
    facts["packages"]["locked_by"] = {"pid": 4711, "command": "unattended-upgrade"}
    told = [one for one in plan(facts)["findings"] if one["rule"] == "PKG004"]
    assert told and "unattended-upgrade (pid 4711)" in told[0]["summary"]


def test_archive_unreachable(plan: Any) -> None:
    facts = hosts.fresh()
    facts["packages"]["refresh_error"] = "Could not resolve deb.debian.org"
    assert "PKG009" in errors(plan(facts))
    done = as_planned.carry_out(hosts.fresh(), plan(hosts.fresh()))
    done["packages"]["refresh_error"] = "Could not resolve deb.debian.org"
    made = plan(done)
    assert made["verdict"] == "ok"
    assert any(one["rule"] == "PKG009" and one["severity"] == "warning" for one in made["findings"])


def test_disk_too_small_for_the_build(plan: Any) -> None:
    facts = hosts.fresh()
    facts["storage"]["/var"]["free_mb"] = 900
    assert "PKG005" in errors(plan(facts))
    done = as_planned.carry_out(hosts.fresh(), plan(hosts.fresh()))
    done["storage"]["/var"]["free_mb"] = 900
    assert plan(done)["verdict"] == "ok", "nothing is to be built, so the disk is no matter"


def test_reboot_needed_and_not_allowed(plan: Any) -> None:
    facts = hosts.fresh()
    done = as_planned.carry_out(facts, plan(facts))
    made = plan(done, gpu_driver_branch="580", gpu_driver_source="nvidia")
    assert made["verdict"] == "change", made["findings"]
    waiting = steps(made, key="pending")
    assert ("install", "nvidia-kernel-open-dkms") in waiting
    moved = {target for action, target in steps(made) if action in ("install", "upgrade", "remove")}
    assert not moved & {*made["decisions"]["driver"]["packages"], *made["decisions"]["driver"]["remove"]}
    assert ("prove", "6.1.0-50-amd64") in steps(made), "proving disturbs nothing"
    assert {one["needs"] for one in made["pending"]} == {"gpu_reboot_allowed"}
    allowed = plan(done, gpu_driver_branch="580", gpu_driver_source="nvidia", gpu_reboot_allowed=True)
    assert allowed["pending"] == []


def test_gpu_processes_are_not_stopped_without_leave(plan: Any) -> None:
    facts = hosts.fresh()
    done = as_planned.carry_out(facts, plan(facts))
    done["driver"]["processes"] = 3
    wish = {"gpu_driver_branch": "580", "gpu_driver_source": "nvidia", "gpu_reboot_allowed": True}
    assert {one["needs"] for one in plan(done, **wish)["pending"]} == {"gpu_processes_may_stop"}
    assert plan(done, gpu_processes_may_stop=True, **wish)["pending"] == []


def test_nothing_is_reloaded_under_gpu_containers(plan: Any) -> None:
    facts = hosts.containers(hosts.fresh(), gpu_containers=2)
    made = plan(facts)
    assert {one["needs"] for one in made["pending"]} >= {"gpu_daemon_reload_allowed"}
    assert not any(one["disruption"] != "none" for one in made["changes"])
    quiet = plan(hosts.containers(hosts.fresh(), gpu_containers=0))
    assert quiet["pending"] == []


def test_half_installed_driver_is_repaired(plan: Any) -> None:
    facts = hosts.fresh()
    done = as_planned.carry_out(facts, plan(facts))
    done["packages"]["broken"] = ["nvidia-kernel-dkms"]
    made = plan(done)
    assert ("repair", "nvidia-kernel-dkms") in steps(made)
    assert made["verdict"] == "change"


def test_cut_off_run_is_named_and_finished(plan: Any) -> None:
    facts = hosts.containers(hosts.fresh())
    done = as_planned.carry_out(facts, plan(facts))
    done["state"] = {"open": {"role": "gpu_containerd", "run_id": "1", "started": "today", "steps": ["restart"]}}
    made = plan(done)
    assert any(one["rule"] == "SYS003" for one in made["findings"])
    if made["decisions"]["toolkit"]["version"]:
        assert ("restart", "containerd.service") in steps(made, "gpu_containerd")


def test_old_package_lists_are_refreshed_only_when_something_is_fetched(plan: Any) -> None:
    facts = hosts.fresh()
    facts["packages"]["cache_age"] = 900000
    assert ("cache_refresh", "package lists") in steps(plan(facts))
    done = as_planned.carry_out(facts, plan(facts))
    assert plan(done)["changes"] == []


def test_nouveau_is_taken_out_one_kernel_at_a_time(plan: Any) -> None:
    facts = hosts.fresh()
    facts["driver"]["nouveau"] = {"loaded": True, "blocked": False, "in_initramfs": True}
    facts["kernel"]["installed"][0]["nouveau_in_initrd"] = True
    made = plan(facts)
    assert made["decisions"]["driver"]["initramfs"] == ["6.1.0-50-amd64"]
    assert ("initramfs", "6.1.0-50-amd64") in steps(made)
    assert ("reboot", "nouveau") in steps(made, key="pending")


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"gpu_driver_version": 580.10}, ["gpu_driver_version", "580.1", "quote"]),
        ({"gpu_cuda": 12.10}, ["gpu_cuda", "12.1", "quote"]),
        ({"gpu_frameworks": {"pytorch": 2.10}}, ["gpu_frameworks.pytorch", "2.1", "quote"]),
        ({"gpu_driver_flavour": "closed"}, ["gpu_driver_flavour", "closed", "proprietary"]),
        ({"gpu_findings_waived": [{"rule": "KRN001", "reason": "x"}]}, ["gpu_findings_waived[0].until", "date"]),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(plan: Any, policy: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(PolicyError) as caught:
        plan(hosts.fresh(), **policy)
    for word in words:
        assert word in str(caught.value)


def test_waiver_and_its_end(plan: Any) -> None:
    facts = hosts.fresh()
    facts["storage"]["/var"]["free_mb"] = 900
    waiver = {"rule": "PKG005", "host": "gpu-*", "reason": "the volume grows tonight", "until": "2026-12-01"}
    made = plan(facts, gpu_findings_waived=[waiver])
    assert made["verdict"] == "change"
    told = next(one for one in made["findings"] if one["rule"] == "PKG005")
    assert told["severity"] == "info" and "the volume grows tonight" in told["waived"]
    expired = plan(facts, gpu_findings_waived=[{**waiver, "until": "2026-11-29"}])
    assert {"SYS002", "PKG005"} <= set(errors(expired))
    other = plan(facts, name="db-1", gpu_findings_waived=[waiver])
    assert "PKG005" in errors(other)


@pytest.mark.parametrize(("system", "version", "command"), [
    ("rocky 9.6", "8.10", "dnf install python3.11"), ("sles 15.7", "15.7", "zypper install python311"),
    ("ubuntu 22.04", "20.04", "apt-get install python3.9"),
])
def test_a_system_with_an_old_python_needs_a_newer_one(plan: Any, system: str, version: str, command: str) -> None:
    facts = hosts.fresh(system)
    facts["os"]["version"] = version
    del facts["os"]["python"]
    said = next(one for one in plan(facts)["findings"] if one["rule"] == "SYS005")
    assert said["severity"] == "warning" and command in said["remedy"]
    assert "ansible_python_interpreter: /usr/bin/python3." in said["remedy"]
    facts["os"]["python"] = "3.6.8"
    assert "SYS005" in errors(plan(facts)), "known to be too old: refused"
    facts["os"]["python"] = "3.11.13"
    assert not [one for one in plan(facts)["findings"] if one["rule"] == "SYS005"]
