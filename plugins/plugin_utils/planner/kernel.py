# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel decision: which kernels may start, and what keeps others from arriving."""

from __future__ import annotations

import re

from ...module_utils.packages import apt_files
from ..model.facts import UNKNOWN, each
from ..model.host import Kernel
from ..rules import kernels, ready_modules
from ..rules.context import Context
from . import boot, candidates, family, kernel_gate, kernel_trial


def fill(context: Context) -> None:
    """Fill in ``context.kernel``, except for what needs the chosen driver."""
    decision, host = context.kernel, context.host
    decision.policy = context.wishes.kernel_policy
    decision.boot = context.boot
    if context.borrowed_kernel:
        decision.because.append("the kernel is that of the machine that this container runs on")
        return
    decision.because.append(_why(context))
    decision.allowed = [kernel.release for kernel in each(host.kernels) if _may_start(context, kernel)]
    if context.boot is not None and context.boot not in decision.allowed and not isinstance(host.kernels, tuple):
        decision.allowed = [context.boot]
    decision.remove = _broken(context)
    kernel_gate.fill(context)
    kernel_trial.fill(context)
    if context.wishes.kernel_policy == "off":
        return
    _headers(context)
    _hold(context)
    _files(context)
    if context.boot is not None and host.loader in ("grub", None, UNKNOWN):    # the others are read, and said (KRN024)
        decision.boot_default = {"mode": "saved", "release": context.boot}


def finish(context: Context) -> None:
    """Allow the kernel that is to come in, once the driver's own kernels, those that are installed, are settled."""
    decision = context.kernel
    if context.wishes.kernel_guard and decision.policy != "off" and decision.boot is not None:
        # by hand not even the candidate: it is proved by the playbook that brings it in
        decision.guard = {"allowed": sorted(decision.allowed), "proved": [decision.boot]}
    if decision.stage is not None:
        decision.allowed = [*decision.allowed, decision.stage["release"]]


def _why(context: Context) -> str:
    host, release = context.host, context.boot
    if release is None:
        return "which kernel starts is not known"
    if release == context.wishes.kernel_release:
        return "gpu_kernel_release asks for it"
    if release == host.default_boot:
        return f"{release} is what the boot loader starts, and it works"
    if release == host.running:
        return f"{release} is running; the boot loader's default {host.default_boot} would come up without a driver"
    return f"{release} is the newest complete kernel"


def _may_start(context: Context, kernel: Kernel) -> bool:
    """Say whether a kernel is complete and has, or can get, the module of the chosen driver."""
    if not boot.can_start(context, kernel):
        return False
    if not context.has_gpus or context.wishes.driver_owner != "host":
        return True
    chosen = context.candidate
    if chosen is None:
        return kernels.has_module(kernel) or kernel.release == context.boot
    if kernels.has_module_of(kernel, chosen):
        return True
    if chosen.method == "precompiled":
        if kernel.release == context.boot or chosen.packages is None:
            return kernel.release == context.boot
        name = candidates.module_package(chosen.packages, chosen.branch, chosen.version, kernel.release)
        fitting = ready_modules.version_for(context, name, chosen.version)
        return candidates.needs_own_module(chosen.packages) and fitting is not None
    fit = kernels.fit(context, chosen, kernel.release)
    if fit is not None and fit.answer == "fails":
        return False
    state = kernels.headers_state(context, kernel)
    if kernel.release == context.boot:
        return state != "missing"
    return state in ("there", "offered") and (fit is None or fit.answer == "builds" or state == "there")


def _hold(context: Context) -> None:
    decision, host = context.kernel, context.host.packages
    installed = host.installed if isinstance(host.installed, dict) else {}
    metas = list(context.packaging.kernel.metas) if context.packaging is not None else []
    if context.packaging is not None:
        metas += list(context.packaging.kernel.headers_metas)
    available = host.available if isinstance(host.available, dict) else {}
    there = family.kernel_family(installed)
    gone = set(decision.remove)
    offered = [name for name in family.kernel_family(available) if family.is_meta(name)]
    headers = _names(context, decision.headers)
    others = {name for name in [*metas, *offered] if name not in installed and name not in headers}
    others |= {name for name in decision.remove if family.is_meta(name)}
    decision.deny = sorted(others) if isinstance(host.installed, dict) else []
    decision.hold = sorted({*(name for name in there if name not in gone), *others, *headers})
    decision.manual = _manual(context, installed)


def _names(context: Context, specs: list[str]) -> list[str]:
    """Return the names of packages: rpm's headers have no release in theirs and are asked for with their version."""
    if context.packaging is None or context.packaging.manager == "apt":
        return specs
    return [re.sub(r"-\d+\..*$", "", spec) for spec in specs]


def _manual(context: Context, installed: dict[str, str]) -> list[str]:
    if context.packaging is None or context.packaging.manager != "apt":
        return []
    names = []
    for kernel in each(context.host.kernels):
        if kernel.release in context.kernel.allowed:
            names += [boot.image_package(context, kernel), boot.headers_package(context, kernel)]
    return sorted(name for name in names if name in installed or name in context.kernel.headers)


def _headers(context: Context) -> None:
    chosen = context.candidate
    if not context.wants_driver or chosen is None or chosen.method == "precompiled":
        return
    for kernel in each(context.host.kernels):
        lacks = kernel.release in context.kernel.allowed and kernel.headers is False
        if lacks and kernels.headers_state(context, kernel) in ("offered", "unknown"):
            context.kernel.headers.append(boot.headers_package(context, kernel))


def _broken(context: Context) -> list[str]:
    """Return the packages of kernels that are half-configured and do not run: they are taken out."""
    broken = set(each(context.host.packages.broken))
    found: list[str] = []
    for kernel in each(context.host.kernels):
        image = boot.image_package(context, kernel)
        if kernel.release in (context.host.running, context.boot) or image not in broken:
            continue
        found += [image, *(name for name in (boot.headers_package(context, kernel),) if name in broken)]
        installed = context.host.packages.installed
        version = installed.get(image) if isinstance(installed, dict) else None
        if version and isinstance(installed, dict):
            found += [name for name, other in installed.items()
                      if other == version and family.kernel_family([name]) and family.is_meta(name)]
    return sorted(dict.fromkeys(found))


def _files(context: Context) -> None:
    """Fill in the two files that module kernel_pin writes for the kernel family, word for word."""
    decision, installed = context.kernel, context.host.packages.installed
    if context.packaging is None or context.packaging.manager != "apt" or not isinstance(installed, dict):
        return
    names = {*decision.hold, *decision.deny}
    there = {*installed, *decision.headers} - {*decision.remove}
    decision.preferences = {
        "path": apt_files.PREFERENCES_PATH,
        "content": apt_files.preferences(name for name in names if name not in there),
    }
    decision.auto_upgrades = {"path": apt_files.AUTO_UPGRADES_PATH, "content": apt_files.unattended(names)}
