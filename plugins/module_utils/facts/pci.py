# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and NVSwitches on the PCI bus, by sysfs alone: right with any driver and with none.

Source: https://docs.kernel.org/PCI/sysfs-pci.html, include/linux/ioport.h (resource flags).
"""

from __future__ import annotations

import re
from typing import Any

from .context import Context
from .tree import Tree

BUS = "/sys/bus/pci"
DEVICES = f"{BUS}/devices"
_NVIDIA = "0x10de"
_GPU_CLASSES = ("0300", "0302")
_NVSWITCH_CLASS = "0680"
_IORESOURCE_MEM = 0x200
_IORESOURCE_MEM_64 = 0x100000
_IORESOURCE_UNSET = 0x20000000
_SMALLEST_WINDOW = 64 * 1024 * 1024


def read(ctx: Context) -> None:
    tree = ctx.tree
    if not tree.isdir(DEVICES):
        ctx.cannot("gpus", f"{DEVICES} is not there")
        ctx.cannot("nvswitches", f"{DEVICES} is not there")
        return
    kernels_own = of_the_kernel(tree)
    gpus: list[dict[str, Any]] = []
    switches: list[dict[str, Any]] = []
    with ctx.attempt("gpus"):
        for address in tree.names(DEVICES):
            where = f"{DEVICES}/{address}"
            with ctx.attempt(f"gpus[{address}]"):
                if (tree.text(f"{where}/vendor", 16) or "").lower() != _NVIDIA:
                    continue
                kind = _hex(tree.text(f"{where}/class", 16))[:4]
                identity = f"10de:{_hex(tree.text(f'{where}/device', 16))}"
                if kind in _GPU_CLASSES:
                    gpus.append(gpu(ctx, address, identity, kind, kernels_own))
                elif kind == _NVSWITCH_CLASS:
                    switches.append({"address": address, "id": identity})
        ctx.set("gpus", gpus)
        ctx.set("nvswitches", switches)


def of_the_kernel(tree: Tree) -> bool:
    """Whether the devices are the kernel's own; of those of another file system it knows nothing."""
    try:
        return tree.stat(DEVICES).st_dev == tree.stat(BUS).st_dev
    except OSError:
        return True


def gpu(ctx: Context, address: str, identity: str, kind: str, kernels_own: bool = True) -> dict[str, Any]:
    """One GPU; what the driver alone can tell (persistence, mig, fabric) is null until it is asked."""
    tree, where = ctx.tree, f"{DEVICES}/{address}"
    row: dict[str, Any] = {"address": address, "id": identity, "subsystem": subsystem(tree, where), "class": kind}
    link = tree.readlink(f"{where}/driver")
    if link or kernels_own:
        row["driver"] = link.rsplit("/", 1)[-1] if link else None
    else:
        ctx.cannot(f"gpus[{address}].driver", f"not the kernel's own device: another file system lies over {DEVICES}")
    with ctx.attempt(f"gpus[{address}].numa_node"):
        node = tree.text(f"{where}/numa_node", 16)
        row["numa_node"] = None if node is None or int(node) < 0 else int(node)
    with ctx.attempt(f"gpus[{address}].link"):
        row["link"] = {
            "width": _width(tree.text(f"{where}/current_link_width", 32)),
            "width_max": _width(tree.text(f"{where}/max_link_width", 32)),
            "speed": _speed(tree.text(f"{where}/current_link_speed", 32)),
            "speed_max": _speed(tree.text(f"{where}/max_link_speed", 32)),
        }
    with ctx.attempt(f"gpus[{address}].bar_ok"):
        resources = tree.text(f"{where}/resource", 4096)
        if resources is None:
            ctx.cannot(f"gpus[{address}].bar_ok", f"{where}/resource is not there")
        else:
            row["bar_ok"] = bars_ok(resources)
    row.update({"persistence": None, "mig": None, "fabric": None})
    return row


def bars_ok(resources: str) -> bool:
    """Whether the registers (BAR 0) and the memory window of a GPU have their addresses.

    ``resources`` is the text of sysfs' ``resource``: a line a BAR with start, end and flags; a 64-bit BAR takes two
    lines, so that the window is in line 1 up to Ampere and in line 2 from Hopper on. Raises ValueError where this
    cannot be told: GPUs with memory of their own on the CPU's bus (Grace) have no window.
    """
    bars: list[tuple[int, int, int]] = []
    lines = [line.split() for line in resources.splitlines()[:6]]
    while lines:
        words = lines.pop(0)
        if len(words) != 3:
            continue
        start, end, flags = (int(word, 16) for word in words)
        if flags & _IORESOURCE_MEM:
            bars.append((start, end, flags))
            if flags & _IORESOURCE_MEM_64 and lines:
                lines.pop(0)
    if not bars:
        raise ValueError("no memory BAR in resource")
    if any(start == 0 or flags & _IORESOURCE_UNSET for start, _end, flags in bars):
        return False
    if any(end - start + 1 >= _SMALLEST_WINDOW for start, end, _flags in bars):
        return True
    if bars[0][2] & _IORESOURCE_MEM_64:
        raise ValueError("no memory window among its BARs: lost, or a GPU that has none")
    return False


def subsystem(tree: Tree, where: str) -> str | None:
    """``vvvv:dddd``, None where the device has none."""
    vendor, device = tree.text(f"{where}/subsystem_vendor", 16), tree.text(f"{where}/subsystem_device", 16)
    if not vendor or not device or int(vendor, 16) == 0:
        return None
    return f"{_hex(vendor)}:{_hex(device)}"


def _hex(text: str | None) -> str:
    if not text:
        raise ValueError("vendor, device or class is empty")
    return text.lower()[2:] if text.lower().startswith("0x") else text.lower()


def _width(text: str | None) -> int | None:
    """Lanes; sysfs says 0 or 63/255 when the link is not up."""
    if not text or not text.isdigit() or int(text) in (0, 63, 255):
        return None
    return int(text)


def _speed(text: str | None) -> float | None:
    """GT/s of ``16.0 GT/s PCIe``; None for ``Unknown``."""
    found = re.match(r"([\d.]+) ?GT/s", text or "")
    return float(found.group(1)) if found else None
