# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that use the GPUs of a node, and which of them may be evicted."""

from __future__ import annotations

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import gpu_users
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import evicting

OWNED = {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]}


def pod(asks=None, volumes=(), phase="Running", **meta):
    container = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1"} if asks is None else asks}}
    return {"metadata": {"namespace": "ai", "name": "web", **(meta or OWNED)},
            "spec": {"containers": [container], "volumes": list(volumes)}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("one", "uses"),
    [
        (pod(), True),
        (pod({"nvidia.com/mig-1g.10gb": "2"}), True),
        (pod({"nvidia.com/gpu.shared": 1}), True),
        (pod(phase="Pending"), True),
        (pod({"cpu": "1"}), False),
        (pod({"nvidia.com/gpu": "0"}), False),
        (pod(phase="Succeeded"), False),
        (pod(namespace="gpu-operator"), False),
        ({"metadata": {"namespace": "ai", "name": "b"}, "spec": {"initContainers": [
            {"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}, True),
    ],
)
def test_pods_that_use_gpus(one, uses):
    assert bool(gpu_users.users([one], ["gpu-operator"])) is uses


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (pod(), None),
        (pod(ownerReferences=[{"kind": "DaemonSet", "name": "agent", "controller": True}]), "DaemonSet agent"),
        (pod(annotations={"kubernetes.io/config.mirror": "1"}), "static pod"),
        (pod(labels={}), "gpu_operator_evict_bare_pods"),
        (pod(ownerReferences=[{"kind": "ConfigMap", "name": "a"}]), "gpu_operator_evict_bare_pods"),
        (pod(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]), None),
        (pod(volumes=[{"name": "scratch", "emptyDir": {}}]), "gpu_operator_evict_emptydir"),
        (pod(labels={}, deletionTimestamp="2026-11-30T00:00:00Z"), None),    # told to go already
    ],
)
def test_pods_that_may_not_be_evicted(one, said):
    found = gpu_users.objection(one)
    assert found is None if said is None else said in str(found)


def test_what_would_be_lost_goes_by_leave():
    assert gpu_users.objection(pod(labels={}), bare=True) is None
    assert gpu_users.objection(pod(volumes=[{"name": "scratch", "emptyDir": {}}]), emptydir=True) is None
    static = pod(annotations={"kubernetes.io/config.mirror": "1"})
    assert gpu_users.objection(static, bare=True, emptydir=True)


def test_each_look_at_an_eviction_is_told():
    progress = evicting.Progress("g1")
    held = "The disruption budget web needs 1 healthy pods and has 1 currently"
    progress.saw({"users": ["ai/a", "ai/b", "ai/c"], "refused": [], "evicted": ["ai/a", "ai/c"],
                  "blocked": {"ai/b": held}})
    progress.saw({"users": ["ai/b", "ai/c"], "refused": [], "evicted": [], "blocked": {"ai/b": held}})
    assert progress.words() == (f"ai/b is held by a PodDisruptionBudget: {held}; ai/c ends "
                                "(evicted from g1 so far: ai/a)")
    assert progress.result() == {"changed": True, "users": ["ai/a", "ai/b", "ai/c"], "evicted": ["ai/a", "ai/c"],
                                 "refused": [], "blocked": {"ai/b": held}}
    progress.saw({"users": [], "refused": [], "evicted": [], "blocked": {}})
    assert progress.left == [] and progress.result()["changed"]
