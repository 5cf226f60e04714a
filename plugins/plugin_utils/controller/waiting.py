# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one look at a cluster says of what is waited for: is it there, and what is missing, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..model import chart

UPGRADE = "nvidia.com/gpu-driver-upgrade-state"
_AT_REST = ("", "upgrade-done", "upgrade-failed")
_ENDED = ("Succeeded", "Failed")
Objects = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Look:
    """What was seen. ``moving``: nodes whose driver the operator is exchanging now, which takes as long as it takes."""

    done: bool
    words: str
    moving: int = 0


def operator(seen: Mapping[str, Objects], drivers: Sequence[str] = (), policy: bool = True) -> Look:
    """Judge ClusterPolicy, NVIDIADriver objects (those of the names ``drivers``), DaemonSets and Nodes.

    A ClusterPolicy says ``ready`` for a while after it changed, so the DaemonSets count too, in the generation that
    was asked for.
    """
    missing = []
    policies = seen.get("ClusterPolicy") or ()
    if policy and not policies:
        missing.append("there is no ClusterPolicy")
    # Of several objects the operator answers one and sets the others to ignored.
    states = [chart.text(one, "status.state") or "without a state" for one in policies] if policy else []
    if states and "ready" not in states:
        missing.append(f"ClusterPolicy {', '.join(sorted(set(states)))}")
    objects = {str(chart.at(one, "metadata.name")): one for one in seen.get("NVIDIADriver") or ()}
    for name in drivers:
        state = chart.text(objects.get(name), "status.state") or ("without a state" if name in objects else "missing")
        if state != "ready":
            missing.append(f"NVIDIADriver {name} {state}")
    missing += [words for words in map(rollout, seen.get("DaemonSet") or ()) if words]
    upgrades = [str((chart.at(one, "metadata.labels") or {}).get(UPGRADE) or "") for one in seen.get("Node") or ()]
    moving = sum(state not in _AT_REST for state in upgrades)
    if moving:
        missing.append(f"the driver is exchanged on {moving} nodes, {upgrades.count('upgrade-done')} are done")
    if "upgrade-failed" in upgrades:
        missing.append(f"the driver upgrade failed on {upgrades.count('upgrade-failed')} nodes")
    return Look(not missing, "; ".join(missing) or "ready", moving)


def rollout(daemon: Mapping[str, Any]) -> str:
    """Return what a DaemonSet lacks, empty where it is as asked for."""
    name, status = chart.at(daemon, "metadata.name"), chart.at(daemon, "status")
    status = status if isinstance(status, Mapping) else {}
    wanted, ready = int(status.get("desiredNumberScheduled") or 0), int(status.get("numberReady") or 0)
    generation = chart.at(daemon, "metadata.generation")
    if isinstance(generation, int) and int(status.get("observedGeneration", generation) or 0) < generation:
        return f"{name} was not looked at yet"
    if ready < wanted:
        return f"{name} {ready} of {wanted}"
    rolling = chart.text(daemon, "spec.updateStrategy.type") != "OnDelete"
    updated = int(status.get("updatedNumberScheduled", wanted) or 0)
    return f"{name} {updated} of {wanted} renewed" if rolling and updated < wanted else ""


def pods(seen: Mapping[str, Objects]) -> Look:
    """Judge pods that run once: done when each has ended, however."""
    listed = list(seen.get("Pod") or ())
    open_ = [f"{chart.at(one, 'metadata.name')} {holds(one)}" for one in listed
             if chart.text(one, "status.phase") not in _ENDED]
    shown = "; ".join(sorted(open_)[:5]) + (f"; and {len(open_) - 5} more" if len(open_) > 5 else "")
    return Look(not open_, f"{len(listed) - len(open_)} of {len(listed)} ended" + (f": {shown}" if open_ else ""))


def holds(pod: Mapping[str, Any]) -> str:
    """Return what a pod waits for: the scheduler's words, an image that cannot be pulled, else its phase."""
    conditions = chart.at(pod, "status.conditions")
    for one in conditions if isinstance(conditions, (list, tuple)) else ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f"is not scheduled ({one.get('message') or one.get('reason')})"
    listed = chart.at(pod, "status.containerStatuses")
    for one in listed if isinstance(listed, (list, tuple)) else ():
        reason = chart.text(one, "state.waiting.reason")
        if reason:
            told = chart.text(one, "state.waiting.message")
            return f"waits ({reason}{': ' + told if told else ''})"
    return f"is {chart.text(pod, 'status.phase') or 'new'}"


def gone(seen: Mapping[str, Objects]) -> Look:
    """Judge objects that were deleted: done when none is left; what holds one are its finalizers."""
    left = []
    for kind, listed in seen.items():
        for one in listed:
            held = chart.at(one, "metadata.finalizers")
            by = f" (held by {', '.join(map(str, held))})" if isinstance(held, (list, tuple)) and held else ""
            left.append(f"{kind} {chart.at(one, 'metadata.name')}{by}")
    return Look(not left, "; ".join(sorted(left)) or "nothing is left")


#: What can be waited for.
JUDGES: dict[str, Callable[..., Look]] = {"operator": operator, "pods": pods, "gone": gone}
