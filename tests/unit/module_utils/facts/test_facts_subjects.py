# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""The small subjects: storage, Secure Boot, services, daemons, files, state, CUDA, health."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import (
    cuda,
    daemons,
    files,
    health,
    secure_boot,
    services,
    state,
    storage,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from facts_helpers import Programs

# ---- storage


def test_storage_of_this_machine():
    context = Context(Tree())
    storage.read(context)
    assert set(context.facts["storage"]) == {"/", "/boot", "/var", "/usr/src"}
    assert all(
        isinstance(row["free_mb"], int) and row["read_only"] is False for row in context.facts["storage"].values()
    )


def test_storage_of_another_tree_is_unknown(host):
    context = host.read(storage.read)
    assert (
        set(context.unknown) == {"storage./", "storage./boot", "storage./var", "storage./usr/src"}
        and context.facts == {}
    )


def test_mounts(host):
    host.put(
        "/proc/self/mountinfo",
        "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
        "21 20 8:2 / /boot ro - xfs /dev/sda2 rw\n22 20 8:3 / /with\\040space rw - ext4 /dev/sda3 rw\nbroken line\n",
    )
    table = storage.mounts(host.tree)
    assert storage.mount_of(table, "/boot/grub").source == "/dev/sda2"
    assert "ro" in storage.mount_of(table, "/boot").options
    assert storage.mount_of(table, "/bootstrap").point == "/"
    assert storage.mount_of(table, "/with space/x").device == "8:3"


def test_the_last_mount_of_a_point_counts(host):
    host.put("/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 8:2 / / rw - overlay overlay rw\n")
    assert storage.mount_of(storage.mounts(host.tree), "/x").fstype == "overlay"


def test_mounts_without_mountinfo(host):
    host.put("/proc/mounts", "/dev/sda1 / ext4 rw 0 0\n")
    assert storage.mounts(host.tree)[0].device is None
    with pytest.raises(OSError):
        storage.mounts(Tree(str(host.path("/nothing"))))


# ---- Secure Boot

EFI = "/sys/firmware/efi"
SECURE = f"{EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def certificate(issuer, subject):
    def name(text):
        return bytes.fromhex("0603550403") + b"\x0c" + bytes([len(text)]) + text.encode()

    return b"\x30\x82" + name(issuer) + b"validity" + name(subject) + b"key"


def signature_list(data, kind="a159c0a5e494a74a87b5ab155c2bf072"):
    entry = bytes(16) + data
    return bytes.fromhex(kind) + struct.pack("<III", 28 + len(entry), 0, len(entry)) + entry


@pytest.mark.parametrize(("value", "enabled"), [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False)])
def test_secure_boot(host, value, enabled):
    host.put(SECURE, value)
    assert host.read(secure_boot.read).facts["secure_boot"]["enabled"] is enabled


def test_keys(host):
    host.put(SECURE, b"\x06\0\0\0\x01")
    keys = signature_list(certificate("some CA", "nvidia dkms key")) + signature_list(bytes(32), "26" * 16)
    host.put(
        f"{EFI}/mok-variables/MokListRT",
        keys + signature_list(certificate("gpu host module key", "gpu host module key")),
    )
    found = host.read(secure_boot.read).facts["secure_boot"]
    assert found.pop("key") == {"certificate": "/var/lib/dkms/mok.pub", "private_key": "/var/lib/dkms/mok.key",
                                "name": None, "mode": None, "enrolled": False, "requested": False}
    assert found == {
        "enabled": True,
        "enforced": True,
        "lockdown": None,
        "mok": ["nvidia dkms key", "gpu host module key"],
        "requested": [],
    }


def test_shim_that_does_not_validate_and_lockdown(host):
    host.put(SECURE, b"\x06\0\0\0\x01")
    host.put(f"{EFI}/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23", b"\x06\0\0\0\x01")
    host.put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    found = host.read(secure_boot.read).facts["secure_boot"]
    assert (found["enabled"], found["enforced"], found["lockdown"]) == (True, False, "integrity")


def test_damaged_keys_are_unknown(host):
    host.put(SECURE, b"\x06\0\0\0\x01")
    host.put(
        f"{EFI}/mok-variables/MokListRT",
        bytes.fromhex("a159c0a5e494a74a87b5ab155c2bf072") + struct.pack("<III", 9999, 0, 20),
    )
    context = host.read(secure_boot.read)
    assert {"secure_boot.mok"} <= set(context.unknown) and "mok" not in context.facts["secure_boot"]
    assert context.facts["secure_boot"]["enabled"] is True


def test_bios_has_no_secure_boot(host):
    host.directory("/sys/firmware")
    assert host.read(secure_boot.read).facts["secure_boot"] == {"enabled": False, "mok": []}


def test_efivars_not_mounted(host):
    host.directory(EFI)
    context = host.read(secure_boot.read)
    assert "not mounted" in context.unknown["secure_boot.enabled"] and "enabled" not in context.facts["secure_boot"]


