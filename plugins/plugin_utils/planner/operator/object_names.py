# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which NVIDIADriver object serves a host: the one that does already, wherever that can be.

An object that gets another driver is followed node by node, as its upgrade policy says; nodes that are led to another
object by their labels lose their driver pods all at once. So the fewest nodes change their object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import version as versions
from ...model.cluster import Cluster, DriverObject
from .objects import LABEL

Wanted = Mapping[str, Any]


def chosen(wanted: Mapping[str, Wanted], groups: Mapping[str, list[str]], here: Cluster) -> dict[str, str]:
    """Return the name of an object by host; ``groups`` are hosts and ``wanted`` their drivers, by the same keys."""
    nodes = here.nodes_of(host for hosts in groups.values() for host in hosts)
    ours = {one.name: one for one in here.drivers if one.selector == {LABEL: one.name}}
    planned, found, stays = set(nodes.values()), dict[str, str](), dict[str, str]()
    for name, one in sorted(ours.items()):
        served = {node.name for node in here.gpu_nodes if one.takes(node)}
        mine = {key: [host for host in hosts if nodes.get(host) in served] for key, hosts in groups.items()
                if versions.branch_of(wanted[key]["version"]) == versions.branch_of(str(one.spec.get("version")))}
        key = _most(one, wanted, mine, len(served - planned))
        if key is not None:
            stays.setdefault(key, name)
            found.update(dict.fromkeys(mine[key], name))
    taken = {one.name for one in here.drivers if one.name not in ours or one.name in stays.values()
             or any(one.takes(node) for node in here.gpu_nodes if node.name not in planned)}
    new = _new({key: one for key, one in wanted.items() if key not in stays}, taken)
    for key, hosts in groups.items():
        found.update({host: stays.get(key) or new[key] for host in hosts if host not in found})
    return found


def _most(one: DriverObject, wanted: Mapping[str, Wanted], mine: Mapping[str, list[str]], others: int) -> str | None:
    """Return the driver that an object is to have: most of its nodes want it, those that nobody plans as it is."""
    weights = {key: (len(hosts), False) for key, hosts in mine.items() if hosts}
    for key, hosts in mine.items():
        if _is(one, wanted[key]) and (hosts or others):
            weights[key] = (len(hosts) + others, True)
    if others and not any(now for _count, now in weights.values()) and all(
        others >= count for count, _now in weights.values()
    ):
        return None    # it stays as it is for those
    return max(weights, key=lambda key: (*weights[key], key), default=None)


def _is(one: DriverObject, wanted: Wanted) -> bool:
    older = "open" if one.spec.get("useOpenKernelModules") else "auto"
    return (str(one.spec.get("version")) == wanted["version"]
            and bool(one.spec.get("usePrecompiled")) == wanted["usePrecompiled"]
            and (one.spec.get("kernelModuleType") or older) == wanted["kernelModuleType"])


def _new(wanted: Mapping[str, Wanted], taken: set[str]) -> dict[str, str]:
    """Return a name for each: by branch, by version where that is there already, with its kind where that is."""
    names = {key: f"driver-{one['version'].split('.')[0]}" for key, one in wanted.items()}
    for longer in (_by_version, _by_kind):
        listed = list(names.values())
        names = {key: longer(wanted[key], name) if listed.count(name) > 1 or name in taken else name
                 for key, name in names.items()}
    return names


def _by_version(one: Wanted, _name: str) -> str:
    return f"driver-{one['version']}"


def _by_kind(one: Wanted, name: str) -> str:
    return f"{name}-{one['kernelModuleType']}" + ("-precompiled" if one["usePrecompiled"] else "")
