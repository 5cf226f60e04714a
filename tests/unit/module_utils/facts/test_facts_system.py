# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import system
from facts_helpers import Programs

DEBIAN = 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (DEBIAN, "debian"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n', "redhat"),
        ('ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n', "suse"),
        ("ID=somethingnew\nID_LIKE=debian\n", "debian"),
    ],
)
def test_family(host, text, family):
    host.put("/etc/os-release", text)
    assert host.read(system.read).facts["os"]["family"] == family


def test_debian(host):
    host.put("/etc/os-release", DEBIAN)
    host.put("/proc/sys/kernel/hostname", "gpu-a01\n")
    context = host.read(system.read)
    assert context.facts["host"] == "gpu-a01"
    assert {key: context.facts["os"][key] for key in ("id", "version", "codename", "family")} == {
        "id": "debian", "version": "12", "codename": "bookworm", "family": "debian",
    }  # fmt: skip
    assert context.facts["os"]["selinux"] is None


def test_unknown_family_is_unknown(host):
    host.put("/etc/os-release", "ID=haiku\n")
    context = host.read(system.read)
    assert "family" not in context.facts["os"]
    assert "haiku" in context.unknown["os.family"]


def test_empty_tree(host):
    context = host.read(system.read)
    assert set(context.unknown) >= {"os", "os.arch", "os.virt", "os.init"}
    assert "id" not in context.facts.get("os", {})


def test_architecture_of_another_tree(host):
    host.put("/bin/sh", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00")
    assert system.arch(host.tree) == "aarch64"
    host.path("/bin/sh").unlink()
    host.put("/var/lib/dpkg/arch", "arm64\n")
    assert system.arch(host.tree) == "aarch64"


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"/run/systemd/container": "podman\n"}, "podman"),
        ({"/run/.containerenv": ""}, "podman"),
        ({"/.dockerenv": ""}, "docker"),
        ({"/proc/1/environ": "PATH=/bin\0container=lxc\0"}, "lxc"),
        ({"/sys/class/dmi/id/sys_vendor": "QEMU\n"}, "kvm"),
        ({"/sys/class/dmi/id/sys_vendor": "VMware, Inc.\n"}, "vmware"),
        ({"/sys/class/dmi/id/sys_vendor": "Supermicro\n", "/proc/cpuinfo": "flags\t: fpu vme\n"}, "none"),
        ({"/proc/cpuinfo": "flags\t: fpu hypervisor\n"}, "vm-other"),
    ],
)
def test_virtualisation(host, files, word):
    host.many(files)
    assert host.read(system.virt).facts["os"]["virt"] == word


def test_the_detector_is_asked_where_it_is_there(host, as_host):
    host.put("/usr/bin/systemd-detect-virt")
    programs = Programs(systemd_detect_virt=children.Result(rc=1, out="none\n"))
    assert as_host(system.virt, programs).facts["os"]["virt"] == "none"
    assert programs.calls == [["systemd-detect-virt"]]


def test_a_detector_that_hangs_is_passed_over(host, as_host):
    host.put("/usr/bin/systemd-detect-virt")
    host.put("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n")
    programs = Programs(systemd_detect_virt=children.Result(rc=124, timed_out=True, pid=1))
    assert as_host(system.virt, programs).facts["os"]["virt"] == "none"


def test_init(host):
    host.put("/proc/1/comm", "tini\n")
    assert host.read(system.init).facts["os"]["init"] == "tini"
    host.directory("/run/systemd/system")
    assert host.read(system.init).facts["os"]["init"] == "systemd"


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({"/sys/fs/selinux/enforce": "1"}, "enforcing"),
        ({"/sys/fs/selinux/enforce": "0"}, "permissive"),
        ({"/etc/selinux/config": "SELINUX=permissive\n"}, "permissive"),
        ({"/etc/selinux/config": "SELINUX=disabled\n"}, None),
        ({}, None),
    ],
)
def test_selinux(host, files, value):
    host.many(files)
    assert system.selinux(host.tree) == value
