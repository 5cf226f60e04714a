# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the driver that the operator brings: its image, its module type, the nodes that it has to suit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..model import chart
from ..model.cluster import Node
from ..model.facts import each
from ..model.plan import Severity
from ..model.version import KernelRelease, try_loose
from . import operator_releases, operator_systems
from .context import Context
from .registry import Hit, plan_rule

_PLATFORMS = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/platform-support.html"
_PRECOMPILED = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/precompiled-drivers.html"
_BUILDS = "https://github.com/NVIDIA/gpu-driver-container"
# What NVIDIA builds precompiled images for (gpu-driver-container 06a208c, read 2026-11-30).
_BRANCHES = {"ubuntu22.04": ("580", "595"), "ubuntu24.04": ("580", "595"), "ubuntu26.04": ("595",)}
_KERNELS = {"ubuntu22.04": ("5.15", "6.8"), "ubuntu24.04": ("6.8",), "ubuntu26.04": ("7.0",)}
_FLAVOURS = ("aws", "azure", "azure-fde", "generic", "nvidia", "oracle")
_IMAGE = re.compile(r"linux-image-(?:unsigned-)?([0-9]+\.[0-9]+\.[0-9]+-[0-9]+-[a-z0-9-]+)\Z")


def definitions(context: Context, node: Node | None) -> list[Mapping[str, Any]]:
    """Return the definitions of the operator's driver for the host: the chart's values, or NVIDIADriver objects."""
    decision = context.operator
    if decision is None or chart.flag(decision.values, "driver.enabled", True) is False:
        return []
    if decision.driver_owner == "host":
        return []
    if not chart.flag(decision.values, "driver.nvidiaDriverCRD.enabled"):
        driver = chart.at(decision.values, "driver")
        return [driver] if isinstance(driver, Mapping) else [{}]
    objects = context.cluster.drivers if context.cluster is not None and node is not None else ()
    # As it will be: labels lead the node to another object, and what is planned goes over what has its name.
    after = node.labelled(decision.labels) if node is not None else None
    names = {one["name"] for one in decision.drivers}
    served = [one.spec for one in objects if after is not None and one.takes(after) and one.name not in names]
    return [*(one["spec"] for one in decision.drivers), *served]


def _mine(context: Context) -> list[Mapping[str, Any]]:
    return definitions(context, context.cluster.node_of(context.name) if context.cluster is not None else None)


def _own_images(driver: Mapping[str, Any]) -> bool:
    """Say whether the images come from a registry of one's own, about which nothing is known."""
    return chart.text(driver, "repository") not in (None, "nvcr.io/nvidia")


@plan_rule(
    "OPR060", "error", "Version and kind of the driver image do not go together",
    why="A precompiled image is named by the branch, any other by the full version: the tag would not exist.",
    remedy="give the branch with usePrecompiled: true, else the full version",
    sources=[_PRECOMPILED],
)
def image_name(context: Context) -> Iterator[Hit]:
    """Fires for a full version with usePrecompiled, and for a bare branch without."""
    for driver in _mine(context):
        version = chart.text(driver, "version")
        if version is None or version.startswith("sha256:"):
            continue
        if chart.flag(driver, "usePrecompiled") and "." in version:
            yield Hit("driver.version", f"driver.usePrecompiled is true and driver.version is {version}: precompiled "
                                        "images are named by the branch", f"set driver.version: \"{version[:3]}\"")
        elif not chart.flag(driver, "usePrecompiled") and version.isdigit():
            yield Hit("driver.version", f"driver.version is the branch {version}, but usePrecompiled is not true: "
                                        "there is no such image", "give the full version, or set usePrecompiled: true")
        values = context.operator.values if context.operator is not None else {}
        gds = chart.flag(values, "gds.enabled") or chart.flag(driver, "gds.enabled")
        if chart.flag(driver, "usePrecompiled") and gds:
            yield Hit("gds.enabled", "precompiled driver images have no GDS", "set driver.usePrecompiled: false")


