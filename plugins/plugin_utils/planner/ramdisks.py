# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an initial ramdisk must not load: nouveau, and an nvidia module of another driver than the planned one."""

from __future__ import annotations

from ..model.facts import UNKNOWN
from ..model.host import Kernel, Module
from ..rules import kernels
from ..rules.context import Context


def holds_nouveau(context: Context, kernel: Kernel) -> bool:
    """Say whether nouveau is loaded from the initial ramdisk of a kernel."""
    if isinstance(kernel.nouveau_in_initrd, bool):
        return kernel.nouveau_in_initrd
    return context.host.driver.nouveau_in_initramfs is True


def holds_another(context: Context, kernel: Kernel) -> bool:
    """Say whether the initial ramdisk of a kernel holds another nvidia module than the planned one, or might.

    One that nobody looked into is looked into by the module, where the driver under it moves.
    """
    inside = kernel.initrd_driver
    if context.driver.version is None or kernel.initrd is False or kernel.initrd is None:
        return False
    if isinstance(inside, tuple):
        version, flavour = inside
        return version != context.driver.version or (flavour is not None and flavour != context.driver.flavour)
    return inside is UNKNOWN and isinstance(kernel.module, Module) and moves(context, kernel)


def moves(context: Context, kernel: Kernel) -> bool:
    """Say whether another nvidia module than the present one comes for this kernel."""
    return context.candidate is not None and not kernels.has_module_of(kernel, context.candidate)


def words(context: Context, kernel: Kernel) -> tuple[str, str, str]:
    """Return what is in the initial ramdisk, what will be, and why."""
    if holds_nouveau(context, kernel):
        return "nouveau in the initramfs", "without nouveau", "nouveau is blocked"
    inside = kernel.initrd_driver
    before = "not known whether nvidia is in the initramfs"
    if isinstance(inside, tuple):
        before = f"nvidia {' '.join(one for one in inside if one)} in the initramfs"
    return before, f"nvidia {context.driver.version} or none", (
        "the host would load that module at its next boot, under the libraries of another version")
