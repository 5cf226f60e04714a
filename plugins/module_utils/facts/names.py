# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package names matter to a GPU host: everything else is left out of the facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

# ---- installed

_KERNEL = (
    r"linux-(?:image|headers|modules|objects|signatures|restricted-modules|kbuild|compiler|binary)(?:-.*)?|"
    r"linux-base-(?:\d.*|amd64|arm64|rt-.*|cloud-.*)|"  # Debian 14 splits its kernel packages
    r"linux-(?:generic|lowlatency|virtual|server|oem|nvidia|aws|azure|gcp|oracle|ibm|gke|kvm|raspi|realtime)(?:-.*)?|"
    r"linux-(?:[a-z0-9.-]+-)?(?:cloud-)?tools-.*|"
    r"kernel|kernel-(?:core|modules|modules-(?:core|extra|internal|extra-matched)|devel|devel-matched|syms|source|macros)|"
    r"kernel-(?:default|azure|64k|rt|uek|ml|lt|longterm|automotive|debug|uki-virt|tools)(?:-.*)?|kernel6\.\d+.*"
)
_DRIVER = (
    r"nvidia-.*|libnvidia-.*|libcuda1|libcuda\.so.*|libnvcuvid1|libnvsdm.*|nvlsm|nvlink.*|cuda-(?:drivers|compat).*|"
    r"firmware-nvidia-.*|nv-fabricmanager.*|xserver-xorg-video-nvidia.*|kmod-nvidia.*|dkms-nvidia|dkms-open-nvidia|"
    r"glx-alternative-nvidia|update-glx|datacenter-gpu-manager.*|libxnvctrl0|akmod-nvidia.*|xorg-x11-drv-nvidia.*|"
    r"libnvfm.*|ubuntu-drivers-common|gdrcopy|gdrdrv-dkms|suse-prime"
)
_CUDA = r"cuda|cuda-(?:keyring|toolkit|runtime|nvcc)(?:-\d.*)?|cuda-\d+-\d+|libnccl2|libcudnn\d+(?:-cuda-\d+)?"
_CONTAINERS = (
    r"containerd|containerd\.io|containerd2?|runc|docker-ce|docker\.io|docker|moby-engine|moby-containerd|moby-runc|"
    r"cri-o|podman|kubelet|kubeadm|k3s.*|rke2-.*|kubernetes.*-kubelet"
)
_TOOLS = (
    r"gcc|gcc-\d+|gcc\d+|clang|clang-\d+|make|build-essential|dkms|kmod|needrestart|unattended-upgrades|zstd|dracut|"
    r"initramfs-tools|grub-(?:pc|efi-amd64|efi-arm64|common)|grub2-(?:common|tools|pc|efi-x64)|grubby|shim-signed|"
    r"mokutil|linux-base|python3-apt|pve-kernel-.*|proxmox-.*kernel-.*|dnf-automatic|libelf-dev|"
    r"libelf-devel|elfutils-libelf-devel|"
    r"(?:python3-)?dnf-plugin-versionlock|yum-plugin-versionlock|libdnf5-plugin-.*"
)
_OUT_OF_TREE = (
    r"mlnx-ofed.*|mlnx-ofa_kernel.*|mlnx-tools|doca-ofed.*|doca-.*kernel.*|ofed-.*|kmod-mlnx.*|zfs|zfs-dkms|"
    r"zfsutils-linux|zfs-modules-.*|kmod-zfs.*|spl-dkms|lustre-.*|kmod-lustre.*|knem.*|xpmem.*|beegfs-client.*|gpfs\..*"
)
INSTALLED = re.compile(f"^(?:{_KERNEL}|{_DRIVER}|{_CUDA}|{_CONTAINERS}|{_TOOLS}|{_OUT_OF_TREE})$")
_NEVER = re.compile(
    r"^(?:linux-libc-dev|linux-(?:doc|perf|source|support|sysctl|cpupower).*|nvidia-cuda-(?:doc|samples|gdb).*|"
    r".*-(?:dbgsym|dbg|debuginfo|debugsource|doc))$"
)

KERNEL_OR_DRIVER = re.compile(f"^(?:{_KERNEL}|{_DRIVER})$")
KERNEL = re.compile(f"^(?:{_KERNEL})$")

