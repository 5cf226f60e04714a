# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which operating system this is, and in what it runs."""

from __future__ import annotations

import re
import shlex
import sys

from .context import Context
from .tree import Tree

_FAMILIES = {
    "debian": ("debian", "ubuntu", "linuxmint", "pop", "raspbian", "kali"),
    "redhat": ("rhel", "fedora", "centos", "rocky", "almalinux", "ol", "amzn", "azurelinux", "mariner", "kylin",
               "openeuler"),
    "suse": ("sles", "sled", "suse", "opensuse", "opensuse-leap", "opensuse-tumbleweed", "sle_hpc"),
}  # fmt: skip
_ELF_MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x", 243: "riscv64", 3: "i686"}
_DMI = (
    ("QEMU", "kvm"), ("KVM", "kvm"), ("VMware", "vmware"), ("VirtualBox", "oracle"), ("innotek", "oracle"),
    ("Xen", "xen"), ("Microsoft Corporation Virtual", "microsoft"), ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"), ("Parallels", "parallels"), ("OpenStack", "kvm"),
)  # fmt: skip


def read(ctx: Context) -> None:
    tree = ctx.tree
    with ctx.attempt("os"):
        release = os_release(tree)
        if release is None:
            ctx.cannot("os", "neither /etc/os-release nor /usr/lib/os-release is there")
        else:
            ctx.set("os.id", release.get("ID") or None)
            ctx.set("os.version", release.get("VERSION_ID") or None)
            ctx.set("os.codename", release.get("VERSION_CODENAME") or release.get("UBUNTU_CODENAME") or None)
            family = family_of(release)
            if family:
                ctx.set("os.family", family)
            else:
                ctx.cannot("os.family", f"{release.get('ID')} is none of the known families debian, redhat, suse")
    ctx.read("os.arch", lambda: arch(tree))
    with ctx.attempt("os.virt"):
        virt(ctx)
    with ctx.attempt("os.init"):
        init(ctx)
    if tree.is_host:
        ctx.set("os.python", ".".join(map(str, sys.version_info[:3])))
    with ctx.attempt("os.selinux"):
        ctx.set("os.selinux", selinux(tree))
    with ctx.attempt("host"):
        name = tree.text("/proc/sys/kernel/hostname") or tree.text("/etc/hostname")
        ctx.set("host", name or None)


def os_release(tree: Tree) -> dict[str, str] | None:
    """The fields of os-release, None when there is none. Source: os-release(5)."""
    content = tree.text("/etc/os-release", 65536)
    if content is None:
        content = tree.text("/usr/lib/os-release", 65536)
    if content is None:
        return None
    fields: dict[str, str] = {}
    for line in content.splitlines():
        key, mark, value = line.strip().partition("=")
        if not mark or key.startswith("#"):
            continue
        try:
            fields[key] = "".join(shlex.split(value, comments=False))
        except ValueError:
            fields[key] = value.strip("\"'")
    return fields


def family_of(release: dict[str, str]) -> str | None:
    """debian, redhat or suse by ID, then by ID_LIKE; None for others."""
    for word in [release.get("ID", ""), *release.get("ID_LIKE", "").split()]:
        for family, members in _FAMILIES.items():
            if word in members:
                return family
    return None


def arch(tree: Tree) -> str:
    """The machine name as ``uname -m`` prints it: of the running kernel, or of the tree's own programs."""
    if tree.is_host:
        import os

        return os.uname().machine
    for path in ("/bin/sh", "/bin/true", "/usr/bin/env", "/sbin/init", "/usr/bin/dpkg"):
        try:
            head = tree.read_bytes(path, 20)
        except OSError:
            continue
        if head[:4] == b"\x7fELF":
            machine = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
            if machine in _ELF_MACHINES:
                return _ELF_MACHINES[machine]
    debian = tree.text("/var/lib/dpkg/arch")
    if debian:
        names = {"amd64": "x86_64", "arm64": "aarch64", "ppc64el": "ppc64le"}
        return names.get(debian.split()[0], debian.split()[0])
    version = tree.text("/proc/version") or ""
    found = re.search(r"\b(x86_64|aarch64|ppc64le|s390x|riscv64)\b", version)
    if found:
        return found.group(1)
    raise ValueError("no program in the tree tells the architecture")


def virt(ctx: Context) -> None:
    """``none``, or the word that systemd-detect-virt uses."""
    tree = ctx.tree
    word = container_kind(tree)
    if word is None and tree.is_host and ctx.which("systemd-detect-virt"):
        answer = ctx.run(["systemd-detect-virt"])
        if not answer.timed_out and answer.out.strip():
            word = answer.out.strip()
    if word is None:
        word = machine_kind(tree)
    if word is None:
        ctx.cannot("os.virt", "neither /proc/cpuinfo nor /sys/class/dmi tells it")
    else:
        ctx.set("os.virt", word)


def container_kind(tree: Tree) -> str | None:
    """podman, docker, lxc, …, as the container's maker tells it; None outside of containers."""
    told = tree.text("/run/systemd/container", 64)
    if told:
        return told
    if tree.exists("/run/.containerenv"):
        return "podman"
    if tree.exists("/.dockerenv"):
        return "docker"
    try:
        environ = tree.read_bytes("/proc/1/environ", 65536)
    except OSError:
        return None
    for item in environ.split(b"\0"):
        if item.startswith(b"container="):
            return item[10:].decode("ascii", "replace") or None
    return None


def machine_kind(tree: Tree) -> str | None:
    """kvm, vmware, … by DMI and the CPU's hypervisor flag; ``none`` on bare metal; None when neither can be read."""
    strings = []
    for name in ("sys_vendor", "product_name", "board_vendor", "bios_vendor"):
        try:
            strings.append(tree.text(f"/sys/class/dmi/id/{name}", 256) or "")
        except OSError:
            continue
    dmi = " ".join(strings).strip()
    for mark, word in _DMI:
        if mark in dmi:
            return word
    try:
        cpu = tree.text("/proc/cpuinfo", 65536)
    except OSError:
        cpu = None
    if cpu:
        return "vm-other" if re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.M) else "none"
    return "none" if dmi else None


def init(ctx: Context) -> None:
    """``systemd`` when it manages this system, else the name of process 1."""
    tree = ctx.tree
    if tree.isdir("/run/systemd/system"):
        ctx.set("os.init", "systemd")
        return
    first = tree.text("/proc/1/comm", 64)
    if first is not None:
        ctx.set("os.init", first if first != "systemd" else "systemd")
        return
    link = tree.readlink("/sbin/init") or tree.readlink("/usr/sbin/init")
    if not tree.is_host and link:
        ctx.set("os.init", link.rsplit("/", 1)[-1])
        return
    ctx.cannot("os.init", "/proc/1/comm is not there")


def selinux(tree: Tree) -> str | None:
    """enforcing or permissive; None where SELinux is off."""
    state = tree.text("/sys/fs/selinux/enforce", 8)
    if state is not None:
        return "enforcing" if state == "1" else "permissive"
    if tree.is_host:
        return None
    config = tree.text("/etc/selinux/config", 65536) or ""
    found = re.search(r"^\s*SELINUX=(\w+)", config, re.M)
    return found.group(1) if found and found.group(1) != "disabled" else None
