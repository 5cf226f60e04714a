# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One operator for many hosts: their decisions brought together, driver objects where they want different drivers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from ...model import chart
from ...model.cluster import DRIVER_LABEL, TOOLKIT_LABEL, Cluster
from ...model.version import branch_of, try_loose
from . import driver_settings, metrics, object_names, sharing
from .objects import DEFAULT_SINCE, LABEL, spec

_DRIVER_KEYS = ("version", "usePrecompiled", "kernelModuleType", "useOpenKernelModules")
_SETTLED_BELOW = ("driver.nvidiaDriverCRD.", "dcgmExporter.config")
_SETTLED = ("driver", "toolkit", "driver.enabled", "toolkit.enabled", "driver.nvidiaDriverCRD",
            *(f"driver.{key}" for key in _DRIVER_KEYS))


def together(plans: Iterable[Mapping[str, Any]], here: Cluster | None = None) -> dict[str, Any] | None:
    """Return version, values, driver objects, labels by host, and what hosts do not agree on; None without nodes.

    ``values_after``: the values once no node relies on what its former group brought, None where they are the same.
    """
    told = {str(plan.get("host")): (plan.get("decisions") or {}).get("operator") for plan in plans}
    decided = {host: one for host, one in told.items() if one}
    if not decided:
        return None
    shared = sharing.together({host: one.get("sharing") or {} for host, one in decided.items()})
    decided = {host: {**one, "values": shared.settle(one["values"])} for host, one in decided.items()}
    owned = {host: one for host, one in decided.items() if _has(one, "driver")}
    first = next(iter((owned or decided).values()))
    values = chart.copy(first["values"])
    toolkit = next((one["values"] for one in decided.values() if _has(one, "toolkit")), None)
    if toolkit is not None and not _has(first, "toolkit"):
        chart.put(values, "toolkit", chart.copy(chart.at(toolkit, "toolkit")))
    labels: dict[str, dict[str, str | None]] = {host: dict(one["labels"]) for host, one in decided.items()}
    _owners(decided, values, labels)
    drivers = _drivers(owned, values, labels, first["version"], here or Cluster())
    watched = metrics.together(values, decided.values())
    kept = shared.first(values)
    return {
        "version": first["version"],
        "monitoring": watched,
        "values": kept,
        "values_after": values if kept != values else None,
        "drivers": drivers,
        "labels": {host: told for host, told in sorted(labels.items()) if told},
        "sharing": shared.as_dict(values),
        "conflicts": [*_conflicts(decided), *_unnamed(owned, drivers),
                      *({"path": path, "wanted": wanted} for path, wanted in sorted(shared.differing.items()))],
    }


def _has(one: Mapping[str, Any], part: str) -> bool:
    """Say whether the operator brings a part to a host."""
    return chart.flag(one["values"], f"{part}.enabled", True) is not False


def _owners(decided: Mapping[str, Any], values: dict[str, Any], labels: dict[str, dict[str, str | None]]) -> None:
    """Switch on what some nodes need, and keep it from those that have it by themselves."""
    for part, label, kept_away in (("driver", DRIVER_LABEL, "pre-installed"), ("toolkit", TOOLKIT_LABEL, "false")):
        without = [host for host, one in decided.items() if not _has(one, part)]
        if not without or len(without) == len(decided):
            continue
        chart.put(values, f"{part}.enabled", True)
        for host in without:
            labels[host][label] = kept_away


def _drivers(
    owned: Mapping[str, Any], values: dict[str, Any], labels: dict[str, dict[str, str | None]], version: str | None,
    here: Cluster,
) -> list[dict[str, Any]]:
    """Return driver objects, one for each driver that is wanted; none where the chart's values do for all."""
    groups: dict[str, list[str]] = {}
    for host, one in owned.items():
        if one["drivers"] or not chart.flag(one["values"], "driver.nvidiaDriverCRD.enabled"):
            groups.setdefault(json.dumps(_wanted(one), sort_keys=True), []).append(host)
    by_objects = any(one["drivers"] for one in owned.values())
    if not groups or (len(groups) == 1 and not by_objects):
        return []
    release = try_loose(version) or ()
    chart.put(values, "driver.nvidiaDriverCRD.enabled", True)
    if release < DEFAULT_SINCE:    # there it takes each node (rule OPR066)
        chart.put(values, "driver.nvidiaDriverCRD.deployDefaultCR", False)
    chart.put_if_absent(values, "driver.nvidiaDriverCRD.deployDefaultCR", False)
    for key in _DRIVER_KEYS:
        chart.drop(values, f"driver.{key}")
    around = driver_settings.of(values, release, next((one.get("components") or {} for one in owned.values()), {}))
    wanted = {key: json.loads(key) for key in sorted(groups, key=lambda key: (json.loads(key)["version"], key))}
    names = object_names.chosen(wanted, groups, here)
    found = {}
    for key, hosts in groups.items():
        for host in hosts:
            labels[host][LABEL] = names[host]
            found[names[host]] = wanted[key]
    return [{"name": name, "spec": spec(one, release, name, around)} for name, one in sorted(found.items())]


def _wanted(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tells one driver from another."""
    source = one["drivers"][0]["spec"] if one["drivers"] else one["values"].get("driver") or {}
    older = "open" if source.get("useOpenKernelModules") else "auto"
    precompiled = bool(source.get("usePrecompiled", False))
    # Without one in the values the chart's own counts; an object has to name it.
    version = str(source.get("version") or (one.get("components") or {}).get("driver") or "")
    return {
        "version": branch_of(version) if precompiled else version,
        "usePrecompiled": precompiled,
        "kernelModuleType": source.get("kernelModuleType") or older,
        "repository": source.get("repository"),
        "image": source.get("image"),
    }


def _unnamed(owned: Mapping[str, Any], drivers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what hosts want where an object would have no version: what an unknown release brings by itself."""
    if all(one["spec"]["version"] for one in drivers):
        return []
    wanted = {host: _wanted(one)["version"] or None for host, one in owned.items()}
    return [{"path": "driver.version", "wanted": wanted}]


def _conflicts(decided: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values that one chart cannot have in two ways, with what each host wants.

    What a driver or toolkit of the operator is told does not concern a host that has its own.
    """
    first = next(iter(decided.values()))
    paths = {path for one in decided.values() for path in chart.differing(first["values"], one["values"])}
    found = []
    for path in sorted(paths):
        if path in _SETTLED or path.startswith(_SETTLED_BELOW):
            continue
        part = path.split(".")[0]
        concerned = {host: one for host, one in decided.items() if part not in ("driver", "toolkit") or _has(one, part)}
        wanted = {host: chart.at(one["values"], path) for host, one in concerned.items()}
        if not any(list(chart.differing(one, other)) for one, other in pairwise(wanted.values())):
            continue
        found.append({"path": path, "wanted": {host: None if value is chart.ABSENT else value
                                               for host, value in sorted(wanted.items())}})
    return found
