# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a host: a pure function of facts, policy, matrix and date."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from ..model import host as hosts
from ..model import policy as policies
from ..model import wishes
from ..model.cluster import Cluster
from ..model.cluster import read as read_cluster
from ..rules.context import Context
from . import changes, choose, containerd, cuda, devices, driver, kernel, operator, overlays, toolkit, verdict
from .fleet import plan_fleet
from .survey import survey

__all__ = ["plan", "plan_fleet", "read_cluster"]

_FETCHES = ("install", "upgrade", "prove", "repair", "headers", "initramfs")


def plan(
    host: str,
    facts: object,
    policy: Mapping[str, Any] | None,
    matrix: Any,
    now: datetime.date,
    cluster: Mapping[str, Any] | Cluster | None = None,
) -> dict[str, Any]:
    """Return the plan of one host in the shape of docs/design.md, section 5: plain data, ready for JSON.

    ``cluster`` are the facts of the cluster that the host is a node of (section 3), None where there is none.
    Who plans many nodes reads them once with :func:`read_cluster`.

    Takes any facts without raising; raises :class:`~..model.policy.PolicyError` for a policy that cannot be meant.
    """
    checked = policies.validate(policy)
    context = survey(host, hosts.read(facts), wishes.wishes(checked), matrix, now)
    decide(context, facts, cluster)
    context.changes, context.pending = changes.collect(context)
    context.needs_space = any(change.action in _FETCHES for change in (*context.changes, *context.pending))
    findings = verdict.findings(context)
    return {
        "host": host,
        "verdict": verdict.verdict(context, findings),
        "decisions": {
            "driver": context.driver.as_dict(),
            "kernel": context.kernel.as_dict(),
            "cuda": context.cuda.as_dict(),
            "toolkit": context.toolkit.as_dict(),
            "containerd": context.containerd.as_dict(),
            "operator": context.operator.as_dict() if context.operator is not None else None,
        },
        "changes": [change.as_dict() for change in context.changes],
        "pending": [change.as_dict() for change in context.pending],
        "findings": [finding.as_dict() for finding in findings],
        "overlays": overlays.used(context) if context.wishes.matrix_overlay else [],
    }


def decide(context: Context, facts: object, cluster: object = None) -> None:
    """Fill in all decisions of a context."""
    if context.has_gpus and not context.borrowed_kernel:
        choose.choose(context)
    elif context.borrowed_kernel and context.installed is not None:
        from .candidates import as_it_is

        context.candidate = as_it_is(context)
    kernel.fill(context)
    driver.fill(context)
    kernel.finish(context)
    cuda.fill(context)
    operator.fill(context, cluster)
    if not context.borrowed_kernel:
        toolkit.fill(context)
        devices.fill(context)
        containerd.fill(context, facts)
