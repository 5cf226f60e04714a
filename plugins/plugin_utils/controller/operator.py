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
from ..planner.operator import nodes

_IMMUTABLE = {"driverType": "gpu", "usePrecompiled": False}    # with defaults; CEL rules of the CRD: self == oldSelf


def for_cluster(plans: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``{version, values, drivers, labels, conflicts, nodes, replaced}``, None where no plan wants the operator.

    ``nodes`` are the labels that are to change by node, ``replaced`` the NVIDIADriver objects that cannot be changed
    in place, each with the fields that stand against it.
    """
    wanted = plan_fleet(plans)["operator"]
    here = clusters.read(facts)
    if wanted is None or here is None:
        return None
    wanted["nodes"] = nodes.differing(here, wanted["labels"])
    there = {one.name: one.spec for one in here.drivers}
    wanted["replaced"] = []
    for one in wanted["drivers"]:
        before, after = there.get(one["name"]), one["spec"]
        fields = [field for field, default in _IMMUTABLE.items()
                  if before is not None and before.get(field, default) != after.get(field, default)]
        if fields:
            wanted["replaced"].append({"name": one["name"], "fields": fields})
    return dict(wanted)


def dropped(wanted: Mapping[str, Any], policies: Sequence[Mapping[str, Any]], drivers: Sequence[Mapping[str, Any]],
            crds: Mapping[str, Any]) -> list[str]:
    """Return the fields that were sent and are not in the objects that came back: ``NVIDIADriver a: spec.default``.

    Of the chart's values only those are compared that the CRD, as it was read, has under the same path: the chart
    keeps others for itself.
    """
    found = []
    kept = {str(chart.at(one, "metadata.name")): one.get("spec") or {} for one in drivers}
    for one in wanted.get("drivers") or ():
        spec = kept.get(one["name"], {})
        found += [f"NVIDIADriver {one['name']}: {path}" for path in _lost(one["spec"], spec)]
    policy = policies[0].get("spec") or {} if policies else None
    if policy is None:
        return found
    known = chart.spec_schema(crds.get("clusterpolicies.nvidia.com")) or {}
    for path, value in chart.paths(wanted.get("values") or {}):
        if isinstance(value, Mapping) or not _has(known, path):
            continue
        if chart.at(policy, path) is chart.ABSENT and value not in (None, "", [], {}):
            found.append(f"ClusterPolicy: {path}")
    return found


def _lost(sent: Mapping[str, Any], kept: object, prefix: str = "") -> Iterator[str]:
    """Yield where what was sent did not come back; keys with dots (labels) are keys as others."""
    for key, value in sent.items():
        there = kept.get(key, chart.ABSENT) if isinstance(kept, Mapping) else chart.ABSENT
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            yield from _lost(value, there, f"{prefix}{key}.")
        elif there != value:
            yield f"{prefix}{key}"


def _has(schema: Mapping[str, Any], path: str) -> bool:
    here: Any = schema
    for key in path.split("."):
        here = (here.get("properties") or {}).get(key) if isinstance(here, Mapping) else None
    return isinstance(here, Mapping)


def state(seen: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Return in words what a cluster says of an operator that did not come up.

    ``seen`` holds the lists of ClusterPolicy objects, DaemonSets and Events, each possibly empty.
    """
    policies, daemons, events = [*seen, [], [], []][:3]
    told = []
    for one in policies:
        listed = chart.at(one, "status.conditions")
        conditions = [f"{each.get('type')}={each.get('status')} {each.get('reason')}: {each.get('message')}".strip(": ")
                      for each in (listed if isinstance(listed, (list, tuple)) else ())]
        name, now = chart.at(one, "metadata.name"), chart.text(one, "status.state") or "without a state"
        told.append(f"ClusterPolicy {name} is {now}" + (f" ({'; '.join(conditions)})" if conditions else "") + ".")
    for one in daemons:
        missing = chart.at(one, "status.numberUnavailable")
        if isinstance(missing, int) and missing > 0:
            told.append(f"DaemonSet {chart.at(one, 'metadata.name')}: {missing} of "
                        f"{chart.at(one, 'status.desiredNumberScheduled')} pods are not ready.")
    warnings = sorted((one for one in events if one.get("type") == "Warning"),
                      key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
    for one in warnings[-5:]:
        kind, name = chart.at(one, "involvedObject.kind"), chart.at(one, "involvedObject.name")
        told.append(f"Event: {kind} {name}: {one.get('reason')}: {one.get('message')}.")
    return " ".join(told) or "The cluster says nothing of the operator."
