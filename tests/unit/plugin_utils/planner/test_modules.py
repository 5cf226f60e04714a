# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is loaded and set for the driver, as files and as changes of a running host."""

from __future__ import annotations

import copy
import datetime
import hashlib
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import transaction
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix as matrices
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import modules, plan

NOW = datetime.date(2026, 11, 30)
COMMAND = "/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose"
PATHS = (modules.MODPROBE_PATH, modules.LOAD_PATH, modules.NODES_PATH, modules.PERSISTENCE_PATH)
FACTS: dict[str, Any] = {
    "os": {"id": "debian", "version": "12", "codename": "bookworm", "family": "debian", "arch": "x86_64",
           "virt": "none"},
    "kernel": {"running": "6.1.0-50-amd64", "default_boot": "6.1.0-50-amd64", "modules": ["nvidia"], "installed": [
        {"release": "6.1.0-50-amd64", "image": True, "initrd": True, "headers": True, "compiler": "gcc-12",
         "extra_modules": [], "nvidia": {"version": "535.309.01", "flavour": "open", "origin": "dkms", "signed": True,
                                         "vermagic_ok": True}}]},
    "gpus": [{"address": "0000:3b:00.0", "id": "10de:1eb8", "driver": "nvidia", "numa_node": 0, "persistence": True}],
    "nvswitches": [],
    "secure_boot": {"enabled": False, "mok": []},
    "driver": {"loaded": {"version": "535.309.01", "flavour": "open"}, "library": "535.309.01", "origin": "packages",
               "smi": {"status": "ok", "rc": 0, "driver": "535.309.01", "cuda": "12.2", "gpus": 1},
               "nouveau": {"loaded": False, "blocked": True, "in_initramfs": False},
               "persistenced": {"active": True, "command": "/usr/bin/nvidia-persistenced --user nvpd"}},
    "packages": {"manager": "apt", "available": {}, "installed": {
        "nvidia-open-kernel-dkms": "535.309.01-1", "nvidia-smi": "535.309.01-1",
        "nvidia-persistenced": "535.171.04-1"}},
    "files": dict.fromkeys(PATHS),
}


@pytest.fixture
def facts() -> dict[str, Any]:
    return copy.deepcopy(FACTS)


