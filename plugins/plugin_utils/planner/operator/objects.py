# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIADriver objects and node labels: one object for the hosts that are to have the same driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import chart
from ...model import version as versions
from ...model.cluster import Cluster, DriverObject, Node
from ...model.operator import OperatorDecision
from ...rules.context import Context
from . import driver, driver_settings, values

LABEL = "driver.config"
DEFAULT_SINCE = (26, 7)  # the CRD has the required key ``default``


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in driver objects and labels where the operator's driver comes by NVIDIADriver objects."""
    on = chart.flag(decision.values, "driver.nvidiaDriverCRD.enabled") and decision.driver_owner == "operator"
    if not on or chart.flag(decision.values, "driver.enabled") is False:
        return
    if here.drivers:
        values.settle(here, decision, "driver.nvidiaDriverCRD.deployDefaultCR", False)
    node = here.node_of(context.name)
    served = [one for one in here.drivers if node is not None and one.takes(node)]
    wanted = _wanted(context, here, decision, node, served)
    if wanted is None:
        return
    chart.put_if_absent(decision.values, "driver.nvidiaDriverCRD.deployDefaultCR", False)
    name = wanted.pop("name")
    decision.drivers = [{"name": name, "spec": spec(wanted, decision.release, name, settings(decision))}]
    decision.labels[LABEL] = name


def _wanted(
    context: Context, here: Cluster, decision: OperatorDecision, node: Node | None, served: list[DriverObject]
) -> dict[str, Any] | None:
    """Return name and driver of the object for the host; None where an object that is there does."""
    own = next((one for one in served if one.selector == {LABEL: one.name}), None)
    version = driver.wanted(context, here, decision, objects=True)
    kept = not context.wishes.driver_is_asked and bool(here.drivers) and (bool(served) or node is None)
    if (kept or version is None) and own is None:
        return None
    if kept and own is not None:    # its driver stays, and what is said around it may have changed
        version, name = str(own.spec.get("version")), own.name
        kind = own.spec.get("kernelModuleType") or ("open" if own.spec.get("useOpenKernelModules") else "auto")
        return {"name": name, "version": version, "usePrecompiled": bool(own.spec.get("usePrecompiled")),
                "kernelModuleType": kind, "repository": own.spec.get("repository"), "image": own.spec.get("image")}
    if version is None or any(str(one.spec.get("version")) == version for one in served if one is not own):
        return None
    same = own is not None and str(own.spec.get("version")) == version
    return {
        "name": own.name if own is not None and same else f"driver-{versions.branch_of(version) or version[:3]}",
        "version": version,
        "usePrecompiled": driver.precompiled(context, decision.values),
        "kernelModuleType": driver.module_type(context, decision, version) or "auto",
        "repository": chart.text(decision.values, "driver.repository"),
        "image": chart.text(decision.values, "driver.image"),
    }


def settings(decision: OperatorDecision) -> dict[str, Any]:
    """Return what is the same for each object: the chart's values around the driver."""
    return driver_settings.of(decision.values, decision.release, decision.components)


def spec(
    decision: Mapping[str, Any], release: tuple[int, ...], name: str, around: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the spec of an object by the name and label ``name``, in the words that the CRD of a release knows.

    ``decision`` has version, usePrecompiled and kernelModuleType, and where the image comes from: repository and image;
    ``around`` is what :mod:`driver_settings` makes of the values.
    """
    made: dict[str, Any] = {
        **chart.copy(around),
        "driverType": "gpu",
        "repository": decision.get("repository") or "nvcr.io/nvidia",
        "image": decision.get("image") or "driver",
        "version": decision["version"],
        "usePrecompiled": decision["usePrecompiled"],
        "nodeSelector": {LABEL: name},
    }
    if release >= driver.TYPE_SINCE:
        made["kernelModuleType"] = decision["kernelModuleType"]
    elif decision["kernelModuleType"] == "open":
        made["useOpenKernelModules"] = True
    if release >= DEFAULT_SINCE:
        made["default"] = False
    return made
