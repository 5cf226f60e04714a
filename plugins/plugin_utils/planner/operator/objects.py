# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIADriver objects and node labels: one object for the hosts that are to have the same driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import chart
from ...model import version as versions
from ...model.cluster import Cluster, DriverObject
from ...model.operator import OperatorDecision
from ...rules.context import Context
from . import driver, values

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
    if not context.wishes.driver_is_asked and here.drivers and (served or node is None):
        return
    version = driver.wanted(context, here, decision, objects=True)
    if version is None or _has(served, version):
        return
    chart.put_if_absent(decision.values, "driver.nvidiaDriverCRD.deployDefaultCR", False)
    name = f"driver-{versions.branch_of(version) or version[:3]}"
    wanted = {
        "version": version,
        "usePrecompiled": driver.precompiled(context, decision.values),
        "kernelModuleType": driver.module_type(context, decision, version) or "auto",
        "repository": chart.text(decision.values, "driver.repository"),
        "image": chart.text(decision.values, "driver.image"),
    }
    decision.drivers = [{"name": name, "spec": spec(wanted, decision.release, name)}]
    decision.labels[LABEL] = name


def _has(served: list[DriverObject], version: str) -> bool:
    return any(str(one.spec.get("version")) == version for one in served)


def spec(decision: Mapping[str, Any], release: tuple[int, ...], name: str) -> dict[str, Any]:
    """Return the spec of an object by the name and label ``name``, in the words that the CRD of a release knows.

    ``decision`` has version, usePrecompiled and kernelModuleType, and where the image comes from: repository and image.
    """
    made: dict[str, Any] = {
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
