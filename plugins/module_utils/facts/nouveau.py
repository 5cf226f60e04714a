# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nouveau: loaded, blocked, and in which initial ramdisks; and the NVIDIA module that is in one of those."""

from __future__ import annotations

from typing import Any

from . import initrd, modprobe
from .context import Context
from .kernel import flavour_of, initrd_path, installed_releases

MODULE = "nouveau"
_MOST_IMAGES = 4


def read(ctx: Context) -> None:
    """``driver.nouveau.loaded`` and ``.blocked``."""
    tree = ctx.tree
    with ctx.attempt("driver.nouveau.loaded"):
        if tree.isdir("/sys/module"):
            ctx.set("driver.nouveau.loaded", tree.isdir(f"/sys/module/{MODULE}"))
        else:
            table = tree.text("/proc/modules")
            if table is None:
                ctx.cannot("driver.nouveau.loaded", "neither /sys/module nor /proc/modules is there")
            else:
                ctx.set("driver.nouveau.loaded", any(line.startswith(f"{MODULE} ") for line in table.splitlines()))
    with ctx.attempt("driver.nouveau.blocked"):
        cmdline = tree.text("/proc/cmdline", 8192) or ""
        blocked = modprobe.settings(tree).blocks(MODULE) or modprobe.blocked_by_cmdline(cmdline, MODULE)
        ctx.set("driver.nouveau.blocked", blocked)


def read_images(ctx: Context) -> None:
    """``nouveau_images``: kernel release → whether its initrd would load nouveau; taken apart by the collector.

    An image that holds the module and blocks it in its own modprobe.d does not load it. ``nvidia_images``: release →
    version and flavour of the NVIDIA module in it, None where there is none.
    """
    tree = ctx.tree
    bootable = [release for release in reversed(installed_releases(tree)) if initrd_path(tree, release)]
    running = tree.text("/proc/sys/kernel/osrelease", 256) or ""
    bootable.sort(key=lambda release: release != running)
    found: dict[str, bool] = {}
    drivers: dict[str, Any] = {}
    for index, release in enumerate(bootable):
        where = f"kernel.installed[{release}].nouveau_in_initrd"
        if index >= _MOST_IMAGES:
            ctx.cannot(where, f"more than {_MOST_IMAGES} kernels: only the newest images are looked into")
            continue
        if ctx.left < 5:
            ctx.cannot(where, "no time left to look into it")
            continue
        with ctx.attempt(where):
            path = initrd_path(tree, release) or ""
            content = initrd.inspect(tree.real(path), timeout=min(ctx.command_timeout, ctx.left - 3))
            found[release] = content.loads(MODULE)
            name = content.driver
            fields = content.drivers[name] if name is not None else None
            if name is None:
                drivers[release] = None
            elif fields is None or not fields.get("version"):
                where = f"kernel.installed[{release}].nvidia_in_initrd"
                ctx.cannot(where, f"the {name} module in {path} has no version")
            else:
                row = {"version": fields["version"], "flavour": flavour_of(fields)}
                drivers[release] = {key: value for key, value in row.items() if value is not None}
    ctx.set("nouveau_images", found)
    ctx.set("nvidia_images", drivers)
