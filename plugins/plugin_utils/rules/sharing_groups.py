# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about groups of nodes that share their GPUs (gpu_sharing): what a node's GPUs can, and what excludes what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import chart
from ..model.sharing import BALANCED, Group, read
from ..model.version import try_loose
from . import mig_layout, operator_releases
from .context import Context
from .registry import Hit, plan_rule

GROUP_LABEL = "baremetal.nvidia/sharing"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
_MAPS = {"devicePlugin.config": "baremetal-nvidia-sharing", "migManager.config": "baremetal-nvidia-mig"}
_MIG_GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/"
_PLUGIN = "https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/cmd/nvidia-device-plugin/main.go"
_OPERATOR = "https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/controllers/object_controls.go"


def groups_of(context: Context) -> list[Group]:
    """Return the groups that the host's node belongs to."""
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    inventory = context.host.inventory_groups
    return [one for one in read(context.wishes.sharing)
            if one.takes(context.name, inventory, node.labels if node is not None else {})]


def _mine(context: Context) -> Group | None:
    found = groups_of(context) if context.operator is not None and context.has_gpus else []
    return found[0] if len(found) == 1 else None


@plan_rule(
    "OPR034", "error", "A node in two sharing groups",
    why="A node shares its GPUs in one way: it has one label for the device plugin and one for MIG.",
    remedy="make hosts and nodes of the groups disjoint",
    sources=["docs/operator.md, Sharing"],
)
def two_groups(context: Context) -> Iterator[Hit]:
    """Fires when hosts and nodes of two groups of gpu_sharing take one node."""
    found = groups_of(context) if context.operator is not None and context.has_gpus else []
    if len(found) > 1:
        names = " and ".join(one.name for one in found)
        yield Hit(context.name, f"gpu_sharing: the groups {names} both take {context.name}")


@plan_rule(
    "OPR035", "error", "The node's GPUs cannot be shared that way",
    why="Profiles, sizes and drivers of MIG differ from card to card, and many cards have no MIG at all.",
    remedy="use a profile that all GPUs of the node have, or another strategy for it",
    sources=[_MIG_GUIDE],
)
def cannot(context: Context) -> Iterator[Hit]:
    """Fires for MIG on a GPU without it, a profile or a sum of profiles that it does not have, and an older driver."""
    group = _mine(context)
    if group is None or group.strategy != "mig":
        return
    told = f"gpu_sharing group {group.name}"
    driver = _driver(context)
    seen: set[str] = set()
    for card, row in mig_layout.rows(context):
        if card.label in seen or card.product is None:
            continue
        seen.add(card.label)
        if row is None:
            yield Hit(card.label, f"{told} wants MIG, and {card.label} has none",
                      "use time_slicing or mps for this node")
            continue
        missing = [one for one in group.profiles if row.profiles and one not in row.profiles]
        if missing:
            yield Hit(card.label, f"{told}: {card.label} has no MIG profile {', '.join(missing)}; it has "
                                  f"{', '.join(row.profiles)}")
        elif isinstance(group.mig_profile, Mapping) and row.profiles and not mig_layout.fits(row, group.mig_profile):
            wanted = ", ".join(f"{count} x {name}" for name, count in group.mig_profile.items())
            compute, memory = mig_layout.room(row)
            yield Hit(card.label, f"{told}: {wanted} do not fit on {card.label} at once, which has {compute} slices of "
                                  f"compute and {memory} of memory", "lower the counts")
        elif group.profiles and not row.profiles:
            yield Hit(card.label, f"{told}: the MIG profiles of {card.label} are not known here",
                      f"add them with gpu_matrix_overlay, or use mig_profile: {BALANCED}", severity="warning")
        oldest = try_loose(row.min_driver) if row.min_driver else None
        have = try_loose(driver) if driver else None
        if oldest is not None and have is not None and len(have) > 1 and have < oldest:
            yield Hit(card.label, f"{told}: driver {driver} does not partition {card.label}; that came with "
                                  f"{row.min_driver}", f"use a driver from {row.min_driver} on")


