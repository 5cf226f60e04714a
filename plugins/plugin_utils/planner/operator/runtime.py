# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's toolkit container: which containerd it configures, told by the distribution's own paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import chart
from ...model.cluster import Cluster
from ...model.operator import OperatorDecision
from ...rules import operator_runtime as runtimes
from ...rules.context import Context

NRI_SINCE = (26, 3)
CDI_SINCE = (25, 10)  # on by default
_HARDENED = {"ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED": "false",
             "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS": "true"}
_LISTS = "DEVICE_LIST_STRATEGY"


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in how devices get into containers, and toolkit.env.

    What a person set stays, and who sets one half of socket and file sets both.
    """
    _mode(context, here, decision)
    if decision.toolkit_owner != "operator" or chart.flag(decision.values, "cdi.nriPluginEnabled"):
        return
    given = chart.env(decision.values, "toolkit")
    wanted = dict(runtimes.paths(runtimes.distribution(context)))
    if any(name in given for name in (*runtimes.CONFIG, *runtimes.SOCKET)):
        wanted = {name: value for name, value in wanted.items() if name == runtimes.SOURCE}
    if runtimes.SOURCE not in given and "RUNTIME_CONFIG_SOURCES" not in given:
        wanted.setdefault(runtimes.SOURCE, "file")
    if context.wishes.container_hardened:
        wanted.update(_HARDENED)
        if not chart.flag(decision.values, "cdi.enabled", decision.release >= CDI_SINCE):
            _add(decision.values, "devicePlugin", {_LISTS: "volume-mounts"})
    if context.wishes.containerd_default_runtime == "nvidia" and "NVIDIA_RUNTIME_SET_AS_DEFAULT" not in given:
        wanted["CONTAINERD_SET_AS_DEFAULT"] = "true"
    _add(decision.values, "toolkit", wanted)


def _mode(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Put gpu_container_mode into the chart's words where one is asked for (rules tell what does not go)."""
    mode = context.wishes.container_mode
    if here.values is None and mode != "auto":    # what is installed follows from what was said before
        chart.drop(decision.values, "cdi.enabled")
        chart.drop(decision.values, "cdi.nriPluginEnabled")
    if mode == "legacy":
        chart.put_if_absent(decision.values, "cdi.enabled", False)
    elif mode in ("cdi", "nri"):
        chart.put_if_absent(decision.values, "cdi.enabled", True)
    if mode == "nri" and decision.toolkit_owner == "operator" and decision.release >= NRI_SINCE:
        chart.put_if_absent(decision.values, "cdi.nriPluginEnabled", True)


def _add(values: dict[str, Any], section: str, wanted: Mapping[str, str]) -> None:
    """Add environment variables that nobody set to a component."""
    given, there = chart.env(values, section), chart.at(values, f"{section}.env")
    added = [{"name": name, "value": value} for name, value in wanted.items() if name not in given]
    if added and (isinstance(there, list) or there is chart.ABSENT or there is None):
        chart.put(values, f"{section}.env", [*(there or []), *added])
