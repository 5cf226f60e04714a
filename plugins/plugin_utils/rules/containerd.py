# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about where containerd comes from, and about what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.version import try_loose
from .context import Context
from .registry import Hit, plan_rule

CERTS = "/etc/containerd/certs.d"
_RELEASES = "https://github.com/containerd/containerd/blob/main/RELEASES.md"


def _present(context: Context) -> bool:
    return (context.has_gpus and context.uses("containerd") and context.wishes.containerd_state == "present"
            and not context.toolkit_by_operator)


@plan_rule(
    "CTR005", "warning", "containerd is from another source than asked for",
    why="Exchanging containerd's package takes the old one out first, and with it, for a moment, every pod's parent. "
        "That is a person's decision.",
    remedy="drain the host and take the package out, or leave gpu_containerd_source auto",
    sources=["https://docs.docker.com/engine/install/debian/#uninstall-old-versions"],
)
def other_source(context: Context) -> Iterator[Hit]:
    """Fires when containerd is there and not from the source that the policy names."""
    wish, there = context.wishes.containerd_source, context.containerd.source
    known = isinstance(context.host.containers.containerd, str) or any(
        isinstance(context.host.packages.version(name), str) for name in context.containerd.packages)
    if _present(context) and known and wish != "auto" and there is not None and there != wish:
        yield Hit("containerd", f"gpu_containerd_source is {wish}, and the containerd that is there is from: {there}")


@plan_rule(
    "CTR006", "error", "Release files that do not make a containerd that runs",
    why="The archive of containerd has no runc in it. Without one no container starts.",
    remedy="give gpu_containerd_archive with containerd and runc, each with version, url and sha256",
    sources=["https://github.com/containerd/containerd/blob/main/docs/getting-started.md"],
)
def no_runc(context: Context) -> Iterator[Hit]:
    """Fires when release files are asked for and none are given, or none of runc on a host without one."""
    if not _present(context) or context.wishes.containerd_source != "archive" or context.containerd.hold:
        return
    archive = context.wishes.containerd_archive
    if not archive:
        yield Hit("gpu_containerd_archive", "gpu_containerd_source is archive, and gpu_containerd_archive is empty")
    elif "runc" not in archive and context.host.containers.runc is None:
        yield Hit("gpu_containerd_archive", "gpu_containerd_archive has no runc, and there is none on the host")


@plan_rule(
    "CTR007", "warning", "Release files below the security floor of their line",
    why="Known holes are open in them. Distributions mend theirs under an older number; release files nobody mends.",
    remedy="name the floor or a later release in gpu_containerd_archive",
    sources=[_RELEASES, "https://github.com/containerd/containerd/security/advisories",
             "https://github.com/opencontainers/runc/security/advisories"],
)
def below_floor(context: Context) -> Iterator[Hit]:
    """Fires for release files of containerd that have known holes, and for such of runc."""
    decision = context.containerd
    if not _present(context):
        return
    version = decision.archive["containerd"]["version"] if "containerd" in decision.archive else None
    if version is not None and context.matrix.open_cves("containerd", version):
        floor = context.matrix.containerd_floor(version)
        yield Hit(f"containerd {version}", f"containerd {version} has known holes: "
                  + ", ".join(row.id for row in context.matrix.open_cves("containerd", version)),
                  f"move it to {floor} or above" if floor else "move it to a line that still gets fixes")
    runc = decision.archive.get("runc")
    if runc is not None and context.matrix.open_cves("runc", runc["version"]):
        floor = context.matrix.runc_floor(runc["version"]) or context.matrix.runc_floor()
        yield Hit(f"runc {runc['version']}", f"gpu_containerd_archive names runc {runc['version']}, which is below the "
                  f"security floor {floor}", f"give runc {floor} or a later one", severity="error")


@plan_rule(
    "CTR008", "error", "Registry hosts in a folder that containerd does not read",
    why="containerd looks for hosts.toml files in registry.config_path alone. Others are ignored in silence.",
    remedy=f"leave gpu_containerd_registry_config_path empty, or put {CERTS} into it",
    sources=["https://github.com/containerd/containerd/blob/main/docs/hosts.md"],
)
def unread_hosts(context: Context) -> Iterator[Hit]:
    """Fires when registry hosts are given together with a folder that is not where they are written."""
    folder = context.wishes.containerd_registry_config_path
    if _present(context) and context.wishes.containerd_registry_hosts and folder is not None and (
            CERTS not in folder.split(":")):
        yield Hit("gpu_containerd_registry_hosts", f"gpu_containerd_registry_hosts are written to {CERTS}, and "
                  f"gpu_containerd_registry_config_path is {folder}")


@plan_rule(
    "CTR009", "warning", "A version of containerd that cannot be had",
    why="No source of the host offers it, so containerd stays what it is.",
    remedy="set a version that is offered, refresh the package lists, or leave gpu_containerd_version empty",
    sources=[_RELEASES],
)
def no_such_version(context: Context) -> Iterator[Hit]:
    """Fires when an exact version is asked for and neither there nor offered."""
    wish, decision = context.wishes.containerd_version, context.containerd
    if not _present(context) or wish is None or decision.source == "archive" or decision.version == wish:
        return
    if any(version is None for version in decision.packages.values()):
        return  # its repository comes first
    have = try_loose(decision.version) if decision.version else None
    if have != try_loose(wish) and context.toolkit.version is not None:
        yield Hit(f"containerd {wish}", f"gpu_containerd_version is {wish}, and no source of the host offers it")
