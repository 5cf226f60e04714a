# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may have how many GPUs: namespaces, quotas, priorities and limits out of ``gpu_tenants``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..model import chart
from .cluster import MADE_BY, is_ours

PART = {"app.kubernetes.io/component": "gpu-tenant"}
GPU = "nvidia.com/gpu"
KINDS = ("ResourceQuota", "LimitRange", "PriorityClass")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?")
_RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-\d+g\.\d+gb(\.[a-z0-9.]+)*)(\.shared)?")
_QUANTITY = re.compile(r"\d+(\.\d+)?([EPTGMK]i?|k|m)?")
_HIGHEST = 1_000_000_000    # above it is the system's
_FIELDS = {"name", "gpus", "resources", "quota", "priority", "preempts", "max_gpus_per_container", "requests", "limits",
           "labels"}
_RESERVED = ("default", "kube-system", "kube-public", "kube-node-lease")


class TenantError(ValueError):
    """The variable is not what can be meant; the message names the place, the value and what is allowed."""


def objects(tenants: object) -> list[dict[str, Any]]:
    """Return the objects that the tenants are to have: namespaces first. Raises TenantError."""
    if not isinstance(tenants, (list, tuple)):
        raise TenantError(f"gpu_tenants is {tenants!r}; a list of tenants is needed")
    made: list[dict[str, Any]] = []
    names: set[str] = set()
    for index, one in enumerate(tenants):
        where = f"gpu_tenants[{index}]"
        tenant = _checked(one, where)
        if tenant["name"] in names:
            raise TenantError(f"{where}.name is {tenant['name']!r}, which is there twice; one entry a tenant is needed")
        names.add(tenant["name"])
        made += _of(tenant)
    return sorted(made, key=lambda each: each["kind"] != "Namespace")


