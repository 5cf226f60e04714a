# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of nodes: what earlier drivers and upgrades left behind is mended, and hosts' labels become those of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.cluster import DRIVER_LABEL, Cluster
from ...model.operator import OperatorDecision
from ...rules import operator as rules
from ...rules.context import Context


def mend(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Take back labels that keep the operator away for nothing; rule OPR006 tells of them in words."""
    node = here.node_of(context.name)
    if node is None:
        return
    for label in rules.paused(node):
        decision.labels.setdefault(label, "true")
    if rules.without_its_driver(context, decision, node):
        decision.labels.setdefault(DRIVER_LABEL, None)


def differing(here: Cluster, labels: Mapping[str, Mapping[str, str | None]]) -> dict[str, Any]:
    """Return ``{node: {label: value or None}}``, only what is to change; None takes a label away.

    ``labels`` are those that are wanted by host; hosts that are no nodes are left out.
    """
    found: dict[str, dict[str, str | None]] = {}
    for host, wanted in sorted(labels.items()):
        node = here.node_of(host)
        changes = {label: value for label, value in wanted.items()
                   if node is not None and node.labels.get(label) != value}
        if node is not None and changes:
            found.setdefault(node.name, {}).update(changes)
    return found
