# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's part of a plan: release, values, driver objects and node labels from one host and its cluster."""

from __future__ import annotations

from ...model import cluster as clusters
from ...model.operator import OperatorDecision
from ...rules.context import Context
from . import driver, metrics, nodes, objects, owners, releases, runtime, sharing, values

__all__ = ["fill"]


def fill(context: Context, cluster: object) -> None:
    """Fill in ``context.cluster`` and ``context.operator``; None where no operator is there or wanted."""
    context.cluster = clusters.read(cluster)
    if context.cards == () or context.cards is None or not _wanted(context):
        return
    here = context.cluster or clusters.Cluster()
    decision = OperatorDecision()
    context.operator = decision
    releases.fill(context, here, decision)
    values.begin(here, decision)
    owners.fill(context, here, decision)
    driver.fill(context, here, decision)
    runtime.fill(context, here, decision)
    sharing.fill(context, here, decision)
    values.finish(context, here, decision)
    metrics.fill(context, here, decision)
    objects.fill(context, here, decision)
    nodes.mend(context, here, decision)


def _wanted(context: Context) -> bool:
    here = context.cluster
    if context.wishes.driver_owner == "operator":
        return True
    return here is not None and (here.installed is not None or here.values is not None)
