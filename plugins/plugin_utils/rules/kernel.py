# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about kernels: what builds on them, what the next boot starts, and what they need."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..model.facts import each
from ..model.host import Kernel, Module
from ..model.version import KernelRelease, try_loose
from . import kernels
from .context import Candidate, Context
from .registry import Hit, candidate_rule, plan_rule

_COMPILER = re.compile(r"gcc-[0-9]+\Z")
_WRITES_BOOT = ("boot_default", "initramfs", "remove", "headers", "stage", "trial", "commit", "prune")
_BUILDS = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues"


@candidate_rule(
    "KRN001", "error", "The driver does not build on the kernel",
    why="A module that does not build leaves a host without GPUs after the next boot, and packages half-configured.",
    remedy="take a driver version that builds on this kernel, or leave gpu_driver_branch: auto",
    sources=[_BUILDS],
)
def does_not_build(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the matrix knows that this version fails on the kernel that is to be started."""
    fit = kernels.fit(context, candidate, context.boot)
    if fit is not None and fit.answer == "fails":
        yield Hit(str(context.boot), f"{candidate.version} ({candidate.flavour} modules, R{candidate.branch}) does "
                                     "not build "
                                     f"on kernel {context.boot}{kernels.reason(fit)}", sources=kernels.sources(fit))


@candidate_rule(
    "KRN002", "warning", "Nobody has tried this driver on this kernel",
    why="The matrix holds what was built or stated; everything else is a guess that only a build on the host settles.",
    remedy="the module is built in a scratch tree before anything is installed; add a row with gpu_matrix_overlay if "
           "it builds",
    sources=["docs/design.md, section 7"],
)
def untried(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the matrix has no answer for driver and kernel."""
    fit = kernels.fit(context, candidate, context.boot)
    if fit is not None and fit.answer == "unknown":
        yield Hit(str(context.boot), f"the matrix does not know whether {candidate.version or 'R' + candidate.branch} "
                                     f"({candidate.flavour}) builds on {context.boot}")


@candidate_rule(
    "KRN003", "error", "No headers for the kernel",
    why="Without the headers of the kernel that starts, no module can be built for it.",
    remedy="enable the repository that holds these headers, or start a kernel whose headers are on offer",
    sources=["https://github.com/NVIDIA/gpu-driver-container/issues/793"],
)
def no_headers(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the module has to be built and the headers are neither installed nor on offer."""
    kernel = context.host.kernel(context.boot)
    if kernel is None or candidate.method != "dkms" or kernels.has_module_of(kernel, candidate):
        return
    if kernels.headers_state(context, kernel) == "missing":
        name, version = kernels.headers_package(context, kernel)
        offers = context.host.packages.offers(name)
        beside = f"; on offer is {', '.join(offers)}" if isinstance(offers, tuple) and offers else ""
        yield Hit(kernel.release, f"no enabled repository has {name}{' ' + version if version else ''}, the headers of "
                                  f"{kernel.release}{beside}")


@plan_rule(
    "KRN004", "warning", "The next boot would start a kernel without a working driver",
    why="A kernel that arrived in the background is started at the next boot, whether it has a module or not.",
    remedy="the plan pins the boot default to a kernel that works",
    sources=["https://github.com/Azure/batch-shipyard/issues/174", "https://engineered.at/articles/debian-testing-kernel-update-snafu"],
)
def bad_default(context: Context) -> Iterator[Hit]:
    """Fires when the boot loader's default is gone, incomplete or without a module while another kernel has one."""
    host, default = context.host, context.host.default_boot
    if not isinstance(default, str) or not isinstance(host.kernels, tuple) or not context.has_gpus:
        return
    kernel, keep = host.kernel(default), f"; the plan starts {context.kernel.boot}" if context.kernel.boot else ""
    other = context.kernel.boot if context.kernel.boot != default else None
    if kernel is None:
        if host.kernels:
            yield Hit(default, f"the boot loader's default is {default}, which is not installed any more{keep}")
    elif kernel.image is False or kernel.initrd is False:
        what = "image" if kernel.image is False else "initrd"
        yield Hit(default, f"the boot loader's default {default} has no {what}{keep}")
    elif context.wishes.driver_owner != "operator" and not kernels.has_module(kernel) and any(
        kernels.has_module(one) for one in host.kernels
    ):
        yield Hit(default, f"the next boot starts {default}, for which there is no nvidia "
                           f"module{keep if other else ''}",
                  None if other else "the module is built for it before anything else changes")


@plan_rule(
    "KRN005", "info", "An installed kernel has no module",
    why="Whoever picks it in the boot menu has a host without GPUs.",
    remedy="remove the kernel, or install its headers so that the module is built",
    sources=["docs/design.md, section 7"],
)
def spare_kernel(context: Context) -> Iterator[Hit]:
    """Fires for a complete kernel that is not started by default and stays without a module."""
    if not context.wants_driver or not context.kernel.allowed:
        return
    for kernel in each(context.host.kernels):
        spare = kernel.release not in (*context.kernel.allowed, context.host.default_boot)
        if spare and kernel.image is True:
            yield Hit(kernel.release, f"{kernel.release} is installed and gets no nvidia module{_why(context, kernel)}")


def _why(context: Context, kernel: Kernel) -> str:
    if kernel.initrd is False:
        return ": it has no initrd"
    if kernels.headers_state(context, kernel) == "missing":
        return ": its headers are neither installed nor on offer"
    return ""


@plan_rule(
    "KRN006", "error", "The wanted kernel is not installed",
    why="A boot default that names a kernel that is not there leaves the choice to the boot loader.",
    remedy="bring it in (gpu_kernel_policy: gated, playbook kernel_upgrade.yml), or leave gpu_kernel_release out",
    sources=["docs/design.md, section 7"],
)
def wanted_kernel(context: Context) -> Iterator[Hit]:
    """Fires when gpu_kernel_release names a kernel that is neither installed nor about to be brought in."""
    asked, stage = context.wishes.kernel_release, context.kernel.stage
    if asked is None or not context.has_gpus or (stage is not None and stage["release"] == asked):
        return
    if isinstance(context.host.kernels, tuple) and context.host.kernel(asked) is None:
        there = ", ".join(kernel.release for kernel in context.host.kernels) or "none"
        yield Hit(asked, f"gpu_kernel_release {asked} is not installed; installed is {there}")


@candidate_rule(
    "KRN007", "error", "The kernel is older than the driver allows",
    why="Each branch has a lowest kernel; below it the module does not build.",
    remedy="take an older branch, or a newer kernel",
    sources=["https://download.nvidia.com/XFree86/Linux-x86_64/"],
)
def kernel_too_old(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the kernel is below the branch's lowest one."""
    row, release = context.matrix.branch(candidate.branch), KernelRelease.try_parse(context.boot)
    lowest = try_loose(row.min_kernel) if row is not None else None
    if release is not None and lowest is not None and release.version < lowest:
        yield Hit(release.text, f"R{candidate.branch} needs kernel {row.min_kernel} or newer, and {release.text} is "
                                "to start")


@plan_rule(
    "KRN009", "info", "A newer kernel is held back",
    why="A hold keeps fixes out as well; somebody should know.",
    remedy="let it in once its module is proved: gpu_kernel_policy: gated, then playbook kernel_upgrade.yml",
    sources=["docs/design.md, section 7"],
)
def held_back(context: Context) -> Iterator[Hit]:
    """Fires when the sources offer a newer kernel than the one that is held."""
    host = context.host.packages
    if context.wishes.kernel_policy != "hold" or not isinstance(host.installed, dict) or context.packaging is None:
        return
    for name in context.packaging.kernel.metas:
        there, offers = host.version(name), host.offers(name)
        if isinstance(there, str) and isinstance(offers, tuple) and offers and offers[0] != there:
            yield Hit(name, f"{name} {offers[0]} is on offer; {there} is held")
            return


@plan_rule(
    "KRN010", "warning", "The loaded module is not the one for this kernel",
    why="A module whose version magic does not fit its kernel is refused at the next boot.",
    remedy="the plan builds it again",
    sources=["docs/design.md, section 7"],
)
def wrong_magic(context: Context) -> Iterator[Hit]:
    """Fires when an installed module does not fit its kernel."""
    for kernel in each(context.host.kernels):
        if isinstance(kernel.module, Module) and kernel.module.vermagic_ok is False and context.has_gpus:
            yield Hit(kernel.release, f"the nvidia module for {kernel.release} was built for another kernel")


@plan_rule(
    "KRN011", "warning", "The kernel was built with another compiler than the one on the host",
    why="A module has to be built by the compiler of its kernel: a different one fails, or builds what the kernel "
        "refuses.",
    remedy="the plan installs the compiler of the kernel beside the other one",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/564"],
)
def other_compiler(context: Context) -> Iterator[Hit]:
    """Fires when a module has to be built, another gcc is installed and the kernel's own is not."""
    kernel, chosen = context.host.kernel(context.boot), context.candidate
    if kernel is None or chosen is None or chosen.method != "dkms" or kernels.has_module_of(kernel, chosen):
        return
    wanted, installed = kernels.compiler_package(context, kernel), context.host.packages.installed
    if context.packaging is None or context.packaging.manager != "apt":
        return
    if wanted is None or not isinstance(installed, dict) or kernels.compiler_is_there(context, wanted) is not False:
        return
    others = sorted(name for name in installed if _COMPILER.match(name))
    if others:
        offered = context.host.packages.offers(wanted)
        missing = isinstance(context.host.packages.available, dict) and others[0] in context.host.packages.available
        yield Hit(kernel.release, f"{kernel.release} was built with {wanted}, and the host has {', '.join(others)}",
                  f"install {wanted} from a source that has it" if missing and not offered else None)


@plan_rule(
    "KRN012", "error", "The boot file system cannot be written",
    why="A boot default, an initramfs or a kernel that cannot be written leaves the next boot to chance.",
    remedy="mount /boot read-write and find out why it was not (errors in the kernel log?)",
    sources=["docs/design.md, section 7"],
)
def read_only_boot(context: Context) -> Iterator[Hit]:
    """Fires when /boot is read-only and something on it has to change."""
    storage = context.host.storage
    state = storage.get("/boot") if isinstance(storage, dict) else None
    writes = [change for change in (*context.changes, *context.pending) if change.action in _WRITES_BOOT]
    if isinstance(state, dict) and state.get("read_only") is True and writes:
        yield Hit("/boot", f"/boot is read-only, and {writes[0].action} of {writes[0].target} has to write there")


@plan_rule(
    "KRN013", "warning", "The next kernel lacks another module that this host lives on",
    why="OFED, ZFS or Lustre are as much a part of a node as its driver: without them it comes up without network or "
        "data.",
    remedy="build that module for the kernel, or keep the present one as the boot default",
    sources=["docs/design.md, section 7"],
)
def other_module_missing(context: Context) -> Iterator[Hit]:
    """Fires when the kernel that would start next lacks out-of-tree modules that the running one has."""
    host = context.host
    default, running = host.kernel(host.default_boot), host.kernel(host.running)
    lacks = kernels.lacks_modules(default, running)
    if default is not None and lacks and context.has_gpus:
        yield Hit(default.release, f"{default.release} has no {', '.join(lacks)}, which {host.running} has"
                                   f"; the plan starts {context.kernel.boot}")


@plan_rule(
    "KRN014", "warning", "The running kernel is no longer installed",
    why="Its modules and headers are gone from the disk: nothing can be built or loaded for it any more.",
    remedy="restart the host into an installed kernel, and hold the kernel family",
    sources=["docs/design.md, section 7"],
)
def running_is_gone(context: Context) -> Iterator[Hit]:
    """Fires on a machine of its own whose running kernel is not among the installed ones."""
    host = context.host
    known = isinstance(host.kernels, tuple) and bool(host.kernels) and isinstance(host.running, str)
    own = host.os.virt in (None, "none", "kvm", "qemu") and context.has_gpus
    if known and own and host.kernel(host.running) is None:
        yield Hit(str(host.running), f"{host.running} is running and not installed any more")


@plan_rule(
    "KRN015", "warning", "DKMS could not build the module",
    why="A build that failed once fails again at the next kernel or driver, in the middle of a package transaction.",
    remedy="look into the build log (make.log) of that version and kernel",
    sources=["docs/design.md, section 7"],
)
def broken_build(context: Context) -> Iterator[Hit]:
    """Fires for a build of the driver that DKMS calls broken, on an installed kernel."""
    for name, version, release, state in each(context.host.driver.dkms):
        if state == "broken" and context.host.kernel(release) is not None and "nvidia" in name:
            yield Hit(release, f"DKMS has {name} {version} for {release} as broken")
