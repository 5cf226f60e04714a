# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of nodes that share their GPUs: chart values, ConfigMaps and node labels.

The labels are not among those of the decision: a node is emptied before its GPUs change, so the role sets them last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ...model import chart
from ...model.cluster import Cluster
from ...model.operator import OperatorDecision
from ...model.sharing import WHOLE, Group, read
from ...rules import mig, mig_layout, plugin_config, sharing_groups
from ...rules.context import Context

PLUGIN_MAP, MIG_MAP, MIG_KEY = "baremetal-nvidia-sharing", "baremetal-nvidia-mig", "config.yaml"
# Pods (label app) that mount a ConfigMap: what is new in it reaches them late, and the operator restarts none of them.
_READERS = {
    PLUGIN_MAP: ("nvidia-device-plugin-daemonset", "nvidia-device-plugin-mps-control-daemon", "gpu-feature-discovery"),
    MIG_MAP: ("nvidia-mig-manager",),
}
GROUP_LABEL = sharing_groups.GROUP_LABEL
_WHOLE = (None, "", "all-disabled")    # layouts of GPUs that are not partitioned
_PLUGIN, _MIG, _STRATEGY = "devicePlugin.config", "migManager.config", "mig.strategy"
_NAMES = (f"{_PLUGIN}.name", f"{_PLUGIN}.default", f"{_MIG}.name")


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in what the groups of the policy mean for the node, and the values for all of them."""
    groups, node, mine = read(context.wishes.sharing), here.node_of(context.name), sharing_groups.groups_of(context)
    in_use = still_in_use(here)
    group = mine[0] if len(mine) == 1 else None
    asked = here.values is not None and chart.at(here.values, "mig.strategy") is not chart.ABSENT
    if groups:
        settle(decision.values, groups, asked, in_use)
    else:
        _keep(here, decision)
    told = decision.sharing
    told.update(groups=[one.as_dict() for one in groups], strategy_asked=asked, group=None, layouts={}, labels={},
                may_stop=context.wishes.processes_may_stop, in_use=in_use)
    if group is not None:
        told["group"] = group.name
        decision.because.append(f"sharing: group {group.name}, {group.strategy.replace('_', '-')}")
    if group is not None and group.strategy == "mig":
        told["layouts"] = mig_layout.entries(context, group)
    if node is not None and len(mine) < 2:
        told["labels"] = _labels(group, node.labels)
    decision.config_maps = config_maps(groups, decision.values, told["layouts"])


def _keep(here: Cluster, decision: OperatorDecision) -> None:
    """Keep what other hosts' groups may need; :func:`settle` takes it back where no host has any."""
    if PLUGIN_MAP not in here.config_maps and MIG_MAP not in here.config_maps:
        return
    for path in (*_NAMES, _STRATEGY):
        before = chart.at(here.installed_values, path)
        if before is not chart.ABSENT:
            chart.put_if_absent(decision.values, path, before)


def _labels(group: Group | None, have: Mapping[str, str]) -> dict[str, str | None]:
    """Return the labels of a node; of a node that was in a group and is no longer, how they are taken back."""
    if group is None and GROUP_LABEL not in have:
        return {}
    wanted: dict[str, str | None] = {GROUP_LABEL: group.name if group is not None else None}
    wanted[sharing_groups.CONFIG_LABEL] = group.key if group is not None and group.configured else None
    if group is not None and group.strategy == "mig":
        wanted[mig.LAYOUT] = mig_layout.name(group)
    elif have.get(mig.LAYOUT) not in _WHOLE:
        wanted[mig.LAYOUT] = "all-disabled"
    return wanted


def still_in_use(here: Cluster) -> dict[str, str]:
    """Return the installed values, by path, that groups brought and that nodes of groups rely on as they are now.

    A strategy of MIG counts as brought by the groups where all nodes with a layout are in one.
    """
    grouped = [node.labels for node in here.nodes if GROUP_LABEL in node.labels]
    paths = [path for path in _NAMES if grouped and chart.text(here.installed_values, path) in (PLUGIN_MAP, MIG_MAP)]
    if f"{_PLUGIN}.name" in paths:
        paths.append(f"{_PLUGIN}.default")
    partitioned = [node.labels for node in here.nodes if node.labels.get(mig.LAYOUT) not in _WHOLE]
    by_layout = bool(partitioned) and all(GROUP_LABEL in labels for labels in partitioned)
    by_mps = not partitioned and any(_shares_by_mps(text) for text in (here.config_maps.get(PLUGIN_MAP) or {}).values())
    if by_layout or by_mps:
        paths.append(_STRATEGY)
    found = {path: chart.text(here.installed_values, path) for path in paths}
    return {path: value for path, value in found.items() if value is not None}


