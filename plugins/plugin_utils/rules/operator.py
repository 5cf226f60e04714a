# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the GPU Operator: who owns driver and toolkit, and which release may follow which."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import chart
from ..model.cluster import DRIVER_LABEL, TOOLKIT_LABEL, Node
from ..model.operator import OperatorDecision
from ..model.version import try_loose
from . import operator_releases
from .context import Context
from .registry import Hit, plan_rule

_LIFE = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/life-cycle-policy.html"
_UPGRADE = "nvidia.com/gpu-driver-upgrade-state"
_START = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html"


@plan_rule(
    "OPR001", "info", "The driver is not the host's",
    why="With another owner the host gets no driver from here; the kernel is still protected.",
    remedy="nothing to do; set gpu_driver_owner: host to have the driver installed here",
    sources=["docs/design.md, section 4"],
)
def other_owner(context: Context) -> Iterator[Hit]:
    """Fires when somebody else owns the driver of a host with GPUs."""
    owner = context.wishes.driver_owner
    if context.has_gpus and owner != "host":
        yield Hit(context.name, "the operator brings the driver" if owner == "operator" else "no driver is managed "
                                                                                             "here")


def _kept_away(context: Context, label: str) -> bool:
    """Say whether a label on the host's node keeps this container of the operator away."""
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    return node is not None and node.labels.get(label) in ("false", "pre-installed")


@plan_rule(
    "OPR002", "error", "Host and operator both bring the driver or the toolkit",
    why="Two drivers fight for one module, two toolkits for one containerd configuration; the loser is the node.",
    remedy="switch one of the two off",
    sources=[_START, "https://github.com/NVIDIA/gpu-operator/issues/1292"],
)
def two_owners(context: Context) -> Iterator[Hit]:
    """Fires when the values switch on what the host has or gets by itself, and no node label keeps it away."""
    decision = context.operator
    if decision is None or not context.has_gpus:
        return
    asked = chart.flag(decision.values, "driver.enabled")
    if decision.driver_owner == "host" and asked and not _kept_away(context, DRIVER_LABEL):
        whose = "gpu_driver_owner is host" if context.wishes.driver_owner == "host" else "the host has a driver already"
        yield Hit("driver.enabled", f"driver.enabled is true in the operator's values, but {whose}",
                  f"set driver.enabled: false or gpu_driver_owner: operator; in a mixed cluster label this node "
                  f"{DRIVER_LABEL}=pre-installed first",
                  severity=None if context.wishes.driver_owner == "host" else "warning")
    there = context.host.containers.toolkit
    asked = chart.flag(decision.values, "toolkit.enabled")
    kept_away = _kept_away(context, TOOLKIT_LABEL)
    if asked and isinstance(there, str) and context.host.containers.owner == "host" and not kept_away:
        yield Hit("toolkit.enabled", f"toolkit.enabled is true in the operator's values, but the host has toolkit "
                                     f"{there} and containerd is set up for it",
                  "set toolkit.enabled: false, or gpu_container_runtime: none and remove the host's toolkit",
                  severity="error" if context.uses_containers else "warning")


@plan_rule(
    "OPR003", "error", "Nobody brings the driver",
    why="The host waits for the operator's driver and the operator is told not to bring one.",
    remedy="set driver.enabled: true, or gpu_driver_owner: host",
    sources=[_START],
)
def no_owner(context: Context) -> Iterator[Hit]:
    """Fires when gpu_driver_owner is operator and driver.enabled is false."""
    decision = context.operator
    if decision is None or not context.has_gpus or decision.driver_owner != "operator":
        return
    if chart.flag(decision.values, "driver.enabled") is False:
        yield Hit("driver.enabled", "gpu_driver_owner is operator, but driver.enabled is false in its values: nobody "
                                    "brings a driver")