def plan(tenants: object, there: Mapping[str, Sequence[Mapping[str, Any]]],
         nodes: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return ``{apply, remove, replace, notes}``: what is to be made, and what of ours nobody asks for any more.

    ``there`` are the cluster's objects by kind. A namespace that is there stays as it is. Raises TenantError, also
    where an object of somebody else's has the name of one of ours.
    """
    wanted = objects(tenants)
    namespaces = {chart.at(one, "metadata.name"): one for one in there.get("Namespace") or ()}
    known = {key(one, kind): one for kind in KINDS for one in there.get(kind) or ()}
    apply, replace = [], []
    for one in wanted:
        if one["kind"] == "Namespace":
            if one["metadata"]["name"] not in namespaces or is_ours(namespaces[one["metadata"]["name"]]):
                apply.append(one)
            continue
        before = known.get(key(one))
        if before is not None and not is_ours(before):
            raise TenantError(f"{one['kind']} {_full_name(one)} is there, and has not the label "
                              f"{'='.join(*MADE_BY.items())}: somebody else's is not taken over. Rename the tenant, or "
                              "remove the object or label it first")
        if before is not None and one["kind"] == "PriorityClass" and any(
                before.get(field, default) != one[field] for field, default in (
                    ("value", 0), ("preemptionPolicy", "PreemptLowerPriority"))):
            replace.append(_reference(one))
        apply.append(one)
    asked = {key(one) for one in wanted}
    remove = [_reference({**one, "kind": where[0]}) for where, one in sorted(known.items())
              if is_ours(one) and PART.items() <= (chart.at(one, "metadata.labels") or {}).items()
              and where not in asked]
    return {"apply": apply, "remove": remove, "replace": replace, "notes": _notes(wanted, nodes)}


def key(one: Mapping[str, Any], kind: str | None = None) -> tuple[str, str, str]:
    """Return what tells an object from others: kind, namespace, name."""
    return (kind or one["kind"], chart.text(one, "metadata.namespace") or "", str(chart.at(one, "metadata.name")))


def _of(tenant: Mapping[str, Any]) -> list[dict[str, Any]]:
    name, space = tenant["name"], {"namespace": tenant["name"]}
    made = [_object("v1", "Namespace", name, labels=tenant["labels"])]
    hard = {f"requests.{resource}": str(count) for resource, count in tenant["resources"].items()} | tenant["quota"]
    if hard:
        made.append({**_object("v1", "ResourceQuota", "gpu-tenant", space), "spec": {"hard": hard}})
    limits = _limits(tenant)
    if limits:
        made.append({**_object("v1", "LimitRange", "gpu-tenant", space), "spec": {"limits": [limits]}})
    if tenant["priority"] is not None:
        made.append({**_object("scheduling.k8s.io/v1", "PriorityClass", f"gpu-tenant-{name}"),
                     "value": tenant["priority"], "globalDefault": False,
                     "preemptionPolicy": "PreemptLowerPriority" if tenant["preempts"] else "Never",
                     "description": f"Pods of the GPU tenant {name}"})
    return made


def _limits(tenant: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item of a LimitRange. A maximum alone would become the default of each container: hence the zeros."""
    found: dict[str, Any] = {}
    requests, limits, most = dict(tenant["requests"]), dict(tenant["limits"]), tenant["max_gpus_per_container"]
    if most is not None:
        found["max"] = {GPU: str(most)}
        requests[GPU] = limits[GPU] = "0"
    if limits:
        found["default"] = limits
    if requests:
        found["defaultRequest"] = requests
    return {"type": "Container", **found} if found else {}


def _object(version: str, kind: str, name: str, space: Mapping[str, str] | None = None,
            labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind,
            "metadata": {"name": name, **(space or {}), "labels": {**(labels or {}), **MADE_BY, **PART}}}


def _reference(one: Mapping[str, Any]) -> dict[str, str]:
    version = "scheduling.k8s.io/v1" if one["kind"] == "PriorityClass" else "v1"
    return {"kind": one["kind"], "api_version": version, "name": str(chart.at(one, "metadata.name")),
            "namespace": chart.text(one, "metadata.namespace") or ""}


def _full_name(one: Mapping[str, Any]) -> str:
    return "/".join(part for part in key(one)[1:] if part)


def _notes(wanted: Sequence[Mapping[str, Any]], nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what a quota promises that the cluster does not have."""
    offered: dict[str, int] = {}
    for node in nodes:
        for resource, count in (node.get("allocatable") or {}).items():
            offered[resource] = offered.get(resource, 0) + (int(count) if str(count).isdigit() else 0)
    asked: dict[str, int] = {}
    for one in wanted:
        hard = chart.at(one, "spec.hard")
        for resource, count in (hard if isinstance(hard, Mapping) else {}).items():
            if resource.startswith("requests.nvidia.com/"):
                short = resource.removeprefix("requests.")
                asked[short] = asked.get(short, 0) + int(count)
    found = []
    for resource, count in sorted(asked.items()):
        have = offered.get(resource, 0)
        if count and not have:
            found.append(f"no node offers {resource}, which the tenants may have {count} of")
        elif count > have:
            found.append(f"the tenants may have {count} of {resource}, and the nodes offer {have}: first come, first "
                         "served")
    return found


def _checked(one: object, where: str) -> dict[str, Any]:
    """Return a tenant with its defaults. Raises TenantError."""
    if not isinstance(one, Mapping):
        raise TenantError(f"{where} is {one!r}; a mapping with name and gpus is needed")
    unknown = sorted(set(map(str, one)) - _FIELDS)
    if unknown:
        raise TenantError(f"{where}.{unknown[0]} is not known; allowed are {', '.join(sorted(_FIELDS))}")
    name = one.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        raise TenantError(f"{where}.name is {name!r}; the name of a namespace is needed (small letters, digits and "
                          f"dashes, at most 52), and none of {', '.join(_RESERVED)}")
    resources = {}
    for resource, count in _table(one, "resources", where).items():
        if not _RESOURCE.fullmatch(resource):
            raise TenantError(f"{where}.resources has {resource!r}; allowed are {GPU}, {GPU}.shared and "
                              "nvidia.com/mig-<n>g.<n>gb (quotas count what pods request, so without requests.)")
        resources[resource] = _whole(count, f"{where}.resources[{resource}]")
    if one.get("gpus") is not None:
        if GPU in resources:
            raise TenantError(f"{where}.gpus and {where}.resources[{GPU}] say the same thing twice; one is needed")
        resources = {GPU: _whole(one["gpus"], f"{where}.gpus"), **resources}
    quota = {}
    for resource, amount in _table(one, "quota", where).items():
        if "nvidia.com/" in resource:
            raise TenantError(f"{where}.quota has {resource!r}; GPUs belong to gpus and resources (a quota takes no "
                              "limits. of an extended resource)")
        quota[resource] = _quantity(amount, f"{where}.quota[{resource}]")
    priority = one.get("priority")
    if priority is not None:
        priority = _whole(priority, f"{where}.priority", least=-_HIGHEST, most=_HIGHEST)
    for field in ("preempts",):
        if not isinstance(one.get(field, True), bool):
            raise TenantError(f"{where}.{field} is {one[field]!r}; true or false is needed")
    most = one.get("max_gpus_per_container")
    return {
        "name": name, "resources": resources, "quota": quota, "priority": priority,
        "preempts": one.get("preempts", True),
        "max_gpus_per_container": None if most is None else _whole(most, f"{where}.max_gpus_per_container"),
        "requests": {k: _quantity(v, f"{where}.requests[{k}]") for k, v in _basic(one, "requests", where).items()},
        "limits": {k: _quantity(v, f"{where}.limits[{k}]") for k, v in _basic(one, "limits", where).items()},
        "labels": {key_: str(value) for key_, value in _table(one, "labels", where).items()},
    }


def _table(one: Mapping[str, Any], field: str, where: str) -> dict[str, Any]:
    value = one.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TenantError(f"{where}.{field} is {value!r}; a mapping is needed")
    return {str(key_): inner for key_, inner in value.items()}


def _basic(one: Mapping[str, Any], field: str, where: str) -> dict[str, Any]:
    found = _table(one, field, where)
    wrong = sorted(set(found) - {"cpu", "memory", "ephemeral-storage"})
    if wrong:
        raise TenantError(f"{where}.{field} has {wrong[0]!r}; allowed are cpu, memory and ephemeral-storage (a default "
                          "of GPUs would give one to every container)")
    return found


def _whole(value: object, where: str, least: int = 0, most: int = 100_000) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise TenantError(f"{where} is {value!r}; a whole number from {least} to {most} is needed")
    return value


def _quantity(value: object, where: str) -> str:
    text = str(value)
    if isinstance(value, bool) or not _QUANTITY.fullmatch(text):
        raise TenantError(f"{where} is {value!r}; a quantity such as 4, 500m or 16Gi is needed")
    return text
