# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's toolkit container: which containerd it configures, told by the distribution's own paths."""

from __future__ import annotations

from ...model import chart
from ...model.cluster import Cluster
from ...model.operator import OperatorDecision
from ...rules import operator_runtime as runtimes
from ...rules.context import Context


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in toolkit.env: what a person set stays, and who sets one half of socket and file sets both."""
    if decision.toolkit_owner != "operator" or chart.flag(decision.values, "cdi.nriPluginEnabled"):
        return
    given = chart.env(decision.values, "toolkit")
    wanted = dict(runtimes.paths(runtimes.distribution(context)))
    if any(name in given for name in (*runtimes.CONFIG, *runtimes.SOCKET)):
        wanted = {name: value for name, value in wanted.items() if name == runtimes.SOURCE}
    if runtimes.SOURCE not in given and "RUNTIME_CONFIG_SOURCES" not in given:
        wanted.setdefault(runtimes.SOURCE, "file")
    added = [{"name": name, "value": value} for name, value in wanted.items() if name not in given]
    there = chart.at(decision.values, "toolkit.env")
    if added and (isinstance(there, list) or there is chart.ABSENT or there is None):
        chart.put(decision.values, "toolkit.env", [*(there or []), *added])