@plan_rule(
    "OPR061", "error", "The operator's driver does not support the GPU",
    why="The driver container builds and loads, and finds no GPU that it knows; a new chart default can do that.",
    remedy="pin a driver that supports the GPU",
    sources=[_PLATFORMS, "https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/deployments/gpu-operator"],
)
def unsupported_gpu(context: Context) -> Iterator[Hit]:
    """Fires when driver.version, or the chart's default, is a driver without support for one of the host's GPUs."""
    row = operator_releases.row(context)
    for driver in _mine(context):
        given = chart.text(driver, "version")
        version = given or (str(row.default_driver) if row is not None else None)
        if version is None or not version[:3].isdigit():
            continue
        for card in each(context.cards):
            if card.product is None:
                continue
            last = getattr(card.product, "last_branch", None)
            if context.matrix.supports(card.product, version).answer == "no":
                told = f"driver.version {given}" if given else f"the chart's default driver {version}"
                yield Hit(card.label, f"{told} does not support {card.label}",
                          f"set driver.version to one of R{last}" if last and version[:3] > str(last) else None)
            yield from _module(card, driver, version)


def _module(card: Any, driver: Mapping[str, Any], version: str) -> Iterator[Hit]:
    asked, rule = chart.text(driver, "kernelModuleType"), card.product.flavour_rule
    if asked == "proprietary" and rule == "open_only":
        yield Hit(card.label, f"driver.kernelModuleType is proprietary, and {card.label} works with open modules alone",
                  "set driver.kernelModuleType: open")
    elif asked == "open" and rule == "proprietary_only":
        yield Hit(card.label, f"driver.kernelModuleType is open, and {card.label} works with proprietary modules alone",
                  "set driver.kernelModuleType: proprietary")
    parsed = try_loose(version)
    if asked == "auto" and parsed is not None and len(parsed) > 1 and parsed < (570, 86, 15):
        yield Hit("driver.kernelModuleType", f"driver.kernelModuleType is auto, which driver {version} does not know; "
                                             "it came with 570.86.15", "set open or proprietary", severity="warning")


@plan_rule(
    "OPR062", "error", "No precompiled driver image for this kernel",
    why="The tag is made of branch, kernel and system; without an image the driver pod waits for ever.",
    remedy="stay on a kernel with an image, or set driver.usePrecompiled: false",
    sources=[_PRECOMPILED, _BUILDS, "https://github.com/NVIDIA/gpu-operator/issues/910"],
)
def no_image(context: Context) -> Iterator[Hit]:
    """Fires for a kernel that no image is built for; a warning for a newer kernel whose image nobody has proved."""
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    for driver in definitions(context, node):
        branch = chart.text(driver, "version")
        if not chart.flag(driver, "usePrecompiled") or branch is None or _own_images(driver):
            continue
        system = operator_systems.tag(node, context.operator.release) if node is not None and context.operator else None
        system = system or (f"{context.host.os.id}{context.host.os.version}" if isinstance(context.host.os.id, str)
                            and isinstance(context.host.os.version, str) else None)
        running = context.host.running if isinstance(context.host.running, str) else node.kernel if node else None
        if system is None or running is None:
            continue
        arch = context.host.os.arch if isinstance(context.host.os.arch, str) else None
        why = not_built(running, system, arch)
        if why is not None:
            yield Hit(running, f"no precompiled image {branch}-{running}-{system}: {why}")
            continue
        if branch[:3] not in _BRANCHES[system]:
            yield Hit(running, f"nobody has proved that the image {branch}-{running}-{system} exists: on {system} "
                               f"NVIDIA builds R{', R'.join(_BRANCHES[system])}", "look the tag up in the registry",
                      severity="warning")
        for release in _newer(context, running):
            held = context.wishes.kernel_policy == "hold" and release != context.host.default_boot
            severity: Severity = "info" if held else "warning"
            yield Hit(release, f"the kernel {release} is on offer, and nobody has proved that the image "
                               f"{branch}-{release}-{system} exists: this kernel waits",
                      "keep the kernel held, look the tag up in the registry, then let it in", severity=severity)


