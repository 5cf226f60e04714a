# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about GPUs whose NVLink reaches over several hosts."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.facts import each
from . import lockstep
from .context import Context
from .registry import Hit, plan_rule


@plan_rule(
    "DRV018", "warning", "IMEX is needed, and neither there nor to be had",
    why="GPUs of a GB200 or GB300 rack export memory to other hosts through IMEX alone: without it multi-node NVLink "
        "fails, while all looks healthy on one host. It has to be of exactly the driver's version.",
    remedy="take the driver from a source that has IMEX in its version (gpu_driver_source: nvidia on Ubuntu and EL), "
           "or install it by hand from NVIDIA's archives; list the hosts of the NVLink domain in "
           "/etc/nvidia-imex/nodes_config.cfg, or leave that to the DRA driver for GPUs, which wants the service off",
    sources=["https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide",
             "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/dra-intro-install.html"],
)
def no_imex(context: Context) -> Iterator[Hit]:
    """Fires when GPUs need IMEX, no package of it is installed, and none comes with the driver."""
    installed, driver = context.host.packages.installed, context.driver
    if not context.wants_driver or driver.version is None or not isinstance(installed, dict):
        return
    if any(lockstep.component_of(name) == "imex" for name in (*installed, *driver.fabric)):
        return
    for card in each(context.cards):
        row = context.matrix.fabric_of(card.gpu.id) if isinstance(card.gpu.id, str) else None
        if row is not None and "imex" in row.needs:
            yield Hit(card.label, f"{card.label} reaches other hosts by NVLink and needs IMEX {driver.version} for it: "
                                  "no package of it is installed, and no package source of this host has it")
            return
