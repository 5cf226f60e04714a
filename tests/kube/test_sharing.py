# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of nodes that share their GPUs: a busy node waits, is emptied by leave, and gives everything back."""

from __future__ import annotations

import json
import threading
import time
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
    limits = {"limits": more.pop("asks", {} if namespace == "gpu-operator" else {"nvidia.com/gpu": "1"})}
    more.setdefault("ownerReferences", [{"kind": "ReplicaSet", "name": name, "uid": "rs", "controller": True}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, **more},
            "spec": {"nodeName": node, "containers": [{"name": "a", "image": "x", "resources": limits}]},
            "status": {"phase": "Running"}}


def _budget(name: str, allowed: int) -> dict[str, Any]:
    """A budget over the pods with the label app of its name."""
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
            "status": {"disruptionsAllowed": allowed, "desiredHealthy": 1, "currentHealthy": 1}}


def _asked(cluster: Cluster, pod: str) -> int:
    """How often a pod was to be evicted."""
    return cluster.store.writes.count(f"POST pods/{pod}/eviction")


def _allow_in_time(cluster: Cluster, pod: str, budget: str) -> None:
    """Let the budget allow it after the pod was refused twice."""
    while _asked(cluster, pod) < 2:
        time.sleep(0.1)
    found = cluster.one("poddisruptionbudgets", budget, "default")
    assert found is not None
    found["status"]["disruptionsAllowed"] = 1


def _labels(cluster: Cluster, name: str) -> dict[str, str]:
    node = cluster.one("nodes", name)
    assert node is not None
    return {key: value for key, value in node["metadata"]["labels"].items() if "sharing" in key or "config" in key}


def _is_open(cluster: Cluster, name: str) -> bool:
    """Whether a node takes pods, and nothing is left of a cordon of ours."""
    node = cluster.one("nodes", name)
    assert node is not None
    return not node["spec"].get("unschedulable") and not node["metadata"].get("annotations")


def test_groups_come_wait_for_pods_and_are_taken_back(cluster: Cluster) -> None:
    cluster.store.watchers.append(_mig_manager)
    cluster.add("g1")
    cluster.add("g2")
    (cluster.place / "facts" / "g2.json").write_text(json.dumps({**facts(), "host": "g2", "gpus": [H100]}))
    cluster.create(_pod("training", "default", "g2", labels={"app": "training"}))
    cluster.create(_pod("clock", "default", "g2", labels={"app": "training"}, asks={}))
    cluster.create(_budget("training", 0))

    first = cluster.run(gpu_sharing=GROUPS)
    assert first.code == 0, first.output
    assert "g2 (default/training)" in first.output and "gpu_processes_may_stop" in first.output, first.output
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
    threading.Thread(target=_allow_in_time, args=(cluster, "training", "training"), daemon=True).start()
    second = cluster.run(gpu_sharing=more, gpu_processes_may_stop=True)
    assert second.code == 0, second.output
    assert "default/training is held by a PodDisruptionBudget: The disruption budget training needs 1" in second.output
    assert _asked(cluster, "training") == 3 and "DELETE pods/training" not in cluster.store.writes
    shares = cluster.one("configmaps", "baremetal-nvidia-sharing", "gpu-operator")
    assert shares is not None and key not in shares["data"] and len(shares["data"]) == 2
    assert _labels(cluster, "g1")["nvidia.com/device-plugin.config"] in shares["data"]
    assert cluster.one("pods", "plugin-1", "gpu-operator") is None
    assert cluster.one("pods", "plugin-2", "gpu-operator") is not None
    layout = _labels(cluster, "g2")["nvidia.com/mig.config"]
    layouts = cluster.one("configmaps", "baremetal-nvidia-mig", "gpu-operator")
    assert layouts is not None and layout in yaml.safe_load(layouts["data"]["config.yaml"])["mig-configs"]
    assert cluster.one("pods", "training", "default") is None
    assert cluster.one("pods", "clock", "default") is not None    # it asks for no GPU
    assert _is_open(cluster, "g2")

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
    assert policy["spec"]["mig"] == {"strategy": "single"}    # the chart's own: no group needs another one


def test_a_node_is_left_as_it_was_where_a_pod_may_not_go(cluster: Cluster) -> None:
    """A budget that never allows it, a pod that nobody starts again, another's cordon; and a run that was cut off."""
    cluster.store.watchers.append(_mig_manager)
    for name in ("g1", "g2", "g3", "g4", "g5"):
        cluster.add(name)
    cluster.create(_pod("web-1", "default", "g1", labels={"app": "web"}))
    cluster.create(_pod("other", "default", "g1"))
    cluster.create(_budget("web", 0))
    cluster.create(_pod("notebook", "default", "g2", ownerReferences=[]))
    cluster.create(_pod("job", "default", "g2"))
    cordoned, cut_off = cluster.one("nodes", "g3"), cluster.one("nodes", "g4")
    assert cordoned is not None and cut_off is not None
    cordoned["spec"] = {"unschedulable": True}    # somebody's own, for another reason
    cut_off["spec"] = {"unschedulable": True}
    cut_off["metadata"]["annotations"] = {"baremetal.nvidia/cordoned": "sharing"}
    waiting = cluster.one("nodes", "g5")    # the same, and its pods may not be stopped any more
    assert waiting is not None
    waiting["spec"] = dict(cut_off["spec"])
    waiting["metadata"]["annotations"] = dict(cut_off["metadata"]["annotations"])
    cluster.create(_pod("busy", "default", "g5"))

    layout = {"nvidia.com/mig.config": "all-1g.10gb"}
    some = {"labels": layout, "layout": "all-1g.10gb", "empty": True, "may_stop": True, "restart": [],
            "cordoned": False}
    nodes = [{"name": name, **some} for name in ("g1", "g2", "g3")]
    nodes.append({"name": "g4", **some, "labels": {}, "layout": None, "empty": False, "cordoned": True})
    nodes.append({"name": "g5", **some, "may_stop": False, "cordoned": True})
    run = cluster.play("sharing_node.yml", nodes=nodes, answer=str(cluster.place / "refused.json"),
                       gpu_operator_evict_timeout=2)
    assert run.code == 0, run.output
    refused = json.loads((cluster.place / "refused.json").read_text())
    assert sorted(refused) == ["g1", "g2"], run.output
    assert "default/web-1 is held by a PodDisruptionBudget: The disruption budget web needs 1" in refused["g1"], refused
    assert "(evicted from g1 so far: default/other)" in refused["g1"], refused
    assert "default/notebook has no controller" in refused["g2"] and "No pod was evicted" in refused["g2"], refused
    assert cluster.one("pods", "web-1", "default") is not None and cluster.one("pods", "job", "default") is not None
    assert _is_open(cluster, "g1") and _is_open(cluster, "g2") and _is_open(cluster, "g4")
    assert _labels(cluster, "g1") == {} and _labels(cluster, "g2") == {}
    assert _is_open(cluster, "g5") and _labels(cluster, "g5") == {}
    assert cluster.one("pods", "busy", "default") is not None
    assert cordoned["spec"] == {"unschedulable": True}
    assert _labels(cluster, "g3") == {**layout, "nvidia.com/mig.config.state": "success"}
