# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of nodes that share their GPUs: a busy node waits, is emptied by leave, and gives everything back."""

from __future__ import annotations

import json
from typing import Any

import yaml
from cluster import Cluster, facts

GROUPS = [{"name": "jobs", "hosts": "g1", "preset": "batch"},
          {"name": "parts", "hosts": "g2", "strategy": "mig", "mig_profile": {"3g.40gb": 1, "1g.10gb": 4}}]
H100 = {"address": "0000:17:00.0", "id": "10de:2330", "class": "0302", "driver": "nvidia", "numa_node": 0}


def _mig_manager(kind: Any, seen: dict[str, Any]) -> None:
    """Partition a node as soon as it asks for a layout, and say so."""
    labels = seen["metadata"].get("labels") or {}
    if kind.kind == "Node" and "nvidia.com/mig.config" in labels:
        labels.setdefault("nvidia.com/mig.config.state", "success")


def _pod(name: str, namespace: str, node: str, **more: Any) -> dict[str, Any]:
    limits = {} if namespace == "gpu-operator" else {"limits": {"nvidia.com/gpu": "1"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, **more},
            "spec": {"nodeName": node, "containers": [{"name": "a", "image": "x", "resources": limits}]},
            "status": {"phase": "Running"}}


def _labels(cluster: Cluster, name: str) -> dict[str, str]:
    node = cluster.one("nodes", name)
    assert node is not None
    return {key: value for key, value in node["metadata"]["labels"].items() if "sharing" in key or "config" in key}


def test_groups_come_wait_for_pods_and_are_taken_back(cluster: Cluster) -> None:
    cluster.store.watchers.append(_mig_manager)
    cluster.add("g1")
    cluster.add("g2")
    (cluster.place / "facts" / "g2.json").write_text(json.dumps({**facts(), "host": "g2", "gpus": [H100]}))
    cluster.create(_pod("training", "default", "g2"))

    first = cluster.run(gpu_sharing=GROUPS)
    assert first.code == 0, first.output
    assert "g2 (training)" in first.output and "gpu_processes_may_stop" in first.output, first.output
    shares = cluster.one("configmaps", "baremetal-nvidia-sharing", "gpu-operator")
    layouts = cluster.one("configmaps", "baremetal-nvidia-mig", "gpu-operator")
    assert shares is not None and layouts is not None
    (key,) = [name for name in shares["data"] if name != "whole"]
    assert yaml.safe_load(shares["data"][key])["sharing"]["timeSlicing"]["resources"] == [
        {"name": "nvidia.com/gpu", "replicas": 4}]
    assert _labels(cluster, "g1") == {"baremetal.nvidia/sharing": "jobs", "nvidia.com/device-plugin.config": key}
    assert _labels(cluster, "g2") == {}
    assert cluster.one("pods", "training", "default") is not None
    policy = cluster.one("clusterpolicies", "cluster-policy")
    assert policy is not None and policy["spec"]["mig"] == {"strategy": "mixed"}
    assert policy["spec"]["devicePlugin"]["config"] == {"name": "baremetal-nvidia-sharing", "default": "whole"}
    assert policy["spec"]["migManager"]["config"]["name"] == "baremetal-nvidia-mig"

    # eight instead of four: a new key, which a pod of the plugin on g1 has to see; another one stays
    cluster.create(_pod("plugin-1", "gpu-operator", "g1", labels={"app": "nvidia-device-plugin-daemonset"}))
    cluster.create(_pod("plugin-2", "gpu-operator", "g2", labels={"app": "nvidia-device-plugin-daemonset"}))
    more = [{**GROUPS[0], "replicas": 8}, GROUPS[1]]
    second = cluster.run(gpu_sharing=more, gpu_processes_may_stop=True)
    assert second.code == 0, second.output
    shares = cluster.one("configmaps", "baremetal-nvidia-sharing", "gpu-operator")
    assert shares is not None and key not in shares["data"] and len(shares["data"]) == 2
    assert _labels(cluster, "g1")["nvidia.com/device-plugin.config"] in shares["data"]
    assert cluster.one("pods", "plugin-1", "gpu-operator") is None
    assert cluster.one("pods", "plugin-2", "gpu-operator") is not None
    layout = _labels(cluster, "g2")["nvidia.com/mig.config"]
    layouts = cluster.one("configmaps", "baremetal-nvidia-mig", "gpu-operator")
    assert layouts is not None and layout in yaml.safe_load(layouts["data"]["config.yaml"])["mig-configs"]
    assert cluster.one("pods", "training", "default") is None
    node = cluster.one("nodes", "g2")
    assert node is not None and not node["spec"].get("unschedulable")

    again = cluster.run(gpu_sharing=more)
    assert again.code == 0 and again.changed == 0, again.output

    last = cluster.run(gpu_sharing=[])
    assert last.code == 0, last.output
    assert _labels(cluster, "g1") == {}
    assert _labels(cluster, "g2") == {"nvidia.com/mig.config": "all-disabled", "nvidia.com/mig.config.state": "success"}
    assert cluster.one("configmaps", "baremetal-nvidia-sharing", "gpu-operator") is None
    assert cluster.one("configmaps", "baremetal-nvidia-mig", "gpu-operator") is None
    policy = cluster.one("clusterpolicies", "cluster-policy")
    assert policy is not None and policy["spec"]["devicePlugin"]["config"] == {}
