# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod on each node, or on one of each shape, that runs ``nvidia-smi``; and what it says against labels and plan."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..model import chart
from ..model import cluster as clusters
from . import waiting
from .cluster import MADE_BY

PART = {"app.kubernetes.io/component": "gpu-verification"}
_COMMAND = ["nvidia-smi", "--query-gpu=name,driver_version,uuid", "--format=csv,noheader"]
_SHAPE = ("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/cuda.driver-version.full",
          "nvidia.com/mig.strategy", "nvidia.com/gpu.sharing-strategy")
_RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-)")
_NODE = "baremetal.nvidia/node"


class PodError(ValueError):
    """An option is not what can be meant."""


def pods(facts: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{pods, differs}``: manifests, and nodes to which no pod can go, with the reason.

    ``options``: each (node|shape), namespace, image, runtime_class, resource, tolerations, pull_secrets, deadline.
    """
    here = clusters.read(facts)
    rows = {row["name"]: row for row in facts.get("nodes") or ()}
    made, differs, seen = [], [], set()
    for node in here.gpu_nodes if here is not None else ():
        offered = {name: int(count) for name, count in (rows[node.name].get("allocatable") or {}).items()
                   if _RESOURCE.match(name) and str(count).isdigit()}
        resource = options.get("resource") or next((name for name in sorted(offered) if offered[name] > 0), None)
        if resource is None or not offered.get(resource):
            differs.append(f"{node.name} has GPUs, and offers none: {resource or 'nvidia.com/gpu'} is not in what it "
                           "can allocate (see the device plugin's pod there)")
            continue
        shape = (*(node.labels.get(label) for label in _SHAPE), node.os_image, node.kernel, node.runtime, resource)
        if options.get("each") == "shape" and shape in seen:
            continue
        seen.add(shape)
        made.append(_pod(node, resource, options))
    return {"pods": made, "differs": differs}


def _pod(node: clusters.Node, resource: str, options: Mapping[str, Any]) -> dict[str, Any]:
    suffix = hashlib.sha256(node.name.encode()).hexdigest()[:10]
    only = {"key": "metadata.name", "operator": "In", "values": [node.name]}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": int(options.get("deadline") or 300),
        "automountServiceAccountToken": False,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [only]}]}}},
        "tolerations": list(options.get("tolerations") or [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]),
        "containers": [{"name": "nvidia-smi", "image": options["image"], "command": list(_COMMAND),
                        "resources": {"limits": {resource: "1"}}}],
    }
    # A tainted node was found fit by the operator already; its own taints are no reason to leave it out.
    spec["tolerations"] += [{"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}
                            for taint in node.taints if taint.get("effect") in ("NoSchedule", "NoExecute")
                            and str(taint.get("key")) not in ("nvidia.com/gpu", "node.kubernetes.io/unschedulable")]
    if options.get("runtime_class"):
        spec["runtimeClassName"] = options["runtime_class"]
    if options.get("pull_secrets"):
        spec["imagePullSecrets"] = [{"name": name} for name in options["pull_secrets"]]
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
        "name": f"gpu-verify-{suffix}", "namespace": options["namespace"], "labels": {**MADE_BY, **PART},
        "annotations": {_NODE: node.name}}}


def judge(facts: Mapping[str, Any], seen: Sequence[Mapping[str, Any]], logs: Mapping[str, str],
          plans: Sequence[Mapping[str, Any]] = (), unread: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """Return ``{differs, busy, proved}`` in words, from pods as they ended, their logs by name, and plans of hosts.

    ``unread``: by the name of the pod, why its log could not be read. A pod for which no GPU was free says nothing of
    its node: ``busy``.
    """
    here = clusters.read(facts)
    wanted = _planned(plans, here)
    found: dict[str, list[str]] = {"differs": [], "busy": [], "proved": []}
    for pod in sorted(seen, key=lambda one: str(chart.at(one, "metadata.name"))):
        name = str((chart.at(pod, "metadata.annotations") or {}).get(_NODE))
        phase, words = chart.text(pod, "status.phase"), waiting.holds(pod)
        pod_name = str(chart.at(pod, "metadata.name"))
        log, untold = logs.get(pod_name, ""), (unread or {}).get(pod_name)
        if phase == "Succeeded" and untold:
            found["differs"].append(f"{name}: nvidia-smi ended well, but what it said cannot be read: {untold}")
        elif phase == "Succeeded":
            node = here.node_of(name) if here is not None else None
            wrong = _compare(name, log, node, wanted.get(name))
            found["differs"] += wrong
            if not wrong:
                found["proved"].append(f"{name}: {' / '.join(_first(log))}")
        elif re.search(r"Insufficient nvidia\.com/", words):
            found["busy"].append(f"{name}: all its GPUs are in use, nothing was looked at")
        elif phase == "Failed":
            told = _last(log) or chart.text(pod, "status.message") or chart.text(pod, "status.reason") or "no word"
            found["differs"].append(f"{name}: nvidia-smi failed in a container: {told}")
        else:
            found["differs"].append(f"{name}: the pod {words}")
    return found


def _planned(plans: Sequence[Mapping[str, Any]], here: clusters.Cluster | None) -> dict[str, str]:
    """Return the driver version that a plan wants by node, where it wants an exact one."""
    found = {}
    for plan in plans:
        node = here.node_of(str(plan.get("host"))) if here is not None else None
        decisions = plan.get("decisions") or {}
        owner = chart.text(decisions, "driver.owner")
        version = chart.text(decisions, "driver.version")
        waits = any(one.get("role") == "gpu_driver" for one in plan.get("pending") or ())
        if node is not None and version and owner == "host" and not waits:
            found[node.name] = version
        elif node is not None and owner == "operator":
            objects = chart.at(decisions, "operator.drivers")
            source = objects[0]["spec"] if isinstance(objects, list) and objects else chart.at(
                decisions, "operator.values.driver")
            exact = chart.text(source, "version")
            if exact and exact.count(".") >= 1 and not chart.flag(source, "usePrecompiled"):
                found[node.name] = exact
    return found


def _compare(name: str, log: str, node: clusters.Node | None, planned: str | None) -> list[str]:
    first = _first(log)
    if len(first) < 2:
        return [f"{name}: nvidia-smi said {_last(log) or 'nothing'!r}, which names no GPU"]
    product, driver = first[0], first[1]
    labels = node.labels if node is not None else {}
    found = []
    label = re.sub(r"-(SHARED|MIG-.*)$", "", labels.get("nvidia.com/gpu.product", ""))
    if label and label.replace("-", " ").lower() != product.replace("-", " ").lower():
        found.append(f"{name}: the container sees {product}, the node's label nvidia.com/gpu.product says {label}")
    told = labels.get("nvidia.com/cuda.driver-version.full") or ".".join(
        filter(None, (labels.get(f"nvidia.com/cuda.driver.{part}") for part in ("major", "minor", "rev"))))
    if told and told != driver:
        found.append(f"{name}: the container sees driver {driver}, the node's labels say {told} (gpu-feature-discovery "
                     "looked before the driver changed)")
    if planned and planned != driver:
        found.append(f"{name}: the container sees driver {driver}, the plan wants {planned}")
    return found


def _first(log: str) -> list[str]:
    lines = [line for line in log.splitlines() if line.count(",") >= 1]
    return [part.strip() for part in lines[0].split(",")][:2] if lines else []


def _last(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
