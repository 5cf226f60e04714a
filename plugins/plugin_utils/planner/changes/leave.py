# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes may be made now: whatever disturbs running work needs leave, and what depends on it waits with it."""

from __future__ import annotations

from dataclasses import replace

from ...model.facts import UNKNOWN, each
from ...model.plan import Change
from ...rules.context import Context

_FIRST = ("gpu_driver_runfile",)  # without it nothing else matters


_STOPS = "gpu_processes_may_stop"


def split(context: Context, found: list[Change]) -> tuple[list[Change], list[Change]]:
    """Return the changes that may be made, and those that wait, each with the variable that gives leave.

    A change that only a playbook of its own makes says so, unless a variable is lacking besides.
    """
    now: list[Change] = []
    waiting: list[Change] = []
    for change in found:
        first = change.needs if change.needs in _FIRST else None
        variable = first or needs(context, change) or change.needs or _waits_with(waiting, change)
        if variable is None:
            now.append(change)
        else:
            waiting.append(replace(change, needs=variable, why=_who(context) if variable == _STOPS else change.why))
    return now, waiting


def needs(context: Context, change: Change) -> str | None:
    """Return the variable whose leave a change lacks, None if it may be made."""
    wishes = context.wishes
    if change.disruption == "reboot" and not wishes.reboot_allowed:
        return "gpu_reboot_allowed"
    if change.disruption == "reboot" and not wishes.processes_may_stop and _gpu_processes(context):
        return _STOPS
    if change.disruption == "restart" and not wishes.containerd_restart_allowed and _gpu_containers(context):
        return "gpu_containerd_restart_allowed"
    reloads = change.disruption in ("daemon_reload", "reboot")
    if reloads and not wishes.daemon_reload_allowed and _would_detach(context):
        return "gpu_daemon_reload_allowed"
    return None


def _waits_with(waiting: list[Change], change: Change) -> str | None:
    """Return the variable of a waiting step that this one builds on: a service or the driver's module waits with its
    packages, since a module without the libraries of its version serves nobody."""
    builds = change.action in ("service", "config", "restart", "cdi", "dev_char", "docker", "crio")
    if not builds and (change.role, change.action, change.target) != ("gpu_driver", "load", "nvidia"):
        return None
    packages = ("install", "upgrade", "fabricmanager")
    return next((one.needs for one in waiting if one.role == change.role and one.action in packages), None)


def _gpu_processes(context: Context) -> bool:
    """Say whether GPU processes run; if that is not known they might, as the roles take it before they restart."""
    processes = context.host.driver.processes
    return processes is UNKNOWN or (isinstance(processes, (int, float)) and processes > 0)


def _who(context: Context) -> str:
    """Return the processes that a reboot would end, by name, or why they are not known."""
    if context.host.driver.processes is UNKNOWN:
        return f"whether GPU processes run is not known: {context.host.why_unknown('driver.processes')}"
    named = list(each(context.host.driver.holders))
    count = context.host.driver.processes
    more = int(count) - len(named) if isinstance(count, (int, float)) else 0
    words = named + ([f"{more} more"] if more > 0 and named else [])
    return f"GPU processes run: {', '.join(words)}" if words else "GPU processes run"


def _gpu_containers(context: Context) -> bool:
    """Say whether GPU containers run; if that is not known while containerd is active, they might."""
    containers = context.host.containers
    if isinstance(containers.gpu_containers, (int, float)):
        return containers.gpu_containers > 0
    return containers.gpu_containers is UNKNOWN and containers.active is True


def _would_detach(context: Context) -> bool:
    """Say whether a reload of systemd's units takes GPUs from containers: not from those that got them by CDI."""
    detachable = context.host.containers.detachable
    if isinstance(detachable, (int, float)):
        return detachable > 0
    return _gpu_containers(context)