def test_no_sysfs(host):
    assert "secure_boot" in host.read(secure_boot.read).unknown


# ---- services

SHOW = """Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
UnitFileState=static

Id=docker.service
LoadState=not-found
ActiveState=inactive
UnitFileState=

Id=containerd.service
LoadState=loaded
ActiveState=failed
UnitFileState=disabled

Id=nvidia-fabricmanager.service
LoadState=masked
ActiveState=inactive
UnitFileState=masked
"""


def test_services(host, as_host):
    host.directory("/run/systemd/system")
    context = as_host(services.read, Programs(systemctl=children.Result(rc=0, out=SHOW)))
    assert context.facts["services"] == {
        "nvidia-persistenced.service": {"enabled": True, "active": True, "failed": False},
        "docker.service": None,
        "containerd.service": {"enabled": False, "active": False, "failed": True},
        "nvidia-fabricmanager.service": {"enabled": False, "active": False, "failed": False, "masked": True},
    }


def test_container_without_systemd(host, as_host):
    context = as_host(services.read, Programs(systemctl=children.Result(rc=0, out=SHOW)))
    assert "systemd does not manage" in context.unknown["services"] and context.facts == {}


def test_systemctl_that_hangs(host, as_host):
    host.directory("/run/systemd/system")
    context = as_host(services.read, Programs(systemctl=children.Result(rc=124, timed_out=True, pid=9)))
    assert "did not end in time" in context.unknown["services"]
    part = Programs(systemctl=children.Result(rc=124, timed_out=True, pid=9, out=SHOW))
    context = as_host(services.read, part)
    assert "did not end in time" in context.unknown["services"] and context.facts == {}


def test_daemons(host, as_host):
    known = {"services": {"nvidia-persistenced.service": {"active": True}, "nvidia-fabricmanager.service": None}}
    assert as_host(daemons.read, known=known).facts["driver"] == {
        "persistenced": {"active": True, "command": None},
        "fabricmanager": {"active": False},
    }
    host.put("/proc/1/comm", "sh\n")
    host.put("/proc/7/comm", "nv-fabricmanage\n")
    assert as_host(daemons.read).facts["driver"] == {
        "persistenced": {"active": False, "command": None},
        "fabricmanager": {"active": True},
    }


def test_how_the_persistence_daemon_is_started(host, as_host):
    unit = "/usr/lib/systemd/system/nvidia-persistenced.service"
    host.put(unit, "[Service]\nExecStart=/usr/bin/nvidia-persistenced --user x \\\n --no-persistence-mode\n")
    host.put("/etc/systemd/system/nvidia-persistenced.service.d/10.conf", "[Service]\nNice=1\n")
    known = {"services": {}}
    here = as_host(daemons.read, known=known).facts["driver"]["persistenced"]["command"]
    assert here.split() == ["/usr/bin/nvidia-persistenced", "--user", "x", "--no-persistence-mode"]
    host.put("/etc/systemd/system/nvidia-persistenced.service.d/20.conf",
             "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced --user y\n")
    here = as_host(daemons.read, known=known).facts["driver"]["persistenced"]["command"]
    assert here == "/usr/bin/nvidia-persistenced --user y"


def test_daemons_without_proc(host, as_host):
    assert set(as_host(daemons.read).unknown) == {"driver.persistenced.active", "driver.fabricmanager.active"}


# ---- files


def test_files(host):
    host.directory("/etc/apt")
    host.put("/etc/modprobe.d/baremetal-nvidia.conf", "blacklist nouveau\n").chmod(0o640)
    host.put("/etc/apt/sources.list.d/baremetal-nvidia-cuda.sources", "x")
    host.put("/etc/apt/sources.list.d/other.sources", "x")
    facts = host.read(files.read).facts["files"]
    row = facts["/etc/modprobe.d/baremetal-nvidia.conf"]
    assert row["sha256"] == hashlib.sha256(b"blacklist nouveau\n").hexdigest() and row["mode"] == "0640"
    assert facts["/etc/apt/preferences.d/baremetal-nvidia"] is None
    assert "/etc/apt/sources.list.d/baremetal-nvidia-cuda.sources" in facts
    assert "/etc/apt/sources.list.d/other.sources" not in facts


def test_owner_by_the_trees_own_users(host):
    host.put("/etc/passwd", "root:x:0:0::/:/bin/sh\ngpu:x:1234:1234::/:/bin/sh\n")
    assert [files.owner(host.tree, uid) for uid in (0, 1234, 4321)] == ["root", "gpu", "4321"]


def test_unreadable_file(host):
    host.directory("/etc/modprobe.d/baremetal-nvidia.conf")
    context = host.read(files.read)
    assert "files[/etc/modprobe.d/baremetal-nvidia.conf]" in context.unknown
    assert "/etc/modprobe.d/baremetal-nvidia.conf" not in context.facts["files"]


# ---- state

STATE = "/var/lib/baremetal-nvidia/state.json"


def test_no_state(host):
    assert host.read(state.read).facts["state"] is None


