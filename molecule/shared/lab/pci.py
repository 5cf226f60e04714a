# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the simulated PCI tree of a host: the files that /sys/bus/pci/devices has for each device."""
from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from .settings import LabError

MIB = 1 << 20
MEMORY_64_PREFETCH = 0x0014220C
MEMORY_32 = 0x00040200


def models() -> dict[str, Any]:
    """The device models the lab knows."""
    loaded: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("models.yml").read_text())
    return loaded


def _resource(bars: list[int], slot: int) -> str:
    """The text of the file 'resource': start, end and flags of the regions, one line each."""
    lines, base = [], 0x4000_0000_0000 + slot * 0x40_0000_0000
    for position, mib in enumerate(bars):
        start = base if position else 0x9000_0000 + slot * 0x400_0000
        lines.append(f"0x{start:016x} 0x{start + mib * MIB - 1:016x} "
                     f"0x{MEMORY_64_PREFETCH if position else MEMORY_32:016x}")
        base += max(mib, 1) * MIB
    lines += ["0x" + "0" * 16 + " 0x" + "0" * 16 + " 0x" + "0" * 16] * (13 - len(lines))
    return "\n".join(lines) + "\n"


def _uevent(model: Mapping[str, Any], address: str) -> str:
    def word(key: str) -> str:
        return str(model[key])[2:].upper()

    return (f"PCI_CLASS={int(model['class'], 16):X}\nPCI_ID={word('vendor')}:{word('device')}\n"
            f"PCI_SUBSYS_ID={word('subsystem_vendor')}:{word('subsystem_device')}\nPCI_SLOT_NAME={address}\n")


def write_tree(target: Path, devices: list[Mapping[str, Any]]) -> int:
    """Write the tree of a host and return how many devices it has."""
    known = models()
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    count = 0
    for group in devices:
        if group["model"] not in known:
            raise LabError(f"hosts.yml: model {group['model']!r} is unknown; known: {', '.join(sorted(known))}")
        model = known[group["model"]]
        for address, numa in zip(group["addresses"], group["numa"], strict=True):
            folder = target / address
            folder.mkdir()
            files = {key: f"{model[key]}\n" for key in (
                "vendor", "device", "subsystem_vendor", "subsystem_device", "class", "revision")}
            files |= {
                "current_link_speed": f"{model['speed'][0]} GT/s PCIe\n",
                "max_link_speed": f"{model['speed'][1]} GT/s PCIe\n",
                "current_link_width": f"{model['width'][0]}\n", "max_link_width": f"{model['width'][1]}\n",
                "numa_node": f"{numa}\n", "enable": "1\n", "resource": _resource(model["bars"], count),
                "uevent": _uevent(model, address),
            }
            for name, text in files.items():
                (folder / name).write_text(text)
            count += 1
    return count