# ---- available: only what a decision can be about

# the part after the flavour: -hwe-24.04, -hwe-24.04-edge, -lts-22.04, -24.04a, -6.14
_SERIES = r"(?:-hwe-\d\d\.\d\d(?:-edge)?|-lts-\d\d\.\d\d|-\d+\.\d+[a-z]?)?"
_KERNEL_META = re.compile(rf"^linux-(?:image-|headers-)?(?P<flavour>[a-z][a-z0-9-]*?){_SERIES}$")
_FLAVOUR = re.compile(r"\d[-+.]?(?:deb\d+-)?(?P<flavour>[a-z][a-z0-9-]*)$")
_USUAL_FLAVOURS = frozenset({"generic", "amd64", "arm64"})
_BRANCH = r"-\d{3}(?:-server)?"
_AVAILABLE = re.compile(
    rf"^(?:nvidia-open(?:-\d{{3}})?|nvidia-driver(?:{_BRANCH}(?:-open)?|-pinning-\d{{3}}|-cuda)?|"
    r"cuda-drivers(?:-\d{3})?|"
    rf"nvidia-dkms{_BRANCH}(?:-open)?|nvidia-dkms(?:-open)?|nvidia-kernel-source(?:-open)?|nvidia-kernel-common|"
    r"nvidia-firmware|libnvidia-compute|libnvidia-nscq|libnvsdm|"
    r"nvidia-(?:open-)?kernel-(?:dkms|support)|nvidia-kernel-open-dkms|nvidia-tesla-open-kernel-dkms|"
    r"nvidia-(?:tesla|legacy)-(?:\d{3}(?:xx)?-)?kernel-(?:dkms|support)|"
    rf"nvidia-kernel-(?:source|common){_BRANCH}(?:-open)?|nvidia-(?:compute-)?utils{_BRANCH}|"
    rf"libnvidia-(?:compute|cfg1){_BRANCH}|nvidia-firmware{_BRANCH}|"
    r"libnvidia-cfg1|libcuda1|libnvidia-ml1|nvidia-smi|nvidia-alternative|nvidia-legacy-check|libnvidia-nvvm4|"
    r"libnvidia-ptxjitcompiler1|libnvidia-pkcs11-openssl3|firmware-nvidia-gsp|nvidia-modprobe|nvidia-persistenced|"
    r"(?:cuda-drivers-|nvidia-)fabricmanager(?:-\d{3})?|nvlsm|nvidia-imex(?:-\d{3})?|"
    r"nvidia-container-toolkit(?:-base)?|libnvidia-container(?:1|-tools)|containerd|containerd\.io|runc|dkms|"
    r"build-essential|gcc-\d+|libelf-dev|make|nvidia-cuda-toolkit|cuda-toolkit-\d+-\d+|cuda-compat-\d+-\d+)$"
)
_MODULES = re.compile(rf"^linux-modules-nvidia{_BRANCH}(?:-open)?-(?P<rest>.+)$")
_MODULE_PARTS = re.compile(rf"^linux-(?:objects-nvidia{_BRANCH}(?:-open)?|signatures-nvidia)-(?P<rest>\d.+)$")
_MODULES_META = re.compile(rf"^(?P<flavour>[a-z][a-z0-9-]*?){_SERIES}$")


def matters(name: str) -> bool:
    """Whether an installed package is reported."""
    return bool(INSTALLED.match(name)) and not _NEVER.match(name)


def flavours(releases: Iterable[str]) -> frozenset[str]:
    """``generic`` of 6.8.0-60-generic, ``amd64`` of 6.12.117+deb13-amd64; the usual ones without any kernel."""
    found = {match.group("flavour") for match in map(_FLAVOUR.search, releases) if match}
    return frozenset(found) or _USUAL_FLAVOURS