def _driver(context: Context) -> str | None:
    """Return the driver that the node gets."""
    decision = context.operator
    if decision is None or decision.driver_owner == "host":
        return context.driver.version
    if decision.drivers:
        return chart.text(decision.drivers[0]["spec"], "version")
    row = operator_releases.row(context)
    return chart.text(decision.values, "driver.version") or (str(row.default_driver) if row is not None else None)


@plan_rule(
    "OPR036", "error", "Sharing groups, or values beside them, that exclude each other",
    why="mig.strategy holds for the whole cluster, over each node's own configuration, and the device plugin ends with "
        "an error where MPS meets the mixed strategy.",
    remedy="use one profile a node for MIG (single), or no MPS in this cluster",
    sources=[_PLUGIN, _OPERATOR],
)
def exclude(context: Context) -> Iterator[Hit]:
    """Fires for MPS beside mixed, a strategy of MIG that a group cannot have, and a ConfigMap of one's own beside."""
    decision, groups = context.operator, read(context.wishes.sharing)
    if decision is None or not context.has_gpus or not groups:
        return
    values, strategy = decision.values, chart.text(decision.values, "mig.strategy")
    mps = [one.name for one in groups if one.strategy == "mps"]
    mixed = [one.name for one in groups if one.needs_mixed]
    single = [one.name for one in groups if one.strategy == "mig" and one.mig_strategy == "single"]
    parts = [one.name for one in groups if one.strategy == "mig"]
    if mps and mixed:
        yield Hit("gpu_sharing", f"the groups {', '.join(mps)} (mps) and {', '.join(mixed)} (MIG, mixed) cannot be in "
                                 "one cluster: the device plugin refuses MPS under mig.strategy mixed")
    elif mps and strategy == "mixed":
        yield Hit("mig.strategy", "mig.strategy is mixed, under which the device plugin refuses MPS "
                                  f"({', '.join(mps)})", "set mig.strategy: single or none")
    if single and mixed:
        yield Hit("gpu_sharing", f"the groups {', '.join(single)} (single) and {', '.join(mixed)} (mixed) want "
                                 "different strategies, and a cluster has one", "leave mig_strategy of both at auto")
    elif (mixed and strategy != "mixed") or (parts and strategy == "none") or (single and strategy == "mixed"):
        yield Hit("mig.strategy", f"mig.strategy is {strategy}, and gpu_sharing needs {'mixed' if mixed else 'single'} "
                                  f"for {', '.join(mixed or parts)}", "leave mig.strategy out of gpu_operator_values")
    if parts and chart.flag(values, "migManager.enabled") is False:
        yield Hit("migManager.enabled", f"gpu_sharing wants MIG ({', '.join(parts)}), and migManager.enabled is false: "
                                        "nobody partitions", "set migManager.enabled: true")
    yield from _other_maps(groups, values)


def _other_maps(groups: tuple[Group, ...], values: Mapping[str, Any]) -> Iterator[Hit]:
    needed = {"devicePlugin.config": any(one.configured for one in groups),
              "migManager.config": any(isinstance(one.mig_profile, Mapping) for one in groups)}
    for section, ours in _MAPS.items():
        name = chart.text(values, f"{section}.name")
        if needed[section] and name not in (None, ours):
            yield Hit(f"{section}.name", f"{section}.name is {name}, and gpu_sharing makes a ConfigMap of its own",
                      f"leave {section} out of gpu_operator_values, or gpu_sharing out of the policy")


@plan_rule(
    "OPR037", "warning", "A layout of MIG that is about to lose its definition",
    why="With layouts of one's own MIG manager reads these alone; a label that names another one then fails.",
    remedy="put the node into a group of gpu_sharing",
    sources=["https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html"],
)
def lost_layout(context: Context) -> Iterator[Hit]:
    """Fires when groups bring layouts of their own, and a node of no group has a layout that is none of them."""
    decision = context.operator
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    groups = read(context.wishes.sharing)
    if decision is None or node is None or GROUP_LABEL in node.labels or groups_of(context):
        return
    layout = node.labels.get("nvidia.com/mig.config")
    if layout in (None, "", "all-disabled") or not any(isinstance(one.mig_profile, Mapping) for one in groups):
        return
    yield Hit(f"{node.name} nvidia.com/mig.config",
              f"{node.name} has the layout {layout}, which is not among those that gpu_sharing makes")
