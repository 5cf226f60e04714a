# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's own daemons: running or not."""

from __future__ import annotations

from .containers import running
from .context import Context
from .tree import Tree

_DAEMONS = {
    "driver.persistenced.active": ("nvidia-persistenced.service", "nvidia-persistenced"),
    "driver.fabricmanager.active": ("nvidia-fabricmanager.service", "nv-fabricmanager"),
}


_UNITS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")


def start_command(tree: Tree, unit: str) -> str | None:
    """How a unit starts its program: the last ExecStart of the unit and its drop-ins; None without the unit."""
    found = next((path for one in _UNITS if tree.isfile(path := f"{one}/{unit}")), None)
    if found is None:
        return None
    drop_ins: dict[str, str] = {}
    for one in reversed(_UNITS):
        drop_ins.update({path.rpartition("/")[2]: path for path in tree.glob(f"{one}/{unit}.d", "*.conf")})
    started = None
    for path in (found, *(drop_ins[name] for name in sorted(drop_ins))):
        for line in (tree.text(path, 65536) or "").replace("\\\n", " ").splitlines():
            key, mark, value = line.partition("=")
            if mark and key.strip() == "ExecStart":
                started = value.strip() or None
    return started


def read(ctx: Context) -> None:
    """By the service manager where there is one (read before in the same group), else by the processes."""
    with ctx.attempt("driver.persistenced.command"):
        ctx.set("driver.persistenced.command", start_command(ctx.tree, "nvidia-persistenced.service"))
    services = ctx.known.get("services")
    for path, (unit, command) in _DAEMONS.items():
        if isinstance(services, dict):
            ctx.set(path, bool((services.get(unit) or {}).get("active", False)))
        elif not ctx.tree.is_host:
            ctx.cannot(path, "another tree is read: nothing runs in it")
        else:
            with ctx.attempt(path):
                ctx.set(path, running(ctx.tree, command))