def planned(facts: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return plan("host", facts, policy, matrices.load(()), NOW)


def files(made: dict[str, Any]) -> dict[str, str]:
    return {one["path"]: one["content"] for one in made["decisions"]["driver"]["files"]}


def targets(made: dict[str, Any], action: str) -> list[str]:
    return [one["target"] for one in made["changes"] if one["action"] == action]


def test_uvm_and_device_nodes_are_there_at_boot(facts):
    made = planned(facts)
    assert files(made)[modules.LOAD_PATH].endswith("\nnvidia_uvm\n")
    assert "nvidia-modprobe -c=0 -u" in files(made)[modules.NODES_PATH]
    assert targets(made, "file") == [modules.LOAD_PATH, modules.NODES_PATH]
    assert targets(made, "load") == targets(made, "persistence") == []


def test_files_that_are_right_are_no_change_and_unknown_ones_are_left(facts):
    for path, content in files(planned(facts)).items():
        facts["files"][path] = {"sha256": hashlib.sha256(content.encode()).hexdigest(), "mode": "0644", "owner": "root"}
    assert targets(planned(facts), "file") == []
    del facts["files"]
    assert targets(planned(facts), "file") == []


def test_options_have_the_names_that_debians_modules_have_on_disk(facts):
    asked = {"nvidia": {"NVreg_X": 1}, "nvidia_drm": {"modeset": 1, "fbdev": 0}}
    made = planned(facts, gpu_driver_module_options=asked)
    content = made["decisions"]["driver"]["modprobe"]["content"]
    assert "options nvidia-current-open NVreg_X=1\noptions nvidia-current-open-drm fbdev=0 modeset=1\n" in content
    assert "blacklist nouveau" in content and targets(made, "module_options") == [modules.MODPROBE_PATH]
    assert "options nvidia" not in planned(facts)["decisions"]["driver"]["modprobe"]["content"]


def test_a_daemon_that_leaves_persistence_off_gets_a_drop_in_and_each_gpu_is_named(facts):
    facts["driver"]["persistenced"]["command"] = COMMAND
    facts["gpus"] += [{**facts["gpus"][0], "address": "0000:5e:00.0", "persistence": False}]
    facts["driver"]["smi"]["gpus"] = 2
    made = planned(facts)
    content = files(made)[modules.PERSISTENCE_PATH]
    assert f"ExecStart=\nExecStart={COMMAND.replace('--no-', '--')}\n" in content
    assert targets(made, "persistence") == ["0000:5e:00.0"]
    facts["driver"]["persistenced"]["active"] = False
    assert targets(planned(facts), "persistence") == []


def test_peermem_is_loaded_where_it_is_asked_for(facts):
    made = planned(facts, gpu_driver_peermem=True)
    assert files(made)[modules.LOAD_PATH].endswith("nvidia_uvm\nnvidia_peermem\n") and targets(made, "load") == [
        "nvidia_peermem"]
    assert "DRV016" in [one["rule"] for one in made["findings"]]
    facts["kernel"]["installed"][0]["extra_modules"] = ["mlnx-ofed"]
    facts["kernel"]["modules"] += ["nvidia_peermem"]
    made = planned(facts, gpu_driver_peermem=True)
    assert targets(made, "load") == [] and "DRV016" not in [one["rule"] for one in made["findings"]]


def test_a_reboot_under_gpu_processes_waits_and_names_them(facts):
    facts["driver"].update(processes=7, holders=["python3 (4242)", "python3 (4243)"])
    facts["driver"]["loaded"]["version"] = "535.261.03"
    made = planned(facts, gpu_reboot_allowed=True)
    (waits,) = [one for one in made["pending"] if one["action"] == "reboot"]
    assert waits["needs"] == "gpu_processes_may_stop"
    assert waits["why"] == "GPU processes run: python3 (4242), python3 (4243), 5 more"
    assert [one["needs"] for one in planned(facts)["pending"] if one["action"] == "reboot"] == ["gpu_reboot_allowed"]
    made = planned(facts, gpu_reboot_allowed=True, gpu_processes_may_stop=True)
    assert targets(made, "reboot") == ["nvidia module"]


def test_a_reboot_waits_where_nobody_knows_of_gpu_processes_and_says_why(facts):
    facts["driver"]["loaded"]["version"] = "535.261.03"
    facts["unknown"] = {"driver.processes": "permission denied: needs root to read /proc/7/fd"}
    made = planned(facts, gpu_reboot_allowed=True)
    (waits,) = [one for one in made["pending"] if one["action"] == "reboot"]
    assert waits["needs"] == "gpu_processes_may_stop"
    assert waits["why"] == "whether GPU processes run is not known: permission denied: needs root to read /proc/7/fd"
    assert targets(made, "reboot") == []
    facts["driver"]["processes"] = 0
    assert targets(planned(facts, gpu_reboot_allowed=True), "reboot") == ["nvidia module"]


def test_what_a_killed_run_left_is_repaired(facts):
    facts["files"]["/usr/sbin/policy-rc.d"] = {"sha256": hashlib.sha256(transaction.DENY.encode()).hexdigest()}
    assert targets(planned(facts), "recover") == ["/usr/sbin/policy-rc.d"]
    assert targets(planned(facts), "repair") == []
    assert targets(planned(facts, gpu_kernel_policy="off"), "repair") == ["/usr/sbin/policy-rc.d"]
    facts["files"]["/usr/sbin/policy-rc.d"] = {"sha256": hashlib.sha256(b"somebody's own").hexdigest()}
    assert targets(planned(facts), "recover") == targets(planned(facts), "repair") == []
