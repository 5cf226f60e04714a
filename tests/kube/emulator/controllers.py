# SPDX-License-Identifier: GPL-3.0-or-later
"""The controllers that the emulator plays: the operator's answer to a ClusterPolicy, rollouts, and test pods.

A stand-in of the outermost edge: real daemons would need nodes with GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .kinds import Kind
from .store import Store

OPERANDS = {
    "driver": "nvidia-driver-daemonset", "toolkit": "nvidia-container-toolkit-daemonset",
    "devicePlugin": "nvidia-device-plugin-daemonset", "gfd": "gpu-feature-discovery",
    "dcgmExporter": "nvidia-dcgm-exporter", "validator": "nvidia-operator-validator",
}


class Controllers:
    """Watches a store.

    ``broken``: operands whose pods never come up. ``pod``: what becomes of a test pod, as (phase, log) or as a status;
    it is asked with the pod. ``finalizer``: what the operator puts on its ClusterPolicy; ``stuck``: it never takes it
    away.
    """

    def __init__(self, store: Store, namespace: str = "gpu-operator") -> None:
        self.store = store
        self.namespace = namespace
        self.broken: set[str] = set()
        self.pod: Callable[[dict[str, Any]], tuple[dict[str, Any], str]] = lambda _pod: ({"phase": "Succeeded"}, "")
        self.finalizer = ""
        self.stuck = False
        store.watchers.append(self.saw)

    def saw(self, kind: Kind, seen: dict[str, Any]) -> None:
        """React to a change of an object."""
        if seen["metadata"].get("deletionTimestamp"):
            self._let_go(kind, seen)
        elif kind.kind == "ClusterPolicy":
            if self.finalizer:
                seen["metadata"]["finalizers"] = [self.finalizer]
            self._operands(seen)
            self._status(seen, "ready" if not self.broken else "notReady")
        elif kind.kind == "NVIDIADriver":
            self._status(seen, "ready" if not self.broken else "notReady")
        elif kind.kind == "Deployment":
            wanted = seen.get("spec", {}).get("replicas", 1)
            seen["status"] = {"replicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted,
                              "updatedReplicas": wanted, "observedGeneration": seen["metadata"]["generation"],
                              "conditions": [{"type": "Available", "status": "True"}, {
                                  "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}
        elif kind.kind == "Pod" and "status" not in seen:
            seen["status"], log = self.pod(seen)
            seen["metadata"].setdefault("annotations", {})["emulator/log"] = log
        elif kind.kind == "Namespace":
            seen["status"] = {"phase": "Active"}

    def _let_go(self, kind: Kind, seen: dict[str, Any]) -> None:
        """Answer a deletion, as the operator does while it runs."""
        runs = ("apps", "deployments", self.namespace, "gpu-operator") in self.store.objects
        if runs and not self.stuck and seen["metadata"].get("finalizers"):
            seen["metadata"]["finalizers"] = []
            self.store.delete(kind, seen["metadata"].get("namespace", ""), seen["metadata"]["name"])

    @staticmethod
    def _status(seen: dict[str, Any], state: str) -> None:
        ready = state == "ready"
        seen["status"] = {"state": state, "namespace": "gpu-operator", "conditions": [
            {"type": "Ready", "status": "True" if ready else "False", "reason": "Ready" if ready else "OperandNotReady",
             "message": "all is well" if ready else "a DaemonSet is not ready"},
            {"type": "Error", "status": "False" if ready else "True", "message": "",
             "reason": "Reconciled" if ready else "OperandNotReady"}]}

    def _operands(self, policy: dict[str, Any]) -> None:
        kind = self.store.kind("apps", "v1", "daemonsets")
        nodes = len([key for key in self.store.objects if key[1] == "nodes"])
        for section, name in OPERANDS.items():
            key = ("apps", "daemonsets", self.namespace, name)
            if (policy["spec"].get(section) or {}).get("enabled", True) is False:
                self.store.objects.pop(key, None)
                continue
            if key not in self.store.objects:
                owner = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": policy["metadata"]["name"],
                         "uid": policy["metadata"]["uid"]}
                meta = {"name": name, "labels": {"app": name}, "ownerReferences": [owner]}
                self.store.create(kind, self.namespace, {"metadata": meta, "spec": {}})
            ready = 0 if name in self.broken else nodes
            self.store.objects[key]["status"] = {"desiredNumberScheduled": nodes, "numberReady": ready,
                                                 "numberAvailable": ready, "numberUnavailable": nodes - ready}
