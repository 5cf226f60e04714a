# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""The driver in all its moods: absent, well, mismatched, hung, from somebody else."""

from __future__ import annotations

import os
import pathlib
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import driver, processes, smi
from facts_helpers import AsHost, Programs

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)  Tue Sep 23\nGCC version:  gcc version 12.2.0\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:  gcc version 11.4.0\n"
REPORT = pathlib.Path(__file__).with_name("nvidia-smi-q-x.xml").read_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OPEN, {"version": "580.95.05", "flavour": "open"}),
        (CLOSED, {"version": "535.183.01", "flavour": "proprietary"}),
        (CLOSED.replace("535.183.01", "610.43"), {"version": "610.43", "flavour": "proprietary"}),
    ],
)
def test_loaded(host, text, expected):
    host.put("/proc/driver/nvidia/version", text)
    assert driver.loaded(host.tree) == expected


def test_not_loaded_and_not_known(host):
    with pytest.raises(ValueError):
        driver.loaded(host.tree)
    host.put("/proc/modules", "")
    assert driver.loaded(host.tree) is None


def test_loaded_without_touching_the_driver(host):
    host.put("/proc/driver/nvidia/version", CLOSED)
    host.put("/sys/module/nvidia/version", "580.95.05\n")
    host.put("/sys/module/nvidia/taint", "OE\n")
    assert driver.loaded(host.tree, touch=False) == {"version": "580.95.05", "flavour": "open"}
    host.put("/sys/module/nvidia/taint", "POE\n")
    assert driver.loaded(host.tree, touch=False)["flavour"] == "proprietary"