def settle(values: dict[str, Any], groups: Sequence[Group], strategy_asked: bool, in_use: Mapping[str, str]) -> None:
    """Set the values that the groups need, and take back what they needed before."""
    configured = any(one.configured for one in groups)
    _name(values, _PLUGIN, PLUGIN_MAP, configured)
    if chart.text(values, f"{_PLUGIN}.name") == PLUGIN_MAP:
        chart.put(values, f"{_PLUGIN}.default", WHOLE)
    _name(values, _MIG, MIG_MAP, needs_own_layouts(groups))
    strategy = mig_strategy(groups)
    if strategy_asked:
        return
    if strategy is not None:
        chart.put(values, _STRATEGY, strategy)
    elif chart.text(values, _STRATEGY) == in_use.get(_STRATEGY):    # back to the chart's own
        chart.drop(values, _STRATEGY)
        if chart.at(values, "mig") == {}:
            chart.drop(values, "mig")


def _name(values: dict[str, Any], section: str, ours: str, wanted: bool) -> None:
    """Name a ConfigMap of ours, or take the name back; another one's name stays (rule OPR036 tells of it)."""
    there = chart.text(values, f"{section}.name")
    if wanted and there in (None, ours):
        chart.put(values, f"{section}.name", ours)
    elif not wanted and there == ours:
        for path in (f"{section}.name", f"{section}.default", section, section.split(".")[0]):
            if path.count(".") > 1 or chart.at(values, path) == {}:
                chart.drop(values, path)


def needs_own_layouts(groups: Iterable[Group]) -> bool:
    """Say whether a group has a layout that MIG manager does not bring."""
    return any(isinstance(one.mig_profile, Mapping) for one in groups)


def mig_strategy(groups: Sequence[Group]) -> str | None:
    """Return the strategy for the whole cluster (it overrules each configuration); None: any will do."""
    if any(one.needs_mixed for one in groups):
        return "mixed"
    if any(one.strategy == "mig" for one in groups):
        return "single"
    return "none" if any(one.strategy == "mps" for one in groups) else None


def config_maps(groups: Sequence[Group], values: Mapping[str, Any],
                layouts: Mapping[str, list[dict[str, Any]]]) -> dict[str, dict[str, str]]:
    """Return the ConfigMaps by name: the device plugin's configurations by group, and MIG layouts of one's own."""
    found: dict[str, dict[str, str]] = {}
    configured = [one for one in groups if one.configured]
    if configured and chart.text(values, f"{_PLUGIN}.name") == PLUGIN_MAP:
        mixed = chart.text(values, _STRATEGY) == "mixed"
        found[PLUGIN_MAP] = {WHOLE: _text({"version": "v1"}),
                             **{one.key: _text(_configuration(one, mixed)) for one in configured}}
    if needs_own_layouts(groups) and chart.text(values, f"{_MIG}.name") == MIG_MAP:
        disabled = {"all-disabled": [{"devices": "all", "mig-enabled": False}]}
        every = {**disabled, **dict(sorted(layouts.items()))}
        found[MIG_MAP] = {MIG_KEY: _text({"version": "v1", "mig-configs": every})}
    return found


def _configuration(group: Group, mixed: bool) -> dict[str, Any]:
    kind = "mps" if group.strategy == "mps" else "timeSlicing"
    names = [f"nvidia.com/mig-{one.replace('+', '.')}" for one in group.profiles] if mixed else []
    told: dict[str, Any] = {}
    if group.rename:
        told["renameByDefault"] = True
    if group.fail_requests_greater_than_one:
        told["failRequestsGreaterThanOne"] = True
    told["resources"] = [{"name": name, "replicas": group.replicas} for name in names or ["nvidia.com/gpu"]]
    return {"version": "v1", "sharing": {kind: told}}


def _text(tree: Mapping[str, Any]) -> str:
    return yaml.safe_dump(tree, sort_keys=False)


