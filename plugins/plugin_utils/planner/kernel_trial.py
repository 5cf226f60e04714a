# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trial boot of an installed kernel, what ends it, and which old kernels go."""

from __future__ import annotations

from ..model.facts import UNKNOWN, each
from ..model.host import Kernel
from ..model.version import KernelRelease
from ..rules import kernels
from ..rules.context import Context
from . import boot, family

_LAYOUTS = ("mdraid", "lvm", "crypt", "multipath", "dm", "btrfs", "zfs")


def fill(context: Context) -> None:
    """Fill in trial, trial_reason, trial_release, commit, power_cycle and prune of ``context.kernel``."""
    decision, host = context.kernel, context.host
    decision.trial_reason = _unavailable(context)
    decision.trial = "available" if decision.trial_reason is None else "unavailable"
    if context.wishes.kernel_policy != "gated" or not context.wants_driver or context.boot is None:
        return
    if host.boot.trial_phase == "healthy" and host.running == host.boot.trial_release != context.boot:
        decision.commit = host.running if isinstance(host.running, str) else None
    elif host.boot.trial_release == context.boot and host.boot.trial_phase is not None:
        decision.commit = context.boot  # cut off between the new default and the end of the trial
    else:
        decision.trial_release = _to_try(context)
    wishes = context.wishes
    decision.trial_settings = {"panic": wishes.kernel_trial_panic, "timeout": wishes.kernel_trial_timeout,
                               "fallback_reboot": wishes.kernel_trial_fallback_reboot,
                               "watchdog": wishes.kernel_watchdog}
    if (decision.stage is not None or decision.trial_release is not None) and host.boot.watchdog is None:
        decision.power_cycle = ("there is no watchdog: a kernel that hangs without a panic stays so until somebody "
                                "switches the power off and on; then the present kernel starts")
    _prune(context)


def _unavailable(context: Context) -> str | None:
    """Return why a kernel cannot be tried once, None if it can."""
    here = context.host.boot
    if here.loader is UNKNOWN:
        return "the boot loader could not be read"
    if here.loader is None:
        return "there is no boot loader"
    if here.loader != "grub":
        return f"the boot loader is {here.loader}, which is only read here"
    if here.env_writable is True:
        return None
    if here.env_writable is UNKNOWN:
        return f"whether GRUB can write its environment is not known: {context.host.why_unknown('boot.env_writable')}"
    if isinstance(here.env_reason, str):
        return here.env_reason
    if here.layout in _LAYOUTS:
        return f"/boot is on {here.layout}, which GRUB only reads: an entry that is to start once would start for ever"
    return "GRUB cannot write its environment here: an entry that is to start once would start for ever"


def _to_try(context: Context) -> str | None:
    """Return the newest installed kernel with everything it needs that has not become the default yet."""
    asked, present = context.wishes.kernel_release, KernelRelease.try_parse(context.boot)
    host, lost = context.host, kernels.failed_trial(context)
    found: list[Kernel] = []
    for kernel in each(host.kernels):
        parsed = KernelRelease.try_parse(kernel.release)
        newer = parsed is not None and present is not None and parsed.succeeds(present)
        wanted = kernel.release == asked if asked is not None else newer and (lost is None or kernel.release != lost[0])
        if wanted and kernel.release != context.boot and _complete(context, kernel):
            found.append(kernel)
    return boot.newest(found).release if found else None


def _complete(context: Context, kernel: Kernel) -> bool:
    """Say whether a kernel has image, initrd, the module, and every other module of the present one."""
    present = context.host.kernel(context.boot)
    lacking = set(kernels.lacks_modules(kernel, present)) - set(context.wishes.kernel_modules_waived)
    return boot.can_start(context, kernel) and kernel.initrd is True and kernels.has_module(kernel) and not lacking


def _prune(context: Context) -> None:
    """Name the oldest kernels of the present flavour that are more than are to be kept. A newer one never goes."""
    decision, host = context.kernel, context.host
    present = KernelRelease.try_parse(context.boot)
    if present is None or not isinstance(host.kernels, tuple):
        return
    same: list[tuple[KernelRelease, Kernel]] = []
    for kernel in host.kernels:
        parsed = KernelRelease.try_parse(kernel.release)
        if parsed is not None and parsed.flavour == present.flavour and kernel.image is True:
            same.append((parsed, kernel))
    same.sort(key=lambda one: one[0].key, reverse=True)
    older = [kernel for parsed, kernel in same if parsed.key < present.key]
    before = [kernel.release for kernel in older if isinstance(host.proved, tuple) and kernel.release in host.proved]
    stays = {host.running, host.default_boot, context.boot, decision.trial_release, decision.commit, *before[:1]}
    stays |= {kernel.release for kernel in older if _meta_of(context, kernel) is not None}
    stays |= {kernel.release for parsed, kernel in same if parsed.key >= present.key}
    room = context.wishes.kernel_keep - sum(1 for _parsed, kernel in same if kernel.release in stays)
    for kernel in older:
        if kernel.release in stays:
            continue
        if room > 0:
            room -= 1
            continue
        decision.prune.append(kernel.release)
        decision.prune_packages += _packages(context, kernel)


def _meta_of(context: Context, kernel: Kernel) -> str | None:
    """Return the installed package without a release of its own that asks for this kernel (apt): it would go with it.

    Its version says so: that of the image with Debian, the release with full stops, or at its beginning, with Ubuntu.
    """
    installed = context.host.packages.installed
    if context.packaging is None or context.packaging.manager != "apt" or not isinstance(installed, dict):
        return None
    image = installed.get(boot.image_package(context, kernel))
    number = kernel.release.rpartition("-")[0]
    for name, version in installed.items():
        if name.startswith("linux-") and family.is_meta(name) and (family.kernel_family([name]) or "-nvidia-" in name):
            dotted = version.replace("-", ".")
            if version == image or dotted == number.replace("-", ".") or dotted.startswith(
                    (f"{number.replace('-', '.')}.", f"{number.replace('-', '.')}~")):
                return name
    return None


def _packages(context: Context, kernel: Kernel) -> list[str]:
    """Return what has to be removed for a kernel, as its package manager takes it."""
    installed = context.host.packages.installed
    names = installed if isinstance(installed, dict) else {}
    release = boot.package_release(context, kernel.release)
    if context.packaging is not None and context.packaging.manager == "apt":
        return sorted(name for name in names if name.endswith(f"-{release}"))
    if context.packaging is not None and context.packaging.manager == "zypper":
        if isinstance(kernel.image_package, str):
            return [kernel.image_package]  # with the rebuild counter, which the release does not have
        return [f"kernel-default-{release.rsplit('-', 1)[0]}"] if "kernel-default" in names else []
    own = [f"{name}-{release}" for name in names
           if (name == "kernel" or name.startswith("kernel-")) and "headers" not in name]
    # ready modules that are made for this kernel alone ask for it
    short = family.fill("-{kernel}", "", release=release)
    return sorted([*own, *(name for name in names if name.startswith("kmod-") and name.endswith(short))])