def not_built(kernel: str, system: str, arch: str | None = None) -> str | None:
    """Return why NVIDIA builds no precompiled image for a kernel, None if it does."""
    if system not in _KERNELS:
        return f"NVIDIA builds none for {system}"
    if arch == "aarch64" and system != "ubuntu24.04":
        return "for arm64 there are images on ubuntu24.04 alone"
    release = KernelRelease.try_parse(kernel)
    series = ".".join(str(number) for number in release.series) if release is not None else ""
    if series not in _KERNELS[system]:
        return f"on {system} there are images for kernels {', '.join(_KERNELS[system])} alone"
    flavour = kernel.split("-", 2)[2] if kernel.count("-") >= 2 else ""
    if flavour not in _FLAVOURS or (flavour == "azure-fde" and system == "ubuntu22.04"):
        return f"there is none for {flavour or 'such'} kernels"
    return None


def _newer(context: Context, running: str) -> list[str]:
    """Return the kernels of the running one's flavour that are newer and installed or on offer."""
    now = KernelRelease.try_parse(running)
    packages = context.host.packages.available
    names = [found.group(1) for name in packages if (found := _IMAGE.match(name))] if isinstance(packages, dict) else []
    names += [kernel.release for kernel in each(context.host.kernels)]
    newer: dict[Any, str] = {}
    for name in names:
        release = KernelRelease.try_parse(name)
        if release is not None and now is not None and release.flavour == now.flavour and release.key > now.key:
            newer[release.key] = name
    return [newer[key] for key in sorted(newer)]


@plan_rule(
    "OPR063", "error", "Secure Boot refuses the module of the driver container",
    why="The container builds the module on the node and cannot sign it; the kernel refuses to load it.",
    remedy="set driver.usePrecompiled: true, let the host bring a signed driver, or switch Secure Boot off",
    sources=[_PLATFORMS, _PRECOMPILED],
)
def secure_boot(context: Context) -> Iterator[Hit]:
    """Fires when Secure Boot is on and the operator's container builds the module."""
    if context.host.secure_boot is not True:
        return
    for driver in _mine(context):
        if not chart.flag(driver, "usePrecompiled"):
            yield Hit(context.name, "Secure Boot is on, and the operator's driver container builds a module that "
                                    "nobody signs: it will not load")
            return


@plan_rule(
    "OPR064", "error", "One driver definition for nodes of several systems",
    why="The ClusterPolicy's driver has one image for the whole cluster; nodes of another system never get theirs.",
    remedy="set driver.nvidiaDriverCRD.enabled: true and make an NVIDIADriver object per system, or bring the nodes to "
           "one release",
    sources=[_PLATFORMS],
)
def several_systems(context: Context) -> Iterator[Hit]:
    """Fires when nodes with GPUs run different systems and no NVIDIADriver objects are used."""
    decision, here = context.operator, context.cluster
    if decision is None or here is None or decision.driver_owner == "host":
        return
    values = decision.values
    if not chart.flag(values, "driver.enabled", True) or chart.flag(values, "driver.nvidiaDriverCRD.enabled"):
        return
    systems = operator_systems.of_driver_nodes(here, decision.release)
    if len(systems) > 1:
        told = ", ".join(f"{system} ({', '.join(one.name for one in nodes[:3])})" for system, nodes in systems.items())
        yield Hit("driver.nvidiaDriverCRD.enabled", f"one driver definition for GPU nodes of {told}",
                  None if decision.release >= (26, 7) else "a running driver moves to NVIDIADriver objects from 26.7 "
                  "on: upgrade the operator first, or bring the nodes to one release")
