# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units that matter, in one call of systemctl."""

from __future__ import annotations

import re
from typing import Any

from .context import Context

UNITS = (
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-imex.service",
    "nvidia-cdi-refresh.service",
    "nvidia-cdi-refresh.path",
    "nvidia-dcgm.service",
    "containerd.service",
    "docker.service",
    "crio.service",
    "kubelet.service",
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
    "k0scontroller.service",
    "k0sworker.service",
    "snap.microk8s.daemon-containerd.service",
    "unattended-upgrades.service",
    "apt-daily-upgrade.timer",
    "dnf-automatic.timer",
    "dnf5-automatic.timer",
    "dnf-automatic-install.timer",
    "os-update.timer",
    "transactional-update.timer",
)
_PROPERTIES = "Id,LoadState,ActiveState,UnitFileState"
# as `systemctl is-enabled`, which ends with 0 for these
_ENABLED = frozenset({"enabled", "enabled-runtime", "static", "alias", "indirect", "generated"})


def read(ctx: Context) -> None:
    """``services``: a unit that is not there is null; ``{enabled, active, failed}`` otherwise."""
    tree = ctx.tree
    if not tree.is_host:
        ctx.cannot("services", "another tree is read: no service manager is asked")
        return
    if not tree.isdir("/run/systemd/system"):
        ctx.cannot("services", "systemd does not manage this system")
        return
    answer = ctx.run(["systemctl", "show", f"--property={_PROPERTIES}", "--no-pager", *UNITS])
    if not answer.ok:    # part of an answer would make units that were not reached look absent
        ctx.cannot("services", answer.why("systemctl"))
        return
    ctx.set("services", parse(answer.out))


def parse(text: str) -> dict[str, dict[str, Any] | None]:
    """What ``systemctl show`` prints for several units: blocks of KEY=VALUE with empty lines between."""
    units: dict[str, dict[str, Any] | None] = {}
    for block in re.split(r"\n\s*\n", text):
        row = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        name = row.get("Id")
        if not name:
            continue
        if row.get("LoadState") == "not-found":
            units[name] = None
            continue
        units[name] = {
            "enabled": row.get("UnitFileState") in _ENABLED,
            "active": row.get("ActiveState") in ("active", "reloading", "activating"),
            "failed": row.get("ActiveState") == "failed",
        }
        if row.get("LoadState") == "masked":
            units[name]["masked"] = True  # type: ignore[index]
    return units
