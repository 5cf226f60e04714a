# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about container toolkit, containerd and runc."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.facts import each
from ..model.plan import SEVERITIES
from ..model.version import try_loose
from .context import Context
from .registry import Hit, plan_rule

_TOOLKIT = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/release-notes.html"


def _uses_containers(context: Context) -> bool:
    return context.has_gpus and context.uses_containers


@plan_rule(
    "CTR001", "warning", "The container toolkit is below its security floor",
    why="Below the floor a container can take over the host through the toolkit's hooks.",
    remedy="move nvidia-container-toolkit to the floor or above",
    sources=["https://nvidia.custhelp.com/", _TOOLKIT],
)
def old_toolkit(context: Context) -> Iterator[Hit]:
    """Fires when the installed toolkit, or the one that is asked for, is older than the first fixed release."""
    asked = context.wishes.toolkit_version or (context.toolkit.version if context.toolkit.offline else None)
    least, want = try_loose(context.matrix.toolkit_floor()), try_loose(asked)
    if _uses_containers(context) and want is not None and least is not None and want < least:
        yield Hit(f"nvidia-container-toolkit {asked}", f"nvidia-container-toolkit {asked} is asked for, which is below "
                                                       f"the security floor {context.matrix.toolkit_floor()}",
                  "ask for the floor or a newer one")
        return
    there, floor = context.host.containers.toolkit, context.matrix.toolkit_floor()
    have, least = try_loose(there) if isinstance(there, str) else None, try_loose(floor)
    if _uses_containers(context) and have is not None and least is not None and have < least:
        yield Hit(f"nvidia-container-toolkit {there}", f"nvidia-container-toolkit {there} is below the security floor "
                                                       f"{floor}",
                  f"the plan moves it to {context.toolkit.version}" if context.toolkit.version != there else None)


@plan_rule(
    "CTR002", "warning", "runc is below its security floor",
    why="Known escapes from containers are open in older releases.",
    remedy="update runc from the source it came from",
    sources=["https://github.com/opencontainers/runc/security/advisories"],
)
def old_runc(context: Context) -> Iterator[Hit]:
    """Fires when runc is older than the first fixed release of its line."""
    there = context.host.containers.runc
    have = try_loose(there) if isinstance(there, str) else None
    if not _uses_containers(context) or have is None or context.host.packages.version("runc") not in (None,):
        return
    line = ".".join(str(number) for number in have[:2])
    floor = context.matrix.runc_floor(line) or context.matrix.runc_floor()
    least = try_loose(floor) if isinstance(floor, str) else None
    if least is not None and have < least:
        yield Hit(f"runc {there}", f"runc {there} is below the security floor {floor}")


@plan_rule(
    "CTR003", "warning", "A CDI spec of another driver",
    why="The spec names files by driver version; containers fail, or get the old libraries, until it is made again.",
    remedy="restart nvidia-cdi-refresh.service, or run nvidia-ctk cdi generate",
    sources=["https://github.com/NVIDIA/nvidia-container-toolkit/issues/1611"],
)
def stale_cdi(context: Context) -> Iterator[Hit]:
    """Fires when a CDI spec was made for another driver version than the library on disk."""
    library = context.host.driver.library
    for path, driver in each(context.host.containers.cdi):
        if isinstance(driver, str) and isinstance(library, str) and driver != library and context.has_gpus:
            yield Hit(str(path or "CDI spec"), f"the CDI spec {path} was made for driver {driver}; on disk is "
                                               f"{library}")


@plan_rule(
    "CTR004", "warning", "Something about containerd's configuration",
    why="What containerd really reads decides whether GPU containers start; several of its mistakes are silent.",
    remedy="see the finding",
    sources=["https://github.com/containerd/containerd/blob/main/docs/cri/config.md"],
)
def containerd_notes(context: Context) -> Iterator[Hit]:
    """Fires for each note that the reading of the configuration left."""
    if not _uses_containers(context):
        return
    for note in context.containerd_notes:
        severity = note.severity if note.severity in SEVERITIES else None
        yield Hit(note.subject, note.summary, note.remedy, severity=severity)
