# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a cluster (docs/design.md, section 3) out of what kubernetes.core read."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..model import chart

#: The CRD whose schema the planner looks into; of the others it needs the name alone.
_WITH_SCHEMA = ("clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com")
_CRD_SUFFIXES = (".nvidia.com", ".nfd.k8s-sigs.io", ".monitoring.coreos.com")
_ABOUT_GPUS = ("nvidia", "gpu", "mig", "dcgm", "time-slicing", "device-plugin")
#: On nodes: the labels that the role set; on other objects: made by the role, and taken out by it alone.
LABELS_OF_OURS = "baremetal.nvidia/labels"
CORDONED_BY_US = "baremetal.nvidia/cordoned"
MADE_BY = {"app.kubernetes.io/managed-by": "baremetal.nvidia"}


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
                     "state": chart.text(one, "status.state"), "ours": is_ours(one)}
                    for one in _objects(read, "drivers")],
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


def is_ours(one: Mapping[str, Any]) -> bool:
    """Say whether the role made an object."""
    labels = chart.at(one, "metadata.labels")
    return isinstance(labels, Mapping) and MADE_BY.items() <= labels.items()


def _objects(read: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    listed = read.get(name) or []
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, Mapping) for one in listed):
        raise ClusterError(f"{name} is no list of objects")
    return listed


def _node(one: Mapping[str, Any]) -> dict[str, Any]:
    info = chart.at(one, "status.nodeInfo")
    info = info if isinstance(info, Mapping) else {}
    notes = chart.at(one, "metadata.annotations") or {}
    return {
        "name": chart.at(one, "metadata.name"),
        "labels": chart.at(one, "metadata.labels") or {},
        "ours": _listed(notes.get(LABELS_OF_OURS)),
        "cordoned": CORDONED_BY_US in notes,
        "os_image": info.get("osImage"),
        "kernel": info.get("kernelVersion"),
        "runtime": info.get("containerRuntimeVersion"),
        "arch": info.get("architecture"),
        "taints": chart.at(one, "spec.taints") or [],
        "allocatable": {key: value for key, value in (chart.at(one, "status.allocatable") or {}).items()
                        if str(key).startswith("nvidia.com/")},
    }


def _listed(text: object) -> list[str]:
    return [part for part in str(text or "").split(",") if part]


def _crd(one: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name = str(chart.at(one, "metadata.name"))
    return name, {"spec": one.get("spec") or {}} if name in _WITH_SCHEMA else {}


def _release(status: object) -> dict[str, Any] | None:
    if not isinstance(status, Mapping) or not status or status.get("status") == "uninstalled":
        return None
    named = re.search(r"-v?(\d+\.\d.*)\Z", str(status.get("chart") or ""))    # mirrors leave the v out
    version = named[1] if named else str(status.get("app_version") or "")
    values = status.get("release_values", status.get("values"))    # the first from kubernetes.core 6.6, alone from 8.0
    return {"version": f"v{version.removeprefix('v')}", "values": dict(values or {}),
            "revision": status.get("revision"), "status": status.get("status"),
            "updated": _epoch(status.get("updated"))}


def _epoch(told: object) -> float | None:
    """Return helm's ``2026-11-30 10:33:01.123456789 +0000 UTC`` as seconds since the epoch, None if it is none."""
    found = re.match(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)\S*\s*([+-]\d{4})?", str(told or ""))
    if found is None:
        return None
    told_at = f"{found[1]} {found[2]} {found[3] or '+0000'}"
    return datetime.datetime.strptime(told_at, "%Y-%m-%d %H:%M:%S %z").timestamp()


def _about_gpus(name: str) -> bool:
    return any(word in name for word in _ABOUT_GPUS)
