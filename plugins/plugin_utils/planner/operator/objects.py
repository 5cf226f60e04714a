# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIADriver objects and node labels: one object for the hosts that are to have the same driver."""

from __future__ import annotations

from typing import Any

from ...model import chart
from ...model import version as versions
from ...model.cluster import Cluster, DriverObject
from ...model.operator import OperatorDecision
from ...rules.context import Context
from . import driver

LABEL = "driver.config"
DEFAULT_SINCE = (26, 7)  # the CRD has the required key ``default``


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in driver objects and labels where the operator's driver comes by NVIDIADriver objects."""
    on = chart.flag(decision.values, "driver.nvidiaDriverCRD.enabled") and decision.driver_owner == "operator"
    if not on or chart.flag(decision.values, "driver.enabled") is False:
        return
    node = here.node_of(context.name)
    served = [one for one in here.drivers if node is not None and one.takes(node)]
    if served and not context.wishes.driver_is_asked:
        return
    version = driver.wanted(context, here, decision)
    if version is None or _has(served, version):
        return
    chart.put_if_absent(decision.values, "driver.nvidiaDriverCRD.deployDefaultCR", False)
    name = f"driver-{versions.branch_of(version) or version[:3]}"
    decision.drivers = [{"name": name, "spec": _spec(context, decision, version, name)}]
    decision.labels = {LABEL: name}


def _has(served: list[DriverObject], version: str) -> bool:
    return any(str(one.spec.get("version")) == version for one in served)


def _spec(context: Context, decision: OperatorDecision, version: str, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "driverType": "gpu",
        "repository": chart.text(decision.values, "driver.repository") or "nvcr.io/nvidia",
        "image": chart.text(decision.values, "driver.image") or "driver",
        "version": version,
        "usePrecompiled": driver.precompiled(context, decision.values),
        "kernelModuleType": driver.module_type(context, decision, version) or "auto",
        "nodeSelector": {LABEL: name},
    }
    if decision.release >= DEFAULT_SINCE:
        spec["default"] = False
    return spec