def test_state(host):
    from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

    Store(str(host.root)).prove("6.1.0-50-amd64", {"version": "550.163.01"})
    assert host.read(state.read).facts["state"]["proved_kernels"] == ["6.1.0-50-amd64"]


def test_what_a_cut_off_run_left_beside_the_state(host):
    from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

    host.put("/boot/.baremetal-nvidia-stage/grub/grubenv")
    left = ["/boot/.baremetal-nvidia-stage"]
    found = host.read(state.read).facts["state"]
    assert found["left"] == left and found["proved_kernels"] == [] and found["open"] is None
    store = Store(str(host.root))
    store.begin("r1", "gpu_driver", "install the driver")
    host.put("/var/lib/baremetal-nvidia/stage-bin/update-grub")
    left.append("/var/lib/baremetal-nvidia/stage-bin")
    assert host.read(state.read).facts["state"]["left"] == left, "another role's transaction has no such files"
    store.begin("r1", "gpu_kernel", "bring in kernel 6.1.0-57-amd64")
    assert host.read(state.read).facts["state"]["left"] == []


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 99}'])
def test_damaged_state_is_unknown(host, text):
    host.put(STATE, text)
    context = host.read(state.read)
    assert "state" in context.unknown and "state" not in context.facts


# ---- CUDA


def test_no_cuda(host):
    assert host.read(cuda.read).facts["cuda"] == {
        "toolkits": [], "default": None, "nvcc": None, "environments": {}, "compat": None}


def test_toolkits(host):
    for version in ("12.4.1", "11.8.0", "12.10.0"):
        short = ".".join(version.split(".")[:2])
        content = {"cuda": {"version": version}, "cuda_nvcc": {"version": f"{short}.131"}}
        host.put(f"/usr/local/cuda-{short}/version.json", json.dumps(content))
        host.put(f"/usr/local/cuda-{short}/bin/nvcc")
    host.link("/usr/local/cuda", "/etc/alternatives/cuda")
    host.link("/etc/alternatives/cuda", "/usr/local/cuda-12.4")
    host.link("/usr/local/cuda-12", "/usr/local/cuda-12.4")
    assert host.read(cuda.read).facts["cuda"] == {
        "toolkits": ["11.8.0", "12.4.1", "12.10.0"],
        "nvcc": "12.4",
        "environments": {},
        "default": "12.4.1",
        "compat": None,
    }


def test_old_version_file_and_compat(host):
    host.put("/usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n")
    for version in ("550.54.15", "580.95.05"):
        host.put(f"/usr/local/cuda-10.2/compat/libcuda.so.{version}")
    host.link("/usr/local/cuda-10.2/compat/libcuda.so.1", "libcuda.so.580.95.05")
    assert host.read(cuda.read).facts["cuda"] == {
        "toolkits": ["10.2.89"], "default": None, "nvcc": None, "environments": {}, "compat": "580.95.05"}


def test_distributions_nvcc(host, as_host):
    host.put("/usr/bin/nvcc")
    programs = Programs(nvcc=children.Result(rc=0, out="Cuda compilation tools, release 11.8, V11.8.89\n"))
    assert as_host(cuda.read, programs).facts["cuda"]["nvcc"] == "11.8"
    assert "cuda.nvcc" in as_host(cuda.read, Programs(nvcc=children.Result(rc=1, pid=1))).unknown
    assert "cuda.nvcc" in host.read(cuda.read).unknown


def test_damaged_version_file(host):
    host.put("/usr/local/cuda-12.4/version.json", "{")
    context = host.read(cuda.read)
    assert "cuda.toolkits" in context.unknown and context.facts["cuda"]["nvcc"] is None


# ---- health


def test_xids():
    log = (
        "6,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        "6,2,2,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n6,3,3,-;NVRM: Xid (PCI:0000:5E:00): 48, pid=1\n6,4,4,-;usb 1-1\n"
    )
    assert health.parse(log) == [
        {"address": "0000:3b:00.0", "xid": 79, "count": 2},
        {"address": "0000:5e:00.0", "xid": 48, "count": 1},
    ]
    assert health.parse("") == []


@pytest.mark.parametrize("text", ["0000:3b:00", "0000:3B:00.0", "00000000:3b:00.0", "3b:00.0"])
def test_addresses(text):
    assert health.long_address(text) == "0000:3b:00.0"


def test_kernel_log_that_may_not_be_read(monkeypatch):
    def denied(*_args):
        raise PermissionError(1, "Operation not permitted", "/dev/kmsg")

    monkeypatch.setattr(health.os, "open", denied)
    context = Context(Tree())
    health.read(context)
    assert "needs root" in context.unknown["health.xids"] and context.facts == {}


def test_kernel_log_of_another_tree(host):
    assert "health.xids" in host.read(health.read).unknown
    host.put("/var/log/dmesg", "NVRM: Xid (PCI:0000:3b:00): 31, pid=1\n")
    assert host.read(health.read).facts["health"]["xids"][0]["xid"] == 31