@dataclass
class Shared:
    """What many hosts share by. Groups may stand in variables of single hosts: all of them together give the values."""

    groups: list[Group]
    layouts: dict[str, list[dict[str, Any]]]
    labels: dict[str, dict[str, str | None]]
    may_stop: list[str]    # hosts whose pods may be stopped for it
    strategy_asked: bool
    in_use: dict[str, str]    # values that nodes rely on until they have changed, by path
    differing: dict[str, dict[str, Any]]    # by path what hosts want

    def settle(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a host's values as they are with the groups of all hosts."""
        settled: dict[str, Any] = chart.copy(values)
        settle(settled, self.groups, self.strategy_asked, self.in_use)
        if chart.text(settled, _STRATEGY) == "mixed" and any(one.strategy == "mps" for one in self.groups):
            self.differing[_STRATEGY] = {
                one.name: "mixed" if one.needs_mixed else one.strategy for one in self.groups
            }
        return settled

    def first(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return settled values with what nodes rely on as they are: a release comes before the nodes change."""
        kept: dict[str, Any] = chart.copy(values)
        for path, value in self.in_use.items():
            chart.put_if_absent(kept, path, value)
        return kept

    def as_dict(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the strategies by group, the labels by host, and the ConfigMaps by name."""
        return {"groups": {one.name: one.strategy for one in self.groups}, "labels": self.labels,
                "may_stop": self.may_stop, "config_maps": config_maps(self.groups, values, self.layouts)}


def together(told: Mapping[str, Mapping[str, Any]]) -> Shared:
    """Return what hosts share by; ``told`` is ``sharing`` of each host's decision."""
    groups: dict[str, Group] = {}
    differing: dict[str, dict[str, Any]] = {}
    layouts: dict[str, list[dict[str, Any]]] = {}
    for host, one in sorted(told.items()):
        for group in read(one.get("groups")):
            if groups.setdefault(group.name, group) != group:
                differing.setdefault(f"gpu_sharing {group.name}", {})[host] = group.as_dict()
        for name, entries in (one.get("layouts") or {}).items():
            listed = layouts.setdefault(name, [])
            listed.extend(entry for entry in entries if entry not in listed)
    labels = {host: one["labels"] for host, one in sorted(told.items()) if one.get("labels")}
    asked = any(one.get("strategy_asked") for one in told.values())
    in_use = {path: value for one in told.values() for path, value in (one.get("in_use") or {}).items()}
    may_stop = [host for host, one in sorted(told.items()) if one.get("may_stop")]
    return Shared([groups[name] for name in sorted(groups)], layouts, labels, may_stop, asked, in_use,
                  differing)


def unplanned(here: Cluster, planned: Collection[str]) -> list[Mapping[str, str]]:
    """Return the labels of nodes in groups that are not among the nodes of this run: what they rely on stays."""
    return [node.labels for node in here.nodes if node.name not in planned and GROUP_LABEL in node.labels]


def to_do(here: Cluster, wanted: Mapping[str, Any], others: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """Return what the role is to change: ``{config_maps, gone, nodes}``; ``others`` is what :func:`unplanned` found.

    ``config_maps`` have name, data, what they are to say ``first``, while nodes still have their former labels, and
    keys that are no longer wanted (``stale``); ``gone`` are those of ours that nobody needs. ``nodes`` have name,
    labels, whether no pod may use their GPUs meanwhile (``empty``) and such pods may be stopped (``may_stop``), the
    layout of MIG that is to come, which pods have to start again to see what is new in a ConfigMap (``restart``, by
    their label ``app``), and whether an earlier run left it ``cordoned``.
    """
    maps = [_map(here, name, _with_theirs(here, name, data, others)) for name, data in wanted["config_maps"].items()]
    nodes = [_node(here, host, labels, wanted) for host, labels in wanted["labels"].items()]
    open_ = {one["name"] for one in nodes if one is not None}
    nodes += [_node(here, one.name, {}, wanted) for one in here.nodes if one.cordoned and one.name not in open_]
    ours = () if others else (PLUGIN_MAP, MIG_MAP)
    gone = [name for name in ours if name in here.config_maps and name not in wanted["config_maps"]]
    return {"config_maps": maps, "gone": gone, "nodes": [one for one in nodes if one is not None]}


def _node(here: Cluster, host: str, labels: Mapping[str, str | None], wanted: Mapping[str, Any]
          ) -> dict[str, Any] | None:
    """Return what is to do on a node, None where nothing is. One that a run left cordoned is let in again."""
    node = here.node_of(host)
    if node is None:
        return None
    changes = {key: value for key, value in labels.items() if node.labels.get(key) != value}
    if not changes and not node.cordoned:
        return None
    return {"name": node.name, "labels": changes, "empty": _disturbs(here, node.labels, changes, wanted),
            "may_stop": host in wanted["may_stop"], "restart": _readers(here, changes), "cordoned": node.cordoned,
            "layout": changes.get(mig.LAYOUT) or (node.labels.get(mig.LAYOUT) if node.cordoned else None)}


def _with_theirs(
    here: Cluster, name: str, data: Mapping[str, str], others: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Return what a ConfigMap is to say with what nodes that this run does not plan ask for by their labels."""
    there = here.config_maps.get(name) or {}
    if name == PLUGIN_MAP:
        keys = {labels.get(sharing_groups.CONFIG_LABEL, "") for labels in others}
        return {**{key: str(text) for key, text in there.items() if key in keys}, **data}
    old, new = _layouts(there.get(MIG_KEY)), _layouts(data[MIG_KEY])
    asked = {labels.get(mig.LAYOUT, "") for labels in others}
    kept = {layout: entries for layout, entries in old.items() if layout in asked and layout not in new}
    return {MIG_KEY: _text({"version": "v1", "mig-configs": {**new, **kept}})} if kept else dict(data)


def _map(here: Cluster, name: str, data: Mapping[str, str]) -> dict[str, Any]:
    there = here.config_maps.get(name) or {}
    first = dict(data)
    if name == MIG_MAP and isinstance(there.get(MIG_KEY), str):
        used = {node.labels.get(mig.LAYOUT) for node in here.nodes}
        old, new = _layouts(there[MIG_KEY]), _layouts(data[MIG_KEY])
        kept = {layout: entries for layout, entries in old.items() if layout in used and layout not in new}
        if kept:
            first[MIG_KEY] = _text({"version": "v1", "mig-configs": {**new, **kept}})
    return {"name": name, "data": dict(data), "first": first, "stale": sorted(set(there) - set(data))}


def _layouts(text: object) -> Mapping[str, Any]:
    found = chart.at(plugin_config.parse(text).tree, "mig-configs") if isinstance(text, str) else None
    return found if isinstance(found, Mapping) else {}


def _readers(here: Cluster, changes: Mapping[str, str | None]) -> list[str]:
    """Return what on a node has to start again: it mounts a ConfigMap that just got what the node now asks for."""
    found: list[str] = []
    there = here.config_maps.get(PLUGIN_MAP)
    if there is not None and changes.get(sharing_groups.CONFIG_LABEL) not in (None, *there):
        found += _READERS[PLUGIN_MAP]
    there = here.config_maps.get(MIG_MAP)
    if there is not None and changes.get(mig.LAYOUT) not in (None, "all-disabled", *_layouts(there.get(MIG_KEY))):
        found += _READERS[MIG_MAP]
    return found


def _disturbs(
    here: Cluster, before: Mapping[str, str], changes: Mapping[str, str | None], wanted: Mapping[str, Any]
) -> bool:
    """Say whether pods on the GPUs would stand in the way, or lose them: a layout changes, or MPS comes or goes."""
    if mig.LAYOUT in changes and {changes[mig.LAYOUT], before.get(mig.LAYOUT) or "all-disabled"} != {"all-disabled"}:
        return True
    if sharing_groups.CONFIG_LABEL not in changes:
        return False
    there, new = here.config_maps.get(PLUGIN_MAP) or {}, wanted["config_maps"].get(PLUGIN_MAP) or {}
    old_key, new_key = before.get(sharing_groups.CONFIG_LABEL, ""), changes[sharing_groups.CONFIG_LABEL] or ""
    texts = (there.get(old_key), new.get(new_key))
    return any(map(_shares_by_mps, texts))


def _shares_by_mps(text: object) -> bool:
    return isinstance(text, str) and chart.at(plugin_config.parse(text).tree, "sharing.mps") is not chart.ABSENT
