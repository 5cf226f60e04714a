# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the driver's modules are loaded: their options, what is loaded at boot, device nodes, persistence mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.decisions import DriverDecision
from ..model.facts import each
from ..rules.context import Context
from . import fabric

MODPROBE_PATH = "/etc/modprobe.d/baremetal-nvidia.conf"
MODPROBE = """# Managed by the Ansible collection baremetal.nvidia: changes are overwritten.
# nouveau and the nvidia module cannot both drive a GPU.
blacklist nouveau
options nouveau modeset=0
"""
LOAD_PATH = "/etc/modules-load.d/baremetal-nvidia.conf"
LOAD = """# Managed by the Ansible collection baremetal.nvidia: changes are overwritten.
# CUDA needs nvidia_uvm and its device node from the start: a container has no way to load it.
{modules}
"""
NODES_PATH = "/etc/udev/rules.d/71-baremetal-nvidia-nodes.rules"
NODES = """# Managed by the Ansible collection baremetal.nvidia: changes are overwritten.
# The driver makes no device nodes by itself: with these they are there at boot, and not after the first CUDA program.
ACTION!="add", GOTO="end"
TEST!="/usr/bin/nvidia-modprobe", GOTO="end"
DEVPATH=="/bus/pci/drivers/nvidia", RUN+="/usr/bin/nvidia-modprobe -c=0"
DEVPATH=="/module/nvidia_uvm", RUN+="/usr/bin/nvidia-modprobe -c=0 -u"
LABEL="end"
"""
PERSISTENCE_PATH = "/etc/systemd/system/nvidia-persistenced.service.d/baremetal-nvidia.conf"
PERSISTENCE = """# Managed by the Ansible collection baremetal.nvidia: changes are overwritten.
# The packaged unit starts the daemon with persistence mode off for every GPU. In force from the host's next start on.
[Service]
ExecStart=
ExecStart={command}
"""
_OFF = "--no-persistence-mode"


def fill(context: Context, decision: DriverDecision) -> None:
    """Fill in ``modprobe``, ``modules`` and ``files``."""
    decision.modprobe = {"path": MODPROBE_PATH, "content": _modprobe(context, decision)}
    decision.modules = _extra_modules(context)
    loaded = "\n".join(["nvidia_uvm", *decision.modules])
    decision.files = [
        {"path": LOAD_PATH, "content": LOAD.format(modules=loaded), "why": "modules that are there at boot"},
        {"path": NODES_PATH, "content": NODES, "why": "device nodes that are there at boot"},
    ]
    command = _persistenced(context, decision)
    if isinstance(command, str) and _OFF in command.split():
        content = PERSISTENCE.format(command=command.replace(_OFF, "--persistence-mode"))
        decision.files.append({"path": PERSISTENCE_PATH, "content": content, "why": "persistence mode of every GPU"})


def _persistenced(context: Context, decision: DriverDecision) -> object:
    """Return how persistenced is started: as the host has it, or as the unit will that comes with the driver."""
    there = context.host.driver.persistenced_command
    if isinstance(there, str) or context.packaging is None or decision.version is None:
        return there
    row = context.packaging.fabric_package("persistenced", decision.version, decision.source or "nvidia")
    return row.command if row is not None else None


def persistence_off(context: Context) -> list[str]:
    """Return the addresses of GPUs whose persistence mode is off, though the daemon that keeps it runs."""
    if context.host.driver.persistenced_active is not True or context.host.driver.smi_status != "ok":
        return []
    return [card.gpu.address for card in each(context.cards) if card.gpu.persistence is False]


def _modprobe(context: Context, decision: DriverDecision) -> str:
    options: Mapping[str, Mapping[str, Any]] = context.wishes.driver_module_options
    lines = []
    for module, values in sorted(options.items()):
        words = " ".join(f"{key}={value}" for key, value in sorted(values.items()))
        lines.append(f"options {_on_disk(module, decision.module)} {words}\n")
    return MODPROBE + "".join(lines)


def _on_disk(module: str, main: str | None) -> str:
    """Return the name by which modprobe loads a module: Debian's are nvidia-current, nvidia-current-drm."""
    rest = module.removeprefix("nvidia").replace("_", "-")
    return f"{main}{rest}" if main and main != "nvidia" else module


def _extra_modules(context: Context) -> list[str]:
    """Return what is loaded beside the driver: NVLink 5 is managed over InfiniBand; peermem where it is asked for."""
    found = ["ib_umad", "mlx5_ib"] if "nvlsm" in fabric.needs(context) else []
    return found + (["nvidia_peermem"] if context.wishes.driver_peermem else [])
