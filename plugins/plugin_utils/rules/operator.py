# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the GPU Operator, as far as one host tells."""

from __future__ import annotations

from collections.abc import Iterator

from .context import Context
from .registry import Hit, plan_rule


@plan_rule(
    "OPR001", "info", "The driver is not the host's",
    why="With another owner the host gets no driver from here; the kernel is still protected.",
    remedy="nothing to do; set gpu_driver_owner: host to have the driver installed here",
    sources=["docs/design.md, section 4"],
)
def other_owner(context: Context) -> Iterator[Hit]:
    """Fires when somebody else owns the driver of a host with GPUs."""
    owner = context.wishes.driver_owner
    if context.has_gpus and owner != "host":
        yield Hit(context.name, "the operator brings the driver" if owner == "operator" else "no driver is managed "
                                                                                             "here")
