# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about MIG in a cluster: layouts that a GPU does not have, changes that did not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import chart
from ..model.facts import UNKNOWN, each
from .context import Card, Context
from .registry import Hit, plan_rule

_STRATEGIES = ("none", "single", "mixed")
LAYOUT = "nvidia.com/mig.config"
_MIG = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html"
_SLOW = ("a100", "a30")  # cannot be reset when they are passed through to a guest


def _cards(context: Context) -> list[tuple[Card, Any]]:
    """Return the cards that can be partitioned, with their row."""
    found = []
    for card in each(context.cards):
        name = getattr(card.product, "mig", None)
        row = context.matrix.mig(name) if isinstance(name, str) else None
        if row is not None:
            found.append((card, row))
    return found


@plan_rule(
    "OPR040", "warning", "A change of MIG did not take",
    why="A change of mode needs a reset of the GPU; in a guest, or while something holds the device, that fails, and "
        "only a reboot helps.",
    remedy="reboot the node, or let MIG manager do it: migManager.env WITH_REBOOT: \"true\"",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/1606", _MIG],
)
def did_not_take(context: Context) -> Iterator[Hit]:
    """Fires when MIG manager reports a failed layout on the host's node, or a guest waits for a reboot."""
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    if context.operator is None or node is None:
        return
    state, layout = node.labels.get(f"{LAYOUT}.state"), node.labels.get(LAYOUT)
    reboots = chart.env(context.operator.values, "migManager").get("WITH_REBOOT") == "true"
    slow = any(row.name.startswith(_SLOW) for _card, row in _cards(context))
    guest = slow and context.host.os.virt not in (None, "none", UNKNOWN)
    why = "a GPU that is passed through to a guest cannot be reset: it needs a reboot" if guest else (
        "if the GPU cannot be reset it needs a reboot")
    if state == "failed":
        yield Hit(f"{node.name} {LAYOUT}", f"MIG manager could not apply {layout or 'it'} on {node.name}; {why}",
                  f"see the log of MIG manager on {node.name}; it may reboot already" if reboots else None)
    elif guest and layout not in (None, "", "all-disabled") and state not in ("success", "rebooting") and not reboots:
        yield Hit(f"{node.name} {LAYOUT}", f"the MIG layout {layout} waits on {node.name}; {why}")


@plan_rule(
    "OPR041", "error", "A MIG layout that does not go with GPU or strategy",
    why="Profiles differ from card to card, and the strategy decides by which name a pod may ask for them.",
    remedy="use a layout that the GPU has, and mig.strategy: mixed for layouts of several profiles",
    sources=["https://docs.nvidia.com/datacenter/tesla/mig-user-guide/", _MIG],
)
def wrong_layout(context: Context) -> Iterator[Hit]:
    """Fires for a profile that the host's GPUs lack, an unknown strategy, and a balanced layout under single."""
    if context.operator is None:
        return
    strategy = chart.at(context.operator.values, "mig.strategy")
    if strategy is not chart.ABSENT and strategy not in _STRATEGIES:
        yield Hit("mig.strategy", f"mig.strategy is {strategy!r}", "use none, single or mixed")
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    layout = node.labels.get(LAYOUT, "") if node is not None else ""
    layout = (context.operator.sharing.get("labels") or {}).get(LAYOUT, layout)
    if node is None or not layout or layout == "all-disabled":
        return
    if layout == "all-balanced" and strategy in (chart.ABSENT, "single"):
        yield Hit("mig.strategy", f"{node.name} has the layout {layout} of several profiles, and mig.strategy is "
                                  "single: its GPUs are not offered", "set mig.strategy: mixed", severity="warning")
    profile = layout.removeprefix("all-").replace(".me", "+me") if layout.startswith("all-") else ""
    for card, row in _cards(context):
        if profile[:1].isdigit() and row.profiles and profile not in row.profiles:
            yield Hit(f"{node.name} {LAYOUT}",
                      f"{card.label} has no MIG profile {profile}; it has {', '.join(row.profiles)}",
                      f"label {node.name} with a layout of these profiles")
            return