@plan_rule(
    "OPR004", "warning", "The operator's release does not suit the cluster",
    why="NVIDIA tests a release on some Kubernetes releases and supports the newest major alone.",
    remedy="move the operator, one major at a time",
    sources=[_LIFE],
)
def unsuited(context: Context) -> Iterator[Hit]:
    """Fires when the release does not name this Kubernetes or containerd, has ended, or is unknown."""
    decision, here = context.operator, context.cluster
    if decision is None:
        return
    if decision.version is None:
        if here is not None and here.version:
            yield Hit("gpu-operator", f"no release of the operator is known for Kubernetes {here.version}",
                      "name one with gpu_operator_version", severity="error")
        return
    row = operator_releases.row(context)
    name = f"gpu-operator {decision.version}"
    if row is None:
        yield Hit(name, f"{name} is not among the releases that the matrix knows: what it takes is not known")
        return
    if here is not None and operator_releases.fits_kubernetes(row, here.version) is False:
        yield Hit(name, f"{name} is supported on Kubernetes {row.kubernetes[0]} to {row.kubernetes[1]}, this cluster "
                        f"has {here.version}")
    have = operator_releases.containerd(context)
    if operator_releases.fits_containerd(row, have) is False and have is not None:
        yield Hit(name, f"{name} is supported on containerd {', '.join(row.containerd)}, this node has "
                        f"{'.'.join(map(str, have))}")
    if row.life_cycle == "end of support":
        yield Hit(name, f"{name} is no longer supported")


@plan_rule(
    "OPR005", "error", "A step over a major release of the operator",
    why="Upgrades go within a major or to the next one; what lies between migrates objects that the later ones expect.",
    remedy="go through each major in turn",
    sources=[_LIFE],
)
def too_far(context: Context) -> Iterator[Hit]:
    """Fires when the wanted release is more than one major above the installed one, or below it."""
    decision, here = context.operator, context.cluster
    before = try_loose(here.installed.removeprefix("v")) if here is not None and here.installed else None
    after = decision.release if decision is not None else ()
    if here is None or before is None or len(before) < 2 or len(after) < 2:
        return
    majors = sorted({*operator_releases.majors(context), before[:2], after[:2]})    # one that is not known counts, too
    steps = majors.index(after[:2]) - majors.index(before[:2])
    if steps > 1:
        between = majors[majors.index(before[:2]) + 1]
        newest = next((row.version for row in context.matrix.operators()
                       if (try_loose(row.version.removeprefix("v")) or ())[:2] == between), None)
        yield Hit(f"gpu-operator {here.installed}", f"from {here.installed} to {decision.version if decision else ''} "
                                                    f"is {steps} majors; {newest} comes next",
                  f"set gpu_operator_version: {newest} first")
    elif steps < 0:
        yield Hit(f"gpu-operator {here.installed}", f"{decision.version if decision else ''} is older than the "
                                                    f"installed {here.installed}: its CRDs would lose fields",
                  "stay, or uninstall first")


@plan_rule(
    "OPR006", "warning", "A node label of the operator is left behind",
    why="The operator honours such labels for ever: the node gets no driver, or its pods stay paused.",
    remedy="remove the label, or set it back to true",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/504", "https://github.com/NVIDIA/gpu-operator/issues/2509"],
)
def stale_label(context: Context) -> Iterator[Hit]:
    """Fires for pre-installed on a node without a driver of its own, for endless pauses and failed upgrades."""
    decision, here = context.operator, context.cluster
    node = here.node_of(context.name) if here is not None else None
    if decision is None or node is None:
        return
    state = node.labels.get(_UPGRADE)
    for label in paused(node):
        yield Hit(f"{node.name} {label}", f"{node.name} has {label}={node.labels[label]}, and no driver upgrade is "
                                          "running", f"set {label}=true on {node.name}")
    if state == "upgrade-failed":
        yield Hit(f"{node.name} nvidia.com/gpu-driver-upgrade-state", f"the driver upgrade of {node.name} failed",
                  f"see the driver pod, then label {node.name} "
                  "nvidia.com/gpu-driver-upgrade-state=upgrade-required")
    if without_its_driver(context, decision, node):
        yield Hit(f"{node.name} {DRIVER_LABEL}", f"{node.name} is labelled {DRIVER_LABEL}=pre-installed, but has no "
                                                 "driver of its own: the operator stays away",
                  f"remove the label {DRIVER_LABEL} from {node.name}")


def paused(node: Node) -> list[str]:
    """Return the labels of a node that an upgrade of the driver paused, where none is running any more."""
    if node.labels.get(_UPGRADE) not in (None, "", "upgrade-done", "upgrade-failed"):
        return []
    return sorted(label for label, value in node.labels.items() if value.endswith("paused-for-driver-upgrade"))


def without_its_driver(context: Context, decision: OperatorDecision, node: Node) -> bool:
    """Say whether a node counts as one with a driver of its own, and has none."""
    gone = context.host.driver.loaded is None and context.host.driver.library is None and context.installed is None
    return node.labels.get(DRIVER_LABEL) == "pre-installed" and decision.driver_owner == "operator" and gone
