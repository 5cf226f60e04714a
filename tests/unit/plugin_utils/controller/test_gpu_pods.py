# SPDX-License-Identifier: GPL-3.0-or-later
"""Verification pods: where they go, and what they say against labels and plans."""

from __future__ import annotations

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import gpu_pods

OPTIONS = {"each": "shape", "namespace": "gpu-operator", "image": "cuda:1", "runtime_class": "nvidia"}
LABELS = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-L40S",
          "nvidia.com/cuda.driver-version.full": "580.178.04"}


def _node(name, allocatable=None, taints=(), **labels):
    return {"name": name, "labels": {**LABELS, **labels}, "taints": list(taints), "os_image": "Ubuntu 24.04",
            "allocatable": {"nvidia.com/gpu": "8"} if allocatable is None else allocatable}


def _pods(*nodes, **options):
    return gpu_pods.pods({"version": "1.34", "nodes": list(nodes)}, {**OPTIONS, **options})


def _on(pod):
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return terms["nodeSelectorTerms"][0]["matchFields"][0]["values"]


def test_one_node_of_each_shape_or_every_node():
    nodes = [_node("g1"), _node("g2"), _node("g3", **{"nvidia.com/gpu.product": "NVIDIA-H100"})]
    assert [_on(one) for one in _pods(*nodes)["pods"]] == [["g1"], ["g3"]]
    assert len(_pods(*nodes, each="node")["pods"]) == 3


def test_a_pod_asks_for_what_its_node_offers_and_stands_its_taints():
    taint = {"key": "batch", "value": "x", "effect": "NoSchedule"}
    pod = _pods(_node("g1", {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}, [taint]))["pods"][0]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/mig-1g.10gb": "1"}}
    assert {"key": "batch", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
    assert pod["runtimeClassName"] == "nvidia" and pod["restartPolicy"] == "Never"


def test_a_node_that_offers_nothing_is_named():
    assert _pods(_node("g1", {}))["differs"][0].startswith("g1 has GPUs, and offers none")


def _judge(log, phase="Succeeded", status=None, plans=(), unread=None, **labels):
    facts = {"version": "1.34", "nodes": [_node("g1", **labels)]}
    pod = {"metadata": {"name": "p", "annotations": {"baremetal.nvidia/node": "g1"}},
           "status": {"phase": phase, **(status or {})}}
    return gpu_pods.judge(facts, [pod], {"p": log}, plans, unread)


def test_what_agrees_is_proved():
    judged = _judge("NVIDIA L40S, 580.178.04, GPU-1\n", **{"nvidia.com/gpu.product": "NVIDIA-L40S-SHARED"})
    assert judged == {"differs": [], "busy": [], "proved": ["g1: NVIDIA L40S / 580.178.04"]}


def test_what_differs_from_labels_and_plan_is_named():
    plan = {"host": "g1", "decisions": {"driver": {"owner": "host", "version": "595.91.07"}}, "pending": []}
    told = " ".join(_judge("NVIDIA H100, 580.105.08, GPU-1\n", plans=[plan])["differs"])
    assert "label nvidia.com/gpu.product says NVIDIA-L40S" in told
    assert "labels say 580.178.04" in told and "plan wants 595.91.07" in told


def test_a_plan_that_waits_for_leave_is_no_difference():
    plan = {"host": "g1", "decisions": {"driver": {"owner": "host", "version": "595.91.07"}},
            "pending": [{"role": "gpu_driver"}]}
    assert _judge("NVIDIA L40S, 580.178.04, GPU-1\n", plans=[plan])["differs"] == []


def test_pods_that_fail_wait_or_find_no_free_gpu():
    failed = _judge("NVIDIA-SMI has failed because it couldn't communicate", "Failed")
    assert "couldn't communicate" in failed["differs"][0]
    waits = {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}
    assert _judge("", "Pending", waits)["differs"] == ["g1: the pod waits (ImagePullBackOff: no such image)"]
    full = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "Insufficient nvidia.com/gpu"}]}
    assert _judge("", "Pending", full)["busy"] and not _judge("", "Pending", full)["differs"]
    assert "names no GPU" in _judge("No devices were found")["differs"][0]


def test_a_log_that_may_not_be_read_is_not_taken_for_an_empty_one():
    judged = _judge("", unread={"p": "the user may not do this (pods/log is forbidden)"})
    assert judged["proved"] == [] and judged["differs"] == [
        "g1: nvidia-smi ended well, but what it said cannot be read: the user may not do this (pods/log is forbidden)"]
