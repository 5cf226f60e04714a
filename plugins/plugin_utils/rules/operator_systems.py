# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that the operator's driver goes to: their systems as image tags, their kernels, their taints."""

from __future__ import annotations

from functools import lru_cache

from ..model.cluster import Cluster, Node

_BY_MAJOR = ("rhel", "rocky", "ol", "almalinux")
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")


def tag(node: Node, release: tuple[int, ...]) -> str | None:
    """Return the system as the driver image's tag has it: ubuntu24.04, rhel9 (rhel9.6 before 26.7)."""
    if node.system is None:
        return None
    ident, version = node.system
    if ident in _BY_MAJOR and (release >= (26, 7) or ident != "rhel"):
        version = version.split(".")[0]
    return f"{ident}{version}"


@lru_cache(maxsize=16)
def of_driver_nodes(cluster: Cluster, release: tuple[int, ...]) -> dict[str, list[Node]]:
    """Return the nodes that take the operator's driver, by the tag of their system."""
    found: dict[str, list[Node]] = {}
    for node in cluster.nodes:
        name = tag(node, release) if node.takes_driver else None
        if name is not None:
            found.setdefault(name, []).append(node)
    return dict(sorted(found.items()))


@lru_cache(maxsize=16)
def foreign_taints(cluster: Cluster) -> list[tuple[str, str]]:
    """Return the lasting taints of nodes with GPUs that the operator's DaemonSets do not tolerate by themselves."""
    found = {
        (str(taint["key"]), str(taint["effect"]))
        for node in cluster.gpu_nodes
        for taint in node.taints
        if taint.get("effect") in ("NoSchedule", "NoExecute") and isinstance(taint.get("key"), str)
        and taint["key"] != "nvidia.com/gpu" and not taint["key"].startswith(_PASSING)
    }
    return sorted(found)
