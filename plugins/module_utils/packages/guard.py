# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether systemd may reload its units now: package scripts do, and under some GPU containers that is an outage.

A container whose GPUs came in behind its specification (by the legacy hook) loses them when systemd sets its control
group anew. The plan may be an hour old, so whoever is about to reload looks again here, right before.
"""
from __future__ import annotations

from ..facts import engines
from ..facts.tree import Tree
from .base import PackageError

VARIABLE = "gpu_daemon_reload_allowed"


class ReloadRefused(PackageError):
    """Running containers would lose their GPUs; the message says how many and what helps."""

    def __init__(self, count: int | None, why: str) -> None:
        self.count = count
        super().__init__(f"{why}, and {VARIABLE} is false. Drain the host first, let containers get their GPUs by CDI "
                         f"(gpu_container_mode: cdi, and start them anew), or set {VARIABLE}: true")


def refuse_under_gpu_containers(root: str = "/") -> None:
    """Return where a reload of systemd's units takes no GPU from a container. Raises ReloadRefused elsewhere."""
    try:
        found = engines.gpu(Tree(root))
    except (OSError, ValueError) as error:
        raise ReloadRefused(None, f"whether GPU containers run here cannot be told ({error})") from error
    if found["detachable"]:
        raise ReloadRefused(found["detachable"],
                            f"{found['detachable']} running containers would lose their GPUs: package scripts reload "
                            "systemd's units, which takes devices that the legacy hook brought in")
