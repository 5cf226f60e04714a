# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's own daemons: running or not."""

from __future__ import annotations

from .containers import running
from .context import Context

_DAEMONS = {
    "driver.persistenced.active": ("nvidia-persistenced.service", "nvidia-persistenced"),
    "driver.fabricmanager.active": ("nvidia-fabricmanager.service", "nv-fabricmanager"),
}


def read(ctx: Context) -> None:
    """By the service manager where there is one (read before in the same group), else by the processes."""
    services = ctx.known.get("services")
    for path, (unit, command) in _DAEMONS.items():
        if isinstance(services, dict):
            ctx.set(path, bool((services.get(unit) or {}).get("active", False)))
        elif not ctx.tree.is_host:
            ctx.cannot(path, "another tree is read: nothing runs in it")
        else:
            with ctx.attempt(path):
                ctx.set(path, running(ctx.tree, command))
