# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts for tests: fresh machines of every supported system with the GPUs that are asked for."""
from __future__ import annotations

from typing import Any

DEBIAN = "http://deb.debian.org/debian"
FILES = ("/etc/modprobe.d/baremetal-nvidia.conf", "/etc/apt/preferences.d/baremetal-nvidia",
         "/etc/apt/apt.conf.d/52baremetal-nvidia", "/etc/default/grub.d/zz-baremetal-nvidia.cfg")
# id, version, codename, family, manager, kernel release, compiler
SYSTEMS: dict[str, tuple[str, str, str, str, str, str, str]] = {
    "debian 12": ("debian", "12", "bookworm", "debian", "apt", "6.1.0-50-amd64", "gcc-12"),
    "debian 13": ("debian", "13", "trixie", "debian", "apt", "6.12.117+deb13-amd64", "gcc-14"),
    "ubuntu 22.04": ("ubuntu", "22.04", "jammy", "debian", "apt", "5.15.0-203-generic", "gcc-11"),
    "ubuntu 24.04": ("ubuntu", "24.04", "noble", "debian", "apt", "6.8.0-149-generic", "gcc-13"),
    "ubuntu 26.04": ("ubuntu", "26.04", "resolute", "debian", "apt", "7.0.0-34-generic", "gcc-15"),
    "ubuntu 20.04": ("ubuntu", "20.04", "focal", "debian", "apt", "5.4.0-216-generic", "gcc-9"),
    "rocky 8.10": ("rocky", "8.10", "", "redhat", "dnf", "4.18.0-553.58.1.el8_10.x86_64", "gcc-8"),
    "rhel 9.8": ("rhel", "9.8", "plow", "redhat", "dnf", "5.14.0-687.12.1.el9_8.x86_64", "gcc-11"),
    "rocky 9.6": ("rocky", "9.6", "", "redhat", "dnf", "5.14.0-570.58.1.el9_6.x86_64", "gcc-11"),
    "almalinux 10.0": ("almalinux", "10.0", "", "redhat", "dnf", "6.12.0-55.40.1.el10_0.x86_64", "gcc-14"),
    "sles 15.7": ("sles", "15.7", "", "suse", "zypper", "6.4.0-150700.53.22-default", "gcc-7"),
    "sles 16.0": ("sles", "16.0", "", "suse", "zypper", "6.12.0-160000.9-default", "gcc-13"),
}
GPUS = {"t4": "10de:1eb8", "v100": "10de:1db6", "a100": "10de:20b2", "a10": "10de:2236", "l40s": "10de:26b9",
        "h100": "10de:2330", "h100_pcie": "10de:2331", "rtx5090": "10de:2b85", "p40": "10de:1b38", "k80": "10de:102d"}


def gpu(name: str, index: int = 0) -> dict[str, Any]:
    """Return one GPU without a driver."""
    return {"address": f"0000:{index + 16:02x}:00.0", "id": GPUS.get(name, name), "subsystem": None, "class": "0302",
            "driver": None, "numa_node": 0, "bar_ok": True,
            "link": {"width": 16, "width_max": 16, "speed": 16.0, "speed_max": 16.0}}


def kernel_packages(system: str, release: str) -> dict[str, str]:
    """Return the kernel packages of a release with its headers."""
    manager = SYSTEMS[system][4]
    if manager == "apt":
        metas = ("amd64",) if system.startswith("debian") else ("generic",)
        names = [f"linux-{kind}-{suffix}" for kind in ("image", "headers") for suffix in (release, *metas)]
        if system.startswith("ubuntu"):
            names += [f"linux-modules-{release}", f"linux-modules-extra-{release}"]
        return dict.fromkeys(names, "1.0-1")
    version = release.replace(".x86_64", "").replace("-default", "")
    if manager == "dnf":
        names = ["kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-devel"]
    else:
        names = ["kernel-default", "kernel-default-devel"]
    return dict.fromkeys(names, version)


