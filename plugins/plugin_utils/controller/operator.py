# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator for a whole cluster: what the role applies, what the API server dropped of it, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..model import chart
from ..model import cluster as clusters
from ..planner import plan_fleet
from ..planner.operator import cover, nodes, sharing, unplanned
from . import cluster, waiting

_IMMUTABLE = {"driverType": "gpu", "usePrecompiled": False}    # with defaults; CEL rules of the CRD: self == oldSelf


def for_cluster(plans: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``{version, values, drivers, labels, conflicts, nodes, …}``, None where no plan wants the operator.

    ``nodes`` are the labels that are to change by node, ``patches`` the same as objects; ``replaced`` are the
    NVIDIADriver objects that cannot be changed in place, each with the fields that stand against it, ``unused`` those
    of ours that no node would be served by; ``former`` is what there is before, None where nothing is to change.
    ``values_after`` are the values once the nodes have changed, None where they are the same; where nothing is to
    change before, ``former_after`` has what there is.
    """
    wanted = plan_fleet(plans, facts)["operator"]
    here = clusters.read(facts)
    if wanted is None or here is None:
        return None
    own = nodes.of_their_own(plans, wanted["values"])
    wanted["labels"] = {**wanted["labels"], **own}
    names = here.nodes_of(str(one.get("host")) for one in plans)
    labels = {names[host]: told for host, told in wanted["labels"].items() if host in names}
    hosts = [names[host] for one in plans if (host := str(one.get("host"))) in names
             and ((one.get("decisions") or {}).get("operator") or host in own)]
    by_objects = bool(chart.flag(wanted["values"], "driver.nvidiaDriverCRD.enabled"))
    wanted["nodes"] = nodes.differing(here, labels, hosts, by_objects)
    wanted["patches"] = nodes.patches(wanted["nodes"], nodes.marks(here, labels, wanted["nodes"]))
    others = sharing.unplanned(here, set(names.values()))
    if others:
        wanted["values_after"] = None
    wanted["sharing"] = sharing.to_do(here, _by_node(wanted["sharing"], names), others)
    there = {one.name: one.spec for one in here.drivers}
    wanted["replaced"] = []
    for one in wanted["drivers"]:
        fields = immutable(there.get(one["name"]), one["spec"])
        if fields:
            wanted["replaced"].append({"name": one["name"], "fields": fields})
    wanted["unused"] = _unused(here, wanted)
    wanted["unproved"] = [*cover.problems(here, wanted), *unplanned.problems(here, wanted, set(names.values()))]
    same = (here.installed == wanted["version"] and here.installed_values == wanted["values"] and not wanted["nodes"]
            and not wanted["unused"]
            and all(one["name"] in there and not list(_lost(one["spec"], there[one["name"]]))
                    for one in wanted["drivers"]))
    before = None if here.installed is None else {
        "version": here.installed, "revision": chart.at(facts, "operator.revision"),
        "drivers": [{"name": one.name, "spec": one.spec} for one in here.drivers if one.ours],
        "labels": nodes.former(here, wanted["nodes"]),
    }
    wanted["former"] = None if same else before
    wanted["former_after"] = before if same and wanted["values_after"] is not None else None
    return dict(wanted)


def _by_node(shared: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return what hosts share by with the names of their nodes; hosts that are none are left out."""
    return {**shared, "labels": {names[host]: told for host, told in shared["labels"].items() if host in names},
            "may_stop": [names[host] for host in shared["may_stop"] if host in names]}


def immutable(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[str]:
    """Return the fields that differ between two specs of an NVIDIADriver and never change in place."""
    return [field for field, default in _IMMUTABLE.items()
            if before is not None and before.get(field, default) != after.get(field, default)]


def in_the_way(there: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of NVIDIADriver objects of ours that are not wanted, and of those that never change in place."""
    specs = {one["name"]: one["spec"] for one in wanted}
    found = []
    for one in there:
        name = str(chart.at(one, "metadata.name"))
        unwanted = cluster.is_ours(one) and name not in specs
        if unwanted or (name in specs and immutable(one.get("spec") or {}, specs[name])):
            found.append(name)
    return sorted(found)


def _unused(here: clusters.Cluster, wanted: Mapping[str, Any]) -> list[str]:
    """Return the driver objects of ours that nobody wants and, after the change of labels, no node is served by."""
    after = [{**node.labels, **wanted["nodes"].get(node.name, {})} for node in here.gpu_nodes]
    names = {one["name"] for one in wanted["drivers"]}
    return [one.name for one in here.drivers if one.ours and one.name not in names and one.selector
            and not any(all(labels.get(key) == value for key, value in one.selector.items()) for labels in after)]


def dropped(sent: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what of the specs that were sent is not in the objects that came back: ``ClusterPolicy a: spec.cdi``.

    Only objects of the operator's own group count. What a server adds (defaults) is no difference, and neither is a
    null or an empty value that it leaves out.
    """
    there = {(one.get("kind"), chart.at(one, "metadata.name")): one for one in kept}
    found = []
    for one in sent:
        if not str(one.get("apiVersion", "")).startswith("nvidia.com/"):
            continue
        kind, name = one.get("kind"), chart.at(one, "metadata.name") or one.get("name")
        back = there.get((kind, name))
        if back is None:
            found.append(f"{kind} {name}: all of it")
            continue
        found += [f"{kind} {name}: {path}" for path in _lost(one.get("spec") or {}, back.get("spec") or {}, "spec.")]
    return found


def _lost(sent: Mapping[str, Any], kept: object, prefix: str = "") -> Iterator[str]:
    """Yield where what was sent did not come back; keys with dots (labels) are keys as others."""
    for key, value in sent.items():
        there = kept.get(key, chart.ABSENT) if isinstance(kept, Mapping) else chart.ABSENT
        if value in (None, "", [], {}) and not isinstance(value, bool) and there is chart.ABSENT:
            continue
        if not _same(value, there):
            if isinstance(value, Mapping) and isinstance(there, Mapping):
                yield from _lost(value, there, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}"


def _same(sent: object, kept: object) -> bool:
    """Say whether a value came back; mappings in lists may have got more keys."""
    if isinstance(sent, Mapping) and isinstance(kept, Mapping):
        return not any(True for _path in _lost(sent, kept))
    if isinstance(sent, (list, tuple)) and isinstance(kept, (list, tuple)):
        return len(sent) == len(kept) and all(map(_same, sent, kept))
    return sent == kept


def state(seen: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return in words what a cluster says of an operator that did not come up.

    ``seen`` holds lists of ClusterPolicy, DaemonSet, Event, NVIDIADriver, Pod and Node objects, what could be read.
    """
    policies, daemons, events, drivers, pods, seen_nodes = (
        seen.get(kind) or () for kind in ("ClusterPolicy", "DaemonSet", "Event", "NVIDIADriver", "Pod", "Node"))
    told = [*(_conditions("ClusterPolicy", one) for one in policies),
            *(_conditions("NVIDIADriver", one) for one in drivers if chart.text(one, "status.state") != "ready")]
    for one in daemons:
        missing = chart.at(one, "status.numberUnavailable")
        if isinstance(missing, int) and missing > 0:
            told.append(f"DaemonSet {chart.at(one, 'metadata.name')}: {missing} of "
                        f"{chart.at(one, 'status.desiredNumberScheduled')} pods are not ready.")
    stuck = [(one, waiting.holds(one)) for one in pods if chart.text(one, "status.phase") in (None, "Pending")]
    told += [f"Pod {chart.at(one, 'metadata.name')} {words}." for one, words in stuck[:5]]
    told += [f"Node {chart.at(one, 'metadata.name')}: the driver upgrade failed." for one in seen_nodes
             if (chart.at(one, "metadata.labels") or {}).get(waiting.UPGRADE) == "upgrade-failed"]
    warnings = sorted((one for one in events if one.get("type") == "Warning"),
                      key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
    for one in warnings[-5:]:
        kind, name = chart.at(one, "involvedObject.kind"), chart.at(one, "involvedObject.name")
        told.append(f"Event: {kind} {name}: {one.get('reason')}: {one.get('message')}.")
    return " ".join(told) or "The cluster says nothing of the operator."


def _conditions(kind: str, one: Mapping[str, Any]) -> str:
    listed = chart.at(one, "status.conditions")
    conditions = [f"{each.get('type')}={each.get('status')} {each.get('reason')}: {each.get('message')}".strip(": ")
                  for each in (listed if isinstance(listed, (list, tuple)) else ())]
    name, now = chart.at(one, "metadata.name"), chart.text(one, "status.state") or "without a state"
    return f"{kind} {name} is {now}" + (f" ({'; '.join(conditions)})" if conditions else "") + "."
