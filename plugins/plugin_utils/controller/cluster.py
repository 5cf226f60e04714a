# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a cluster (docs/design.md, section 3) out of what kubernetes.core read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..model import chart

#: The CRD whose schema the planner looks into; of the others it needs the name alone.
_WITH_SCHEMA = ("clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com")
_CRD_SUFFIXES = (".nvidia.com", ".nfd.k8s-sigs.io", ".monitoring.coreos.com")
_OURS = ("nvidia", "gpu", "mig", "dcgm", "time-slicing", "device-plugin")


class ClusterError(ValueError):
    """What was read is no cluster; the message names the part."""


def shape(read: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{version, uid, nodes, crds, operator, drivers, policies, config_maps, prometheuses, values}``.

    ``read`` has the lists of objects that ``kubernetes.core.k8s_info`` returns: ``namespaces``, ``nodes``, ``crds``,
    ``drivers``, ``policies``, ``config_maps``, ``prometheuses``; ``version`` (``v1.34.1``); ``release``, the status of
    ``kubernetes.core.helm_info``, or None; ``values``, what a person asks for, or None. Raises ClusterError.
    """
    uids = [chart.at(one, "metadata.uid") for one in _objects(read, "namespaces")
            if chart.at(one, "metadata.name") == "kube-system"]
    if not uids:
        raise ClusterError("the namespace kube-system could not be read, so it cannot be told which cluster this is")
    return {
        "version": ".".join(str(read.get("version") or "").removeprefix("v").split(".")[:2]),
        "uid": uids[0],
        "nodes": [_node(one) for one in _objects(read, "nodes")],
        "crds": {name: definition for name, definition in map(_crd, _objects(read, "crds"))
                 if name.endswith(_CRD_SUFFIXES)},
        "operator": _release(read.get("release")),
        "drivers": [{"name": chart.at(one, "metadata.name"), "spec": one.get("spec") or {},
                     "state": chart.text(one, "status.state")} for one in _objects(read, "drivers")],
        "policies": [{"name": chart.at(one, "metadata.name"), "state": chart.text(one, "status.state")}
                     for one in _objects(read, "policies")],
        "config_maps": {chart.at(one, "metadata.name"): one.get("data") or {}
                        for one in _objects(read, "config_maps") if _about_gpus(str(chart.at(one, "metadata.name")))},
        "prometheuses": [{"metadata": {"name": chart.at(one, "metadata.name"),
                                       "namespace": chart.at(one, "metadata.namespace")},
                          "spec": {key: value for key, value in (one.get("spec") or {}).items()
                                   if "Monitor" in key or "ruleSelector" in key or key == "ruleNamespaceSelector"}}
                         for one in _objects(read, "prometheuses")],
        "values": read.get("values"),
    }


def _objects(read: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    listed = read.get(name) or []
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, Mapping) for one in listed):
        raise ClusterError(f"{name} is no list of objects")
    return listed


def _node(one: Mapping[str, Any]) -> dict[str, Any]:
    info = chart.at(one, "status.nodeInfo")
    info = info if isinstance(info, Mapping) else {}
    return {
        "name": chart.at(one, "metadata.name"),
        "labels": chart.at(one, "metadata.labels") or {},
        "os_image": info.get("osImage"),
        "kernel": info.get("kernelVersion"),
        "runtime": info.get("containerRuntimeVersion"),
        "arch": info.get("architecture"),
        "taints": chart.at(one, "spec.taints") or [],
        "allocatable": {key: value for key, value in (chart.at(one, "status.allocatable") or {}).items()
                        if str(key).startswith("nvidia.com/")},
    }


def _crd(one: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name = str(chart.at(one, "metadata.name"))
    return name, {"spec": one.get("spec") or {}} if name in _WITH_SCHEMA else {}


def _release(status: object) -> dict[str, Any] | None:
    if not isinstance(status, Mapping) or not status:
        return None
    version = str(status.get("chart") or "").rpartition("-v")[2] or str(status.get("app_version") or "")
    return {"version": f"v{version.removeprefix('v')}", "values": dict(status.get("values") or {}),
            "revision": status.get("revision"), "status": status.get("status")}


def _about_gpus(name: str) -> bool:
    return any(word in name for word in _OURS)