def wanted_by(releases: Iterable[str]) -> Callable[[str], bool]:
    """Whether the versions of a package in the archive are reported, on a host with these kernels.

    Their own headers and precompiled modules count, and the metas of their flavours; those of others do not.
    """
    kernels = frozenset(releases)
    kinds = flavours(kernels)

    def wanted(name: str) -> bool:
        if _AVAILABLE.match(name):
            return True
        modules = _MODULES.match(name)
        if modules:
            meta = _MODULES_META.match(modules.group("rest"))
            return modules.group("rest") in kernels or (meta is not None and meta.group("flavour") in kinds)
        parts = _MODULE_PARTS.match(name)
        if parts:
            return parts.group("rest") in kernels
        if name.startswith(("linux-headers-", "linux-image-")) and name.split("-", 2)[2] in kernels:
            return True
        meta = _KERNEL_META.match(name)
        return meta is not None and meta.group("flavour") in kinds

    return wanted


_RPM = re.compile(
    r"^(?:kernel(?:-(?:uek|rt|64k|default|azure))?(?:-(?:core|modules|modules-core|modules-extra|devel|devel-matched|base))?|"
    r"nvidia-open(?:-\d{3})?|nvidia-driver(?:-(?:cuda|cuda-libs|libs|NVML))?|nvidia-(?:kmod-common|modprobe|persistenced)|"
    r"libnvidia-(?:ml|cfg)|cuda-drivers(?:-\d{3})?|kmod-nvidia-(?:open-dkms|latest-dkms|dkms|open|latest)|nvlsm|"
    r"(?:cuda-drivers-|nvidia-)fabric-?manager(?:-\d{3})?|nvidia-imex(?:-\d{3})?|dnf-plugin-nvidia|dkms|"
    r"nvidia-(?:open-)?driver-G\d\d(?:-signed)?(?:-cuda)?-kmp-(?:default|azure|64kb)|nvidia-gfxG\d\d-kmp-default|"
    r"nvidia-compute-(?:utils-)?G\d\d|nvidia-common-G\d\d|nvidia-driver-G\d\d|"
    r"nvidia-container-toolkit(?:-base)?|libnvidia-container(?:1|-tools)|containerd|containerd\.io|runc|"
    r"cuda-(?:toolkit|compat)-\d+-\d+)$"
)
_KMOD = re.compile(r"^kmod-nvidia-(?:open-)?\d{3}[\d.]*-(?P<kernel>\d.*)$")


def wanted_rpm(name: str, releases: set[str]) -> bool:
    """As :func:`wanted`, for rpm names; kmod packages count when they are for an installed kernel."""
    if _RPM.match(name):
        return True
    match = _KMOD.match(name)
    return bool(match) and any(_same_kernel(release, match.group("kernel")) for release in releases if match)


def _same_kernel(release: str, kernel: str) -> bool:
    return release == kernel or release.startswith((f"{kernel}.", f"{kernel}-"))


# Names without a branch hold all branches of a source: of each the newest is reported, so that a move can be planned.
_BRANCHLESS = re.compile(
    r"^(?:kmod-nvidia-(?:open|latest)-dkms|libnvidia-[a-z0-9]+|nvidia-(?:driver-cuda|driver-cuda-libs|kmod-common|persistenced|"
    r"modprobe|open|dkms(?:-open)?|kernel-source(?:-open)?|kernel-common|firmware|kernel-open-dkms|kernel-dkms|fabric-?manager|"
    r"(?:open-)?driver-G\d\d-.*|compute-(?:utils-)?G\d\d)|cuda-drivers)$"
)
_BRANCH_OF = re.compile(r"^(?:\d+:)?(\d{3})\.")
_MOST_BRANCHES = 8


def kept(name: str, ordered: Sequence[str], count: int) -> list[str]:
    """Those versions of a package that are reported, out of all of them, newest first."""
    found = list(ordered[:count])
    if _BRANCHLESS.match(name):
        branches = {match.group(1) for one in found if (match := _BRANCH_OF.match(one))}
        for one in ordered[count:]:
            match = _BRANCH_OF.match(one)
            if match and match.group(1) not in branches and len(branches) < _MOST_BRANCHES:
                branches.add(match.group(1))
                found.append(one)
    return found


PREFIXES = ("nvidia", "cuda-drivers", "cuda-toolkit-", "cuda-compat-", "libnvidia", "libcuda1", "linux-",
            "firmware-nvidia-gsp", "nvlsm", "containerd", "runc", "dkms", "build-essential", "gcc-", "libelf-dev",
            "make")  # fmt: skip
