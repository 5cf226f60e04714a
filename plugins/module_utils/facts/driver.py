# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA driver: what is loaded, which libraries lie on disk, who installed them, and whether it answers."""

from __future__ import annotations

import re
from typing import Any

from . import smi
from .context import Context
from .tree import Tree

_VERSION = re.compile(r"\b(\d{3}\.\d{2,3}(?:\.\d{2,3})?)\b")
_LIBRARY = re.compile(r"^libnvidia-ml\.so\.(\d{3}\.\d[\d.]*)$")
_LIBRARY_DIRECTORIES = (
    "/usr/lib/{triplet}",
    "/usr/lib/{triplet}/nvidia/current",
    "/usr/lib64",
    "/usr/lib/{triplet}/nvidia",
    "/usr/lib",
    "/usr/lib64/nvidia",
    "/usr/local/lib",
)
_TRIPLETS = ("x86_64-linux-gnu", "aarch64-linux-gnu", "powerpc64le-linux-gnu")
OPERATOR_ROOT = "/run/nvidia/driver"
UNINSTALLERS = ("/usr/bin/nvidia-uninstall", "/usr/sbin/nvidia-uninstall", "/usr/bin/nvidia-installer")


def read(ctx: Context) -> None:
    """``driver.loaded``, ``.library`` and ``.smi``; reads ``driver.hung_tasks`` of the same group first."""
    tree = ctx.tree
    hung = ctx.known.get("driver", {}).get("hung_tasks") or []
    unloaded = False
    with ctx.attempt("driver.loaded"):
        module = loaded(tree, touch=not hung)
        ctx.set("driver.loaded", module)
        unloaded = module is None
    with ctx.attempt("driver.library"):
        ctx.set("driver.library", library(tree))
    if hung:
        commands = ", ".join(sorted({f"{task['command']} ({task['pid']})" for task in hung}))
        ctx.cannot("driver.smi", f"not called: processes hang in the driver: {commands}"[:300])
        smi.without(ctx, "processes hang in the driver")
        return
    smi.read(ctx, unloaded)


def loaded(tree: Tree, touch: bool = True) -> dict[str, str] | None:
    """``{version, flavour}`` of the module that is loaded, None when none is.

    With ``touch`` false nothing of the driver's own is opened: sysfs tells version and taint without it.
    """
    text = tree.text("/proc/driver/nvidia/version", 4096) if touch else None
    if text:
        return parse_version(text)
    module = "/sys/module/nvidia"
    version = tree.text(f"{module}/version", 64)
    if version is None:
        if not tree.exists("/proc/modules") and not tree.isdir("/sys/module"):
            raise ValueError("neither /proc/modules nor /sys/module is there")
        return None
    taint = tree.text(f"{module}/taint", 64) or ""
    return {"version": version, "flavour": "proprietary" if "P" in taint else "open"}


def parse_version(text: str) -> dict[str, str]:
    """Of the first line of /proc/driver/nvidia/version. Raises ValueError when it is of another form."""
    line = next((one for one in text.splitlines() if one.startswith("NVRM version")), "")
    found = _VERSION.search(line)
    if not found:
        raise ValueError("/proc/driver/nvidia/version has an unknown form")
    return {"version": found.group(1), "flavour": "open" if "Open Kernel Module" in line else "proprietary"}


def library_path(tree: Tree) -> str | None:
    """The file that libnvidia-ml.so.1 leads to, None when there is none. Stubs of CUDA do not count."""
    for pattern in _LIBRARY_DIRECTORIES:
        for triplet in _TRIPLETS if "{triplet}" in pattern else ("",):
            directory = pattern.format(triplet=triplet)
            link = f"{directory}/libnvidia-ml.so.1"
            if tree.exists(link):
                resolved = tree.resolve(link)
                if _LIBRARY.match(resolved.rsplit("/", 1)[-1]):
                    return resolved
            files = [
                path for path in tree.glob(directory, "libnvidia-ml.so.*") if _LIBRARY.match(path.rsplit("/", 1)[-1])
            ]
            if files:
                return files[-1]
    return None


def library(tree: Tree) -> str | None:
    """The version of libnvidia-ml on disk."""
    path = library_path(tree)
    found = _LIBRARY.match(path.rsplit("/", 1)[-1]) if path else None
    return found.group(1) if found else None


def origin(tree: Tree, installed: dict[str, str] | None, facts: dict[str, Any]) -> str:
    """packages, runfile, operator or none. ``installed`` are the packages, None when they could not be read.

    Raises ValueError when a driver is there and nothing tells where it came from.
    """
    if tree.exists(f"{OPERATOR_ROOT}/usr/bin/nvidia-smi"):
        return "operator"
    if any(tree.isfile(path) for path in UNINSTALLERS):
        return "runfile"
    driver = facts.get("driver", {})
    has_library, has_module = driver.get("library") is not None, driver.get("loaded") is not None
    if installed is None:
        if has_library or has_module:
            raise ValueError("the packages could not be read, so nobody knows who installed the driver")
        return "none"
    if any(DRIVER_PACKAGE.match(name) for name in installed):
        return "packages"
    if has_library:
        return "runfile"
    kernels = facts.get("kernel", {}).get("installed") or []
    built = {(row.get("nvidia") or {}).get("origin") for row in kernels} - {None}
    if built:
        return "runfile" if built == {"runfile"} else "packages"
    return "none"


def runfile(tree: Tree, known: dict[str, Any]) -> dict[str, Any]:
    """``{version, uninstaller}`` of a driver that came from a runfile: by the installer's own log, else its library."""
    first = (tree.text("/var/lib/nvidia/log", 64) or "").partition("\n")[0].strip()
    version = first if _VERSION.fullmatch(first) else known.get("library")
    return {"version": version, "uninstaller": next((path for path in UNINSTALLERS if tree.isfile(path)), None)}


#: Packages that hold a part of a driver without which it is none: module or library. Names have the branch in them, or
#: not (NVIDIA's from R590 on), and after a transaction that was cut off a single one of them may be there.
DRIVER_PACKAGE = re.compile(
    r"^(?:nvidia-(?:driver|open|headless)(?:-(?!pinning-|assistant$).*)?|cuda-drivers(?:-\d+)?|nvidia-(?:tesla-\d+-|tesla-)?"
    r"(?:open-)?kernel-(?:dkms|source|open-dkms)(?:-.*)?|nvidia-dkms(?:-.*)?|libnvidia-compute(?:-.*)?|libcuda1|"
    r"libnvidia-(?:tesla-(?:\d+-)?)?ml1?|nvidia-driver-cuda(?:-libs)?|kmod-nvidia.*|"
    r"(?:lib)?nvidia-compute-(?:G\d\d|utils).*|nvidia-open-driver-G\d\d.*|linux-modules-nvidia-.*)$"
)