def fresh(system: str = "debian 12", gpus: tuple[str, ...] = ("t4",), switches: int = 0) -> dict[str, Any]:
    """Return the facts of a machine that was just installed: kernel, headers, compiler, nothing of NVIDIA's."""
    ident, version, codename, family, manager, release, compiler = SYSTEMS[system]
    tool = compiler if manager == "apt" else "gcc"
    return {
        "host": "gpu-1",
        "os": {"id": ident, "version": version, "codename": codename, "family": family, "arch": "x86_64",
               "virt": "none", "init": "systemd", "selinux": None, "python": "3.11.13"},
        "kernel": {
            "running": release, "running_compiler": compiler, "default_boot": release, "cmdline": "root=/dev/sda1 ro",
            "modules": [],
            "installed": [{"release": release, "image": True, "initrd": True, "headers": True, "compiler": compiler,
                           "nvidia": None, "extra_modules": [], "nouveau_in_initrd": False,
                           "nvidia_in_initrd": None}],
        },
        "boot": {"firmware": "uefi", "loader": "grub", "default_mode": "saved", "env_writable": True,
                 "next_entry": None, "kexec": {"loaded": False, "load_at_restart": None}},
        "storage": {path: {"free_mb": 41000} for path in ("/", "/boot", "/var", "/usr/src")},
        "gpus": [gpu(name, index) for index, name in enumerate(gpus)],
        "nvswitches": [{"address": f"0000:{index + 5:02x}:00.0", "id": "10de:22a3"} for index in range(switches)],
        "secure_boot": {"enabled": False, "mok": []},
        "driver": {
            "loaded": None, "library": None,
            "smi": {"status": "missing", "rc": None, "driver": None, "cuda": None, "gpus": None},
            "origin": "none", "nouveau": {"loaded": False, "blocked": False, "in_initramfs": False}, "dkms": [],
            "hung_tasks": [], "fabricmanager": {"version": None, "active": False}, "persistenced": {"active": False},
            "processes": 0,
        },
        "health": {"xids": [], "ecc_uncorrected": 0, "row_remap_failure": False},
        "packages": {
            "manager": manager, "installed": {**kernel_packages(system, release), tool: "1.0-1"}, "available": {},
            "origins": {}, "held": [], "pins": [], "broken": [], "locked_by": None, "cache_age": 3600, "manual": [],
            "repositories": _repositories(system),
            "auto_upgrades": {"enabled": False, "excluded": []},
        },
        "containers": {"containerd": None, "toolkit": None, "runc": None, "cdi": []},
        "cuda": {"toolkits": [], "nvcc": None, "compat": None},
        "services": {},
        "files": dict.fromkeys(FILES),
        "state": None,
        "unknown": {},
    }


def _repositories(system: str) -> list[dict[str, Any]]:
    codename, manager = SYSTEMS[system][2], SYSTEMS[system][4]
    if system.startswith("debian"):
        components = ["main", "contrib", "non-free", "non-free-firmware"]
        suites = [codename, f"{codename}-updates", f"{codename}-security"]
        return [{"id": f"debian-{codename}", "url": DEBIAN, "suites": suites, "components": components,
                 "signed_by": "/usr/share/keyrings/debian-archive-keyring.gpg", "enabled": True,
                 "file": "/etc/apt/sources.list.d/debian.sources"}]
    if manager == "apt":
        return [{"id": f"ubuntu-{codename}", "url": "http://archive.ubuntu.com/ubuntu", "enabled": True,
                 "suites": [codename, f"{codename}-updates", f"{codename}-security"],
                 "components": ["main", "restricted", "universe", "multiverse"],
                 "signed_by": "/usr/share/keyrings/ubuntu-archive-keyring.gpg", "file": "/etc/apt/sources.list"}]
    return [{"id": "base", "url": "https://mirror.example/base", "suites": [], "signed_by": None, "enabled": True,
             "file": "/etc/yum.repos.d/base.repo"}]


def containers(facts: dict[str, Any], version: str = "2.1.4", gpu_containers: int = 0) -> dict[str, Any]:
    """Give a host a containerd; returns the same facts."""
    facts["containers"]["containerd"] = {
        "version": version, "active": True, "socket": "/run/containerd/containerd.sock", "owner": "host",
        "config": {"path": "/etc/containerd/config.toml", "text": "version = 3\n", "drop_ins": {}},
        "gpu_containers": gpu_containers}
    facts["packages"]["installed"]["containerd.io"] = f"{version}-1"
    return facts