@pytest.mark.parametrize(
    ("files", "links", "version"),
    [
        ({}, {}, None),
        (
            {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05": ""},
            {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "libnvidia-ml.so.580.95.05"},
            "580.95.05",
        ),
        (
            {"/usr/lib64/libnvidia-ml.so.570.1.2": ""},
            {"/usr/lib64/libnvidia-ml.so.1": "libnvidia-ml.so.570.1.2"},
            "570.1.2",
        ),
        (
            {"/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.535.261.03": ""},
            {
                "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "/etc/alternatives/glx--libnvidia-ml.so.1-x86_64-linux-gnu",
                "/etc/alternatives/glx--libnvidia-ml.so.1-x86_64-linux-gnu": "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1",
                "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1": "libnvidia-ml.so.535.261.03",
            },
            "535.261.03",
        ),
        ({"/usr/local/cuda/targets/x86_64-linux/lib/stubs/libnvidia-ml.so": ""}, {}, None),
    ],
)
def test_library(host, files, links, version):
    host.many(files)
    for path, target in links.items():
        host.link(path, target)
    assert driver.library(host.tree) == version


@pytest.mark.parametrize(
    ("files", "installed", "facts", "origin"),
    [
        ({}, {}, {}, "none"),
        ({}, {"libnvidia-ml1": "1", "nvidia-kernel-dkms": "1"}, {"driver": {"library": "535.1"}}, "packages"),
        ({}, {"nvidia-driver-580-open": "1"}, {}, "packages"),
        # one package of NVIDIA's from R590 on, which have no branch in their names, is what a cut-off transaction may leave
        ({}, {"libnvidia-compute": "615.71.09-1ubuntu1"}, {"driver": {"library": "615.71.09"}}, "packages"),
        ({}, {"libnvidia-ml": "580.159.03-1.el9"}, {"driver": {"library": "580.159.03"}}, "packages"),
        ({}, {"nvidia-dkms": "615.71.09-1ubuntu1"}, {}, "packages"),
        ({}, {"nvidia-driver-pinning-580": "1", "nvidia-driver-assistant": "1"}, {}, "none"),
        ({}, {"nvidia-driver-pinning-580": "1"}, {"driver": {"library": "580.1"}}, "runfile"),
        ({}, {"nvidia-container-toolkit": "1"}, {}, "none"),
        ({"/usr/bin/nvidia-uninstall": ""}, {}, {"driver": {"library": "535.1"}}, "runfile"),
        ({}, {}, {"driver": {"library": "535.1"}}, "runfile"),
        ({"/run/nvidia/driver/usr/bin/nvidia-smi": ""}, {}, {"driver": {"loaded": {"version": "1"}}}, "operator"),
        ({}, None, {}, "none"),
    ],
)
def test_origin(host, files, installed, facts, origin):
    host.many(files)
    assert driver.origin(host.tree, installed, facts) == origin


def test_origin_is_not_guessed(host):
    with pytest.raises(ValueError, match="could not be read"):
        driver.origin(host.tree, None, {"driver": {"library": "535.1"}})


# ---- nvidia-smi


def ask(host, as_host, result):
    host.put("/usr/bin/nvidia-smi")
    programs = Programs(nvidia_smi=result)
    return as_host(smi.read, programs), programs


def test_smi_is_not_started_when_the_module_is_not_loaded(host, as_host):
    """It would load it."""
    host.put("/usr/bin/nvidia-smi")
    host.put("/proc/modules", "")
    programs = Programs(nvidia_smi=children.Result(rc=0, out=REPORT))
    context = as_host(driver.read, programs)
    assert programs.calls == [] and context.facts["driver"]["loaded"] is None
    smi_facts = context.facts["driver"]["smi"]
    assert (smi_facts["status"], smi_facts["rc"]) == ("failed", None) and "not loaded" in smi_facts["error"]
    assert context.facts["health"] == {"ecc_uncorrected": None, "row_remap_failure": None} and context.unknown == {}


def test_smi_is_started_when_the_module_is_loaded(host, as_host):
    host.put("/usr/bin/nvidia-smi")
    host.put("/proc/driver/nvidia/version", OPEN)
    programs = Programs(nvidia_smi=children.Result(rc=0, out=REPORT))
    assert as_host(driver.read, programs).facts["driver"]["smi"]["status"] == "ok" and len(programs.calls) == 1


def test_smi_missing(host, as_host):
    context = as_host(smi.read)
    assert context.facts["driver"]["smi"] == {
        "status": "missing",
        "rc": None,
        "driver": None,
        "cuda": None,
        "gpus": None,
    }
    assert context.facts["health"] == {"ecc_uncorrected": None, "row_remap_failure": None} and context.unknown == {}


def test_smi_ok(host, as_host):
    context, programs = ask(host, as_host, children.Result(rc=0, out=REPORT))
    assert programs.calls == [["/usr/bin/nvidia-smi", "-q", "-x"]]
    assert context.facts["driver"]["smi"] == {
        "status": "ok",
        "rc": 0,
        "driver": "535.183.01",
        "cuda": "12.2",
        "gpus": 2,
    }
    assert context.facts["smi_gpus"]["0000:3b:00.0"] == {
        "persistence": True, "mig": {"mode": False, "pending": True}, "fabric": {"state": "Completed", "status": "Success"},
        "ecc_uncorrected": 3, "row_remap_failure": True,
    }  # fmt: skip
    assert context.facts["smi_gpus"]["0000:5e:00.0"] == {
        "persistence": False, "mig": None, "fabric": None, "ecc_uncorrected": None, "row_remap_failure": False,
    }  # fmt: skip
    assert context.facts["health"] == {"ecc_uncorrected": 3, "row_remap_failure": True}


def test_smi_failed(host, as_host):
    context, _rest = ask(
        host, as_host, children.Result(rc=18, out="Failed to initialize NVML: Driver/library version mismatch\n", pid=1)
    )
    answer = context.facts["driver"]["smi"]
    assert (answer["status"], answer["rc"], answer["driver"]) == ("failed", 18, None)
    assert "version mismatch" in answer["error"]
    assert {"health.ecc_uncorrected", "health.row_remap_failure"} <= set(context.unknown)


@pytest.mark.parametrize("text", ["", "<html/>", "not xml", '<!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log/>'])
def test_smi_answers_nonsense(host, as_host, text):
    context, _rest = ask(host, as_host, children.Result(rc=0, out=text))
    assert (
        context.facts["driver"]["smi"]["status"] == "failed"
        and "cannot be read" in context.facts["driver"]["smi"]["error"]
    )


def test_smi_timeout(host, as_host):
    context, _rest = ask(host, as_host, children.Result(rc=124, timed_out=True, stuck=True, pid=77))
    assert context.facts["driver"]["smi"] == {
        "status": "timeout",
        "rc": None,
        "driver": None,
        "cuda": None,
        "gpus": None,
    }
    assert "cannot be killed (pid 77" in context.unknown["health.ecc_uncorrected"]


def test_smi_in_the_operators_driver_root(host, as_host):
    host.put("/run/nvidia/driver/usr/bin/nvidia-smi")
    programs = Programs(chroot=children.Result(rc=0, out=REPORT))
    assert as_host(smi.read, programs).facts["driver"]["smi"]["status"] == "ok"
    assert programs.calls == [["chroot", "/run/nvidia/driver", "nvidia-smi", "-q", "-x"]]


def test_another_tree_is_not_asked(host):
    host.put("/usr/bin/nvidia-smi")
    context = host.read(smi.read, runner=lambda *_a, **_k: pytest.fail("started"))
    assert "another tree" in context.unknown["driver.smi"]


# ---- hung tasks


def task(host, pid, comm, state="S", wchan="0", stack="", tid=None):
    base = f"/proc/{pid}/task/{tid or pid}"
    for where in (base, f"/proc/{pid}") if not tid else (base,):
        host.put(f"{where}/stat", f"{tid or pid} ({comm}) {state} 1 1 1 0\n")
        host.put(f"{where}/wchan", wchan)
        host.put(f"{where}/stack", stack)


STACK = "[<0>] os_acquire_rwlock_write+0x3e/0x60 [nvidia]\n[<0>] _nv012345rm+0x10/0x20 [nvidia]\n"


def test_hung_tasks(host):
    task(host, 1, "systemd")
    task(host, 10, "nvidia-smi", "D", "rwsem_down_write_slowpath", STACK)
    task(host, 11, "jbd2/sda1-8", "D", "jbd2_log_wait_commit", "[<0>] jbd2_log_wait_commit+0x1/0x2 [jbd2]\n")
    task(host, 12, "python3 (x) y", "D", "nv_drm_wait", "")
    task(host, 13, "nvidia-smi", "S", "0", STACK)
    task(host, 14, "trainer")
    task(host, 14, "worker", "D", "0", "[<0>] uvm_api_x+0x1 [nvidia_uvm]\n", tid=15)
    rows = host.read(processes.read_hung).facts["driver"]["hung_tasks"]
    assert [(row["pid"], row["command"]) for row in rows] == [(10, "nvidia-smi"), (12, "python3 (x) y"), (14, "worker")]
    assert rows[0]["where"] == "os_acquire_rwlock_write+0x3e/0x60 [nvidia]"


def test_no_hung_tasks(host):
    task(host, 1, "systemd")
    assert host.read(processes.read_hung).facts["driver"]["hung_tasks"] == []


def test_a_task_that_moves_on_is_not_hung(host, monkeypatch):
    task(host, 10, "nvidia-smi", "D", "nv_wait", "")
    looks = []

    def look(tree):
        looks.append(1)
        return {} if len(looks) == 3 else {("10", "10"): {"pid": 10}}

    monkeypatch.setattr(processes, "in_driver", look)
    assert host.read(processes.read_hung).facts["driver"]["hung_tasks"] == [] and len(looks) == 3


def test_without_proc(host):
    assert "driver.hung_tasks" in host.read(processes.read_hung).unknown


def test_with_hung_tasks_nothing_touches_the_driver(host, as_host, monkeypatch):
    host.put("/usr/bin/nvidia-smi")
    host.put("/proc/driver/nvidia/version", OPEN)
    host.put("/sys/module/nvidia/version", "580.95.05\n")
    opened = []
    original = AsHost.read_bytes
    monkeypatch.setattr(
        AsHost, "read_bytes", lambda self, path, limit=1: opened.append(path) or original(self, path, limit)
    )
    programs = Programs(nvidia_smi=children.Result(rc=0, out=REPORT))
    known = {"driver": {"hung_tasks": [{"pid": 10, "command": "nvidia-smi", "where": None}]}}
    context = as_host(driver.read, programs, known=known)
    assert programs.calls == [] and "/proc/driver/nvidia/version" not in opened
    assert "nvidia-smi (10)" in context.unknown["driver.smi"]
    assert context.facts["driver"]["loaded"]["version"] == "580.95.05"


# ---- holders


def holder(host, pid, comm, *targets, cgroup="0::/system.slice/x.service\n"):
    host.put(f"/proc/{pid}/comm", f"{comm}\n")
    host.put(f"/proc/{pid}/cgroup", cgroup)
    host.directory(f"/proc/{pid}/fd")
    for number, target in enumerate(targets):
        host.link(f"/proc/{pid}/fd/{number}", target)


def test_holders(host):
    holder(host, 1, "systemd", "/dev/null")
    holder(host, 100, "nvidia-persiste", "/dev/nvidiactl", "/dev/nvidia0")
    holder(host, 101, "python3", "/dev/nvidia0", "/dev/nvidia1")
    holder(host, 102, "nv-hostengine", "/dev/nvidiactl")
    holder(host, 103, "bash", "/dev/nvme0n1")
    found = host.read(processes.read_holders).facts["driver"]
    assert found["processes"] == 2 and len(found["holders"]) == 2 and all(" (" in one for one in found["holders"])


def test_a_host_without_devices_has_no_holders(host, as_host):
    host.put("/dev/nvme0")
    assert as_host(processes.read_holders).facts["driver"]["processes"] == 0


def test_holders_need_root(host, as_host, monkeypatch):
    host.put("/dev/nvidia0")
    holder(host, 101, "python3", "/dev/nvidia0")
    original = os.listdir

    def closed(path):
        if str(path).endswith("/fd"):
            raise PermissionError(13, "Permission denied", path)
        return original(path)

    monkeypatch.setattr(processes.os, "listdir", closed)
    context = as_host(processes.read_holders)
    assert "needs root" in context.unknown["driver.processes"] and "processes" not in context.facts.get("driver", {})
    holder(host, 102, "sh", cgroup=f"0::/cri-containerd-{'a' * 64}.scope\n")
    with pytest.raises(PermissionError):
        processes.gpu_containers(host.tree)


ID = "a" * 64


def test_gpu_containers(host):
    holder(host, 101, "python3", "/dev/nvidia0", cgroup=f"0::/kubepods.slice/cri-containerd-{ID}.scope\n")
    holder(host, 102, "sh", "/dev/null", cgroup=f"0::/kubepods.slice/cri-containerd-{ID}.scope\n")
    holder(host, 103, "sh", "/dev/null", cgroup=f"0::/kubepods.slice/cri-containerd-{'b' * 64}.scope\n")
    holder(host, 104, "idle", cgroup=f"0::/kubepods.slice/cri-containerd-{'c' * 64}.scope\n")
    host.put("/proc/104/root/dev/nvidiactl")
    holder(host, 105, "kube-proxy", cgroup=f"0::/kubepods.slice/cri-containerd-{'d' * 64}.scope\n")
    host.put("/proc/105/root/dev/nvidiactl")
    host.put("/proc/105/root/dev/kmsg")
    holder(host, 106, "python3", "/dev/nvidia0")
    assert processes.gpu_containers(host.tree) == 2


def test_a_host_that_is_a_container_itself_does_not_count(host):
    holder(host, 101, "python3", "/dev/nvidia0", cgroup=f"0::/machine.slice/libpod-{ID}.scope/user.slice\n")
    host.put("/proc/self/cgroup", f"0::/machine.slice/libpod-{ID}.scope\n")
    assert processes.gpu_containers(host.tree) == 0


def test_no_containers(host):
    holder(host, 106, "python3", "/dev/nvidia0")
    assert processes.gpu_containers(host.tree) == 0


def test_scan_is_quick_on_this_machine():
    from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree

    before = time.monotonic()
    processes.in_driver(Tree())
    assert time.monotonic() - before < 5
