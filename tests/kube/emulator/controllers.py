# SPDX-License-Identifier: GPL-3.0-or-later
"""The controllers that the emulator plays: the operator's answer to a ClusterPolicy, rollouts, and test pods.

A stand-in of the outermost edge: real daemons would need nodes with GPUs.
"""

from __future__ import annotations

from typing import Any

from .kinds import Kind
from .store import Store

OPERANDS = {
    "driver": "nvidia-driver-daemonset", "toolkit": "nvidia-container-toolkit-daemonset",
    "devicePlugin": "nvidia-device-plugin-daemonset", "gfd": "gpu-feature-discovery",
    "dcgmExporter": "nvidia-dcgm-exporter", "validator": "nvidia-operator-validator",
}


class Controllers:
    """Watches a store. ``broken``: operands whose pods never come up; ``log``: what a test pod prints."""

    def __init__(self, store: Store, namespace: str = "gpu-operator") -> None:
        self.store = store
        self.namespace = namespace
        self.broken: set[str] = set()
        self.log = ""
        store.watchers.append(self.saw)

    def saw(self, kind: Kind, seen: dict[str, Any]) -> None:
        """React to a change of an object."""
        if kind.kind == "ClusterPolicy":
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
            seen["status"] = {"phase": "Succeeded"}
            seen["metadata"].setdefault("annotations", {})["emulator/log"] = self.log
        elif kind.kind == "Namespace":
            seen["status"] = {"phase": "Active"}

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
                meta = {"name": name, "labels": {"app": name}}
                self.store.create(kind, self.namespace, {"metadata": meta, "spec": {}})
            ready = 0 if name in self.broken else nodes
            self.store.objects[key]["status"] = {"desiredNumberScheduled": nodes, "numberReady": ready,
                                                 "numberAvailable": ready, "numberUnavailable": nodes - ready}
