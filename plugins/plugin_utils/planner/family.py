# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of packages: which belong to the driver, which to the kernel, and how placeholders are filled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ...module_utils.packages import families
from ..model.facts import each
from ..rules.context import Context

# Packages whose upstream version is the driver's.
_DRIVER_VERSION = re.compile(
    r"(nvidia-(open|driver|headless|dkms|kernel|open-kernel|utils|compute-utils|firmware|compute|open-driver|video)"
    r"|cuda-drivers|libnvidia-|nvidia-smi\Z|libcuda1\Z|kmod-nvidia"
    r"|nvidia-alternative\Z|nvidia-legacy-check\Z|firmware-nvidia-gsp|nvidia-tesla|xserver-xorg-video-nvidia)"
)
_NOT_DRIVER_VERSION = re.compile(
    r"nvidia-(kernel-common\Z|support|installer-cleanup|persistenced|modprobe|settings|xconfig|container"
    r"|driver-pinning|driver-assistant|cuda|detect|fs)|libnvidia-(container|egl-wayland|vaapi|common)"
)
_MODULE = re.compile(
    r"(nvidia-(open|driver|dkms|kernel-dkms|kernel-open-dkms|open-kernel-dkms|headless(-no-dkms)?)(-|\Z)"
    r"|nvidia-tesla-\d+-kernel-dkms|nvidia-kernel-dkms|linux-modules-nvidia-|kmod-nvidia|nvidia-(open-)?driver-G0)"
)
# libnvidia-ml, without which nothing asks the driver anything.
_LIBRARY = re.compile(r"(libnvidia-(tesla-\d+-)?(ml1?|compute(-\d+(-server)?)?)|nvidia-compute-(utils-)?G\d\d)\Z")
# What brings libraries and module together.
_WHOLE = re.compile(r"(nvidia-(open|driver|headless(-no-dkms)?)(-\d+(-server)?(-open)?)?|cuda-drivers(-\d+)?)\Z")
# Everything that belongs to the driver and must not move under it: what is held after an install.
HOLD_PATTERN = (
    r"^(nvidia-(?!container)[A-Za-z0-9._+-]+|libnvidia-(?!container)[A-Za-z0-9._+-]+|cuda-drivers[a-z0-9.-]*|cuda-compat-[0-9-]+"
    r"|libcuda1(-[a-z0-9]+)?|libnvcuvid1|libnvoptix1|libcudadebugger1|firmware-nvidia-[a-z0-9.-]+"
    r"|xserver-xorg-video-nvidia[a-z0-9.-]*|kmod-nvidia[A-Za-z0-9._-]*|nvlsm|libnvsdm[a-z0-9-]*"
    r"|linux-(modules|objects|signatures)-nvidia-[a-z0-9.+-]+)$"
)
_HOLD = re.compile(HOLD_PATTERN)
_TOOLS = re.compile(r"nvidia-(detect|settings|driver-pinning|xconfig|cuda-toolkit|cuda-dev|cuda-doc|cuda-gdb|profiler)")


_RPM_TAIL = re.compile(r"\.(el|fc|amzn)[0-9].*\Z")


@lru_cache(maxsize=4096)
def names_driver_version(name: str) -> bool:
    """Say whether the upstream version of this package is the version of the driver."""
    return bool(_DRIVER_VERSION.match(name)) and not _NOT_DRIVER_VERSION.match(name)


@lru_cache(maxsize=4096)
def is_module_package(name: str) -> bool:
    """Say whether a package brings the kernel module (or its source)."""
    return bool(_MODULE.match(name))


@lru_cache(maxsize=4096)
def is_library_package(name: str) -> bool:
    """Say whether a package brings the driver's own library, or cannot be there without the one that does."""
    return bool(_LIBRARY.match(name))


@lru_cache(maxsize=4096)
def brings_whole_driver(name: str) -> bool:
    """Say whether a package brings the driver's libraries and its module by its dependencies."""
    return bool(_WHOLE.match(name))


@lru_cache(maxsize=4096)
def is_driver_package(name: str) -> bool:
    """Say whether a package belongs to the driver and is to be held with it."""
    return bool(_HOLD.match(name)) and not _TOOLS.match(name)


def kernel_family(names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that belong to the kernel family and are to be held with it.

    By the same names as on the host, where half a pin is refused.
    """
    return sorted(name for name in names if families.kernel_part(name))


def is_meta(name: str) -> bool:
    """Say whether a name brings whatever kernel is newest: it has no version of its own in it."""
    return not any(part[:1].isdigit() and "." in part and part.count(".") > 1 for part in name.split("-"))


def fill(name: str, branch: str, version: str | None = None, release: str | None = None) -> str:
    """Fill the placeholders of a package name; ``{kernel}`` is a release as rpm names have it, without dist, arch."""
    if "{" not in name:
        return name
    kernel = _RPM_TAIL.sub("", release or "")
    values = {"{branch}": branch, "{version}": version or "", "{release}": release or "", "{kernel}": kernel}
    for placeholder, value in values.items():
        name = name.replace(placeholder, value)
    return name


def is_cuda_url(url: str) -> bool:
    """Say whether a repository is one of NVIDIA's CUDA repositories."""
    return "/compute/cuda/repos/" in url


def is_of_other_release(context: Context, url: str) -> bool:
    """Say whether an address is that of NVIDIA's repository for another system or release."""
    own = context.packaging.system.cuda_repo if context.packaging is not None else None
    _head, mark, rest = url.partition("/compute/cuda/repos/")
    return bool(mark) and own is not None and rest.partition("/")[0] != own


def is_nvidia_repository(context: Context, ident: str) -> bool:
    """Say whether the repository of that id is NVIDIA's."""
    for repository in each(context.host.packages.repositories):
        if repository.id == ident:
            return is_cuda_url(repository.url)
    return "cuda" in ident or "nvidia" in ident
