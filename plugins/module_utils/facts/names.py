# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package names matter to a GPU host: everything else is left out of the facts."""

from __future__ import annotations

import re

# ---- installed

_KERNEL = (
    r"linux-(?:image|headers|modules|objects|signatures|restricted-modules|kbuild|compiler|binary)(?:-.*)?|"
    r"linux-base-(?:\d.*|amd64|arm64|rt-.*|cloud-.*)|"  # Debian 14 splits its kernel packages
    r"linux-(?:generic|lowlatency|virtual|server|oem|nvidia|aws|azure|gcp|oracle|ibm|gke|kvm|raspi|realtime)(?:-.*)?|"
    r"kernel|kernel-(?:core|modules|modules-core|modules-extra|devel|devel-matched|syms|source|macros)|"
    r"kernel-(?:default|azure|64k|rt|uek|ml|lt|longterm|automotive)(?:-.*)?|kernel6\.\d+.*"
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

_KERNEL_META = re.compile(
    r"^linux-(?:image|headers)-(?:(?:rt-|cloud-)?(?:amd64|arm64)|generic|lowlatency|virtual|nvidia|aws|azure|gcp|oracle)"
    r"(?:-64k)?(?:-hwe-\d\d\.\d\d(?:-edge)?|-lts-\d\d\.\d\d|-\d\d\.\d\d\w*)?$|"
    r"^linux-(?:generic|lowlatency|nvidia|virtual)(?:-64k)?(?:-hwe-\d\d\.\d\d(?:-edge)?|-\d\d\.\d\d)?$"
)
_BRANCH = r"-\d{3}(?:-server)?"
_AVAILABLE = re.compile(
    rf"^(?:nvidia-open(?:-\d{{3}})?|nvidia-driver(?:{_BRANCH}(?:-open)?|-pinning-\d{{3}}|-cuda)?|"
    r"cuda-drivers(?:-\d{3})?|"
    rf"nvidia-dkms{_BRANCH}(?:-open)?|nvidia-headless(?:-no-dkms)?{_BRANCH}(?:-open)?|"
    r"nvidia-(?:open-)?kernel-(?:dkms|support)|nvidia-kernel-open-dkms|nvidia-tesla-open-kernel-dkms|"
    r"nvidia-(?:tesla|legacy)-(?:\d{3}(?:xx)?-)?kernel-(?:dkms|support)|"
    rf"nvidia-kernel-(?:source|common){_BRANCH}(?:-open)?|nvidia-(?:compute-)?utils{_BRANCH}|"
    rf"libnvidia-(?:compute|cfg1){_BRANCH}|nvidia-firmware{_BRANCH}|"
    r"libnvidia-cfg1|libcuda1|libnvidia-ml1|nvidia-smi|nvidia-alternative|nvidia-legacy-check|libnvidia-nvvm4|"
    r"libnvidia-ptxjitcompiler1|libnvidia-pkcs11-openssl3|firmware-nvidia-gsp|nvidia-modprobe|nvidia-persistenced|"
    r"(?:cuda-drivers-|nvidia-)fabricmanager(?:-\d{3})?|nvlsm|nvidia-imex(?:-\d{3})?|"
    r"nvidia-container-toolkit(?:-base)?|libnvidia-container(?:1|-tools)|containerd|containerd\.io|runc|dkms|"
    r"build-essential|gcc-\d+|libelf-dev|make)$"
)
_MODULES = re.compile(r"^linux-modules-nvidia-\d{3}(?:-server)?(?:-open)?-(?P<flavour>[a-z].*)$")


def matters(name: str) -> bool:
    """Whether an installed package is reported."""
    return bool(INSTALLED.match(name)) and not _NEVER.match(name)


def wanted(name: str, releases: set[str]) -> bool:
    """Whether the versions of a package in the archive are reported.

    ``releases`` are the installed kernels: their own headers and precompiled modules count, those of others do not.
    """
    if _AVAILABLE.match(name) or _KERNEL_META.match(name):
        return True
    if name.startswith(("linux-headers-", "linux-image-")):
        return name.split("-", 2)[2] in releases
    match = _MODULES.match(name)
    if match is None:
        return False
    return match.group("flavour") in releases or not match.group("flavour")[0].isdigit()


_RPM = re.compile(
    r"^(?:kernel(?:-(?:uek|rt|64k|default|azure))?(?:-(?:core|modules|modules-core|modules-extra|devel|devel-matched|base))?|"
    r"nvidia-open(?:-\d{3})?|nvidia-driver(?:-(?:cuda|cuda-libs|libs|NVML))?|nvidia-(?:kmod-common|modprobe|persistenced)|"
    r"libnvidia-(?:ml|cfg)|cuda-drivers(?:-\d{3})?|kmod-nvidia-(?:open-dkms|latest-dkms|dkms|open|latest)|nvlsm|"
    r"(?:cuda-drivers-|nvidia-)fabric-?manager(?:-\d{3})?|nvidia-imex(?:-\d{3})?|dnf-plugin-nvidia|dkms|"
    r"nvidia-(?:open-)?driver-G\d\d(?:-signed)?(?:-cuda)?-kmp-(?:default|azure|64kb)|nvidia-gfxG\d\d-kmp-default|"
    r"nvidia-compute-(?:utils-)?G\d\d|nvidia-common-G\d\d|nvidia-driver-G\d\d|"
    r"nvidia-container-toolkit(?:-base)?|libnvidia-container(?:1|-tools)|containerd|containerd\.io|runc)$"
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


PREFIXES = ("nvidia", "cuda-drivers", "libnvidia", "libcuda1", "linux-", "firmware-nvidia-gsp", "nvlsm", "containerd",
            "runc", "dkms", "build-essential", "gcc-", "libelf-dev", "make")  # fmt: skip
