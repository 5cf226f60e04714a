# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who brings driver and toolkit to the node: the host or the operator's containers, never both."""

from __future__ import annotations

from ...model import chart
from ...model.cluster import TOOLKIT_LABEL, Cluster
from ...model.operator import OperatorDecision, Owner
from ...rules.context import Context

_WHOSE = {"host": "the host's", "operator": "the operator's container", "none": "nobody's that is known"}


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in the owners and the two switches of the chart."""
    asked = chart.flag(decision.values, "driver.enabled")
    decision.driver_owner = _driver(context, here, asked)
    said = decision.driver_owner == "host" or context.wishes.driver_owner == "operator"
    if here.values is None and said:    # what is installed follows from what was said before, or for other nodes
        asked = None
    if asked is None and decision.driver_owner != "none":
        chart.put(decision.values, "driver.enabled", decision.driver_owner == "operator")
    asked = chart.flag(decision.values, "toolkit.enabled")
    if here.values is None and _keeps_toolkit_away(context, here):
        asked = None
    decision.toolkit_owner = _toolkit(context, here, asked, decision.driver_owner)
    if asked is None:
        chart.put(decision.values, "toolkit.enabled", decision.toolkit_owner == "operator")
    decision.because += [f"driver: {_WHOSE[decision.driver_owner]}", f"toolkit: {_WHOSE[decision.toolkit_owner]}"]


def _driver(context: Context, here: Cluster, asked: bool | None) -> Owner:
    if context.wishes.driver_owner == "host":
        return "host"
    if context.wishes.driver_owner == "operator":
        return "operator"
    if has_own_driver(context):
        return "host"
    if asked is None:
        before = chart.flag(here.installed_values, "driver.enabled")
        asked = True if context.host.driver.origin == "operator" else before
    return "operator" if asked else "none"


def _keeps_toolkit_away(context: Context, here: Cluster) -> bool:
    """Say whether the host's node has the label that keeps the operator's toolkit away."""
    node = here.node_of(context.name)
    return node is not None and node.labels.get(TOOLKIT_LABEL) == "false"


def has_own_driver(context: Context) -> bool:
    """Say whether the host has a driver that no container of the operator brought."""
    driver = context.host.driver
    if driver.origin == "operator":
        return False
    return context.installed is not None or driver.origin in ("packages", "runfile")


def _toolkit(context: Context, here: Cluster, asked: bool | None, driver: Owner) -> Owner:
    if asked is not None:
        return "operator" if asked else "host"
    containers = context.host.containers
    if containers.owner == "operator" or not context.uses_containers:
        return "operator"
    if isinstance(containers.toolkit, str) or (driver != "operator" and _keeps_toolkit_away(context, here)):
        return "host"
    before = chart.flag(here.installed_values, "toolkit.enabled")
    if before is not None:
        return "operator" if before else "host"
    return "operator" if driver == "operator" else "host"
