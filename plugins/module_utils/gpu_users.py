# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a node that use its GPUs, and which of them may be evicted, by the rules of ``kubectl drain``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_ENDED = ("Succeeded", "Failed")
_MIRROR = "kubernetes.io/config.mirror"
Pod = dict[str, Any]


def users(pods: Iterable[Pod], kept: Iterable[str] = ()) -> list[Pod]:
    """Return the pods that ask for a GPU or a part of one and have not ended; those of the namespaces ``kept`` do not
    count."""
    beside = set(kept)
    return [pod for pod in pods if _meta(pod).get("namespace") not in beside
            and (pod.get("status") or {}).get("phase") not in _ENDED and _asks(pod)]


def name_of(pod: Pod) -> str:
    """Return ``namespace/name``."""
    return f"{_meta(pod).get('namespace')}/{_meta(pod).get('name')}"


def is_ending(pod: Pod) -> bool:
    """Say whether it was told to go already."""
    return bool(_meta(pod).get("deletionTimestamp"))


def objection(pod: Pod, bare: bool = False, emptydir: bool = False) -> str | None:
    """Return why a pod is not evicted, None where it may be.

    ``bare``: pods that nobody starts again may go all the same; ``emptydir``: so may what lies in an emptyDir on disk.
    """
    if is_ending(pod):
        return None
    owner = _controller(pod)
    if _MIRROR in (_meta(pod).get("annotations") or {}):
        return "is a static pod of the node, which the API server cannot evict: take its manifest from the node"
    if owner is not None and owner.get("kind") == "DaemonSet":
        return f"belongs to the DaemonSet {owner.get('name')}, which would start it again: keep that from the node"
    if owner is None and not bare:
        return "has no controller, so nobody would start it again: end it, or set gpu_operator_evict_bare_pods: true"
    if not emptydir and _keeps_data(pod):
        return "has data in an emptyDir, which goes with it: end it, or set gpu_operator_evict_emptydir: true"
    return None


def _meta(pod: Pod) -> dict[str, Any]:
    return pod.get("metadata") or {}


def _controller(pod: Pod) -> dict[str, Any] | None:
    return next((one for one in _meta(pod).get("ownerReferences") or () if one.get("controller")), None)


def _asks(pod: Pod) -> bool:
    spec = pod.get("spec") or {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        for asked in (resources.get("limits") or {}, resources.get("requests") or {}):
            if any(key.startswith("nvidia.com/") and str(count) != "0" for key, count in asked.items()):
                return True
    return False


def _keeps_data(pod: Pod) -> bool:
    """Say whether there is an emptyDir on disk; one in memory is a shared segment that no process outlives."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return any("emptyDir" in one and (one["emptyDir"] or {}).get("medium") != "Memory" for one in volumes)
