# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's driver: version or branch, module type, precompiled or not, one definition or several."""

from __future__ import annotations

from typing import Any

from ...model import chart
from ...model import version as versions
from ...model.cluster import Cluster
from ...model.facts import each
from ...model.operator import OperatorDecision
from ...rules import operator_releases, operator_systems
from ...rules.context import Context

AUTO_FROM = (570, 86, 15)  # kernelModuleType auto is understood by the driver from here on
TYPE_SINCE = (25, 3)  # driver.kernelModuleType replaces driver.useOpenKernelModules
CRD_MOVES_SINCE = (26, 7)  # a running ClusterPolicy driver can be moved to NVIDIADriver objects


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in the driver's values where the operator brings it."""
    values = decision.values
    if decision.driver_owner != "operator" or chart.flag(values, "driver.enabled") is False:
        return
    if here.values is None:
        _forget(context, values)
    if _several_systems(context, here, decision):
        chart.put_if_absent(values, "driver.nvidiaDriverCRD.enabled", True)
        chart.put_if_absent(values, "driver.nvidiaDriverCRD.deployDefaultCR", False)
    if chart.flag(values, "driver.nvidiaDriverCRD.enabled"):
        return
    if precompiled(context, values):
        chart.put_if_absent(values, "driver.usePrecompiled", True)
    version = wanted(context, here, decision)
    if version is not None:
        chart.put_if_absent(values, "driver.version", version)
    flavour = module_type(context, decision, chart.text(values, "driver.version"))
    if flavour is not None and decision.release >= TYPE_SINCE:
        chart.put_if_absent(values, "driver.kernelModuleType", flavour)
    elif flavour is not None:
        chart.put_if_absent(values, "driver.useOpenKernelModules", flavour == "open")


def _forget(context: Context, values: dict[str, Any]) -> None:
    """Take out of the installed values what the policy says now: they hold what it said before."""
    wishes = context.wishes
    if wishes.driver_method != "auto":
        chart.drop(values, "driver.usePrecompiled")
    if wishes.driver_is_asked or wishes.driver_method != "auto":
        chart.drop(values, "driver.version")
    if wishes.driver_flavour != "auto":
        chart.drop(values, "driver.kernelModuleType")


def _several_systems(context: Context, here: Cluster, decision: OperatorDecision) -> bool:
    """Say whether nodes of several systems need definitions of their own, and the cluster can be moved to them."""
    running = bool(here.installed) and chart.flag(here.installed_values, "driver.enabled", True)
    if running and decision.release < CRD_MOVES_SINCE:
        return False
    return len(operator_systems.of_driver_nodes(here, decision.release)) > 1


def precompiled(context: Context, values: dict[str, Any]) -> bool:
    """Say whether precompiled driver images are wanted."""
    asked = chart.flag(values, "driver.usePrecompiled")
    return context.wishes.driver_method == "precompiled" if asked is None else asked


def wanted(context: Context, here: Cluster, decision: OperatorDecision, objects: bool = False) -> str | None:
    """Return the driver version for the chart, the branch alone where the image is precompiled.

    None where the chart's own default does; an object needs one in any case.
    """
    version = _version(context, here, decision, objects)
    if version is None:
        return None
    return versions.branch_of(version) or version[:3] if precompiled(context, decision.values) else version


def _version(context: Context, here: Cluster, decision: OperatorDecision, objects: bool) -> str | None:
    wishes, row = context.wishes, operator_releases.row(context)
    asked = chart.text(decision.values, "driver.version")
    if asked is not None:
        return asked
    if wishes.driver_version is not None:
        return wishes.driver_version
    listed = (row.drivers or {}) if row is not None else {}
    if wishes.driver_branch != "auto":
        return _newest(context, listed, wishes.driver_branch)
    before = _before(context, here)
    if before is not None and _supported(context, before):
        return before
    if row is None:
        return None
    if _supported(context, str(row.default_driver)):
        return None if here.installed == decision.version and not objects else str(row.default_driver)
    for branch in sorted(listed, reverse=True):
        known = context.matrix.branch(branch)
        settled = known is not None and known.type in ("production", "lts") and known.supported_on(context.now)
        if settled and listed[branch] and _supported(context, str(listed[branch][0])):
            return str(listed[branch][0])
    return None


def _before(context: Context, here: Cluster) -> str | None:
    """Return the driver that the operator brings now; auto does not move it, also not with a new chart's default."""
    if context.host.driver.origin == "operator" and isinstance(context.host.driver.loaded, str):
        return context.host.driver.loaded
    given = chart.text(here.installed_values, "driver.version")
    if given is not None or here.installed is None or context.operator is None:
        return given
    row = context.matrix.operator(here.installed) if here.installed != context.operator.version else None
    return str(row.default_driver) if row is not None else None


def _newest(context: Context, listed: Any, branch: str) -> str | None:
    if listed.get(branch):
        return str(listed[branch][0])
    rows = context.matrix.versions(branch)
    return str(rows[0].version) if rows else branch


def _supported(context: Context, version: str) -> bool:
    products = [card.product for card in each(context.cards) if card.product is not None]
    return all(context.matrix.supports(product, version).answer != "no" for product in products)


def module_type(context: Context, decision: OperatorDecision, version: str | None) -> str | None:
    """Return open or proprietary where the chart's own choice would not do, or somebody asked for one."""
    if context.wishes.driver_flavour != "auto":
        return context.wishes.driver_flavour
    parsed = versions.try_loose(version) if version else None
    if parsed is None or (parsed >= AUTO_FROM if len(parsed) > 1 else parsed >= AUTO_FROM[:1]):
        return None
    rules = {card.product.flavour_rule for card in each(context.cards) if card.product is not None}
    if "proprietary_only" in rules or not rules:
        return "proprietary" if rules else None
    return "open"
