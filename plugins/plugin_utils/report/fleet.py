# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of many hosts: hosts of the same shape together, counts, and the JSON that other programs read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import describe
from .hostnames import natural

VERDICTS = ("blocked", "change", "ok")
_SHAPE = ("subject", "verdict", "changes", "pending", "findings")
#: How many names of hosts the small summary carries; the JSON report has all.
NAMES = 50


@dataclass(frozen=True)
class Shape:
    """Hosts whose plans say the same, and one of these plans."""

    hosts: tuple[str, ...]
    plan: Mapping[str, Any]


def shapes(plans: Mapping[str, Mapping[str, Any]]) -> list[Shape]:
    """Return the hosts folded by what their plans say; blocked ones first, then changing ones, then those that are
    ok."""
    groups: dict[str, list[str]] = {}
    for host in sorted(plans, key=natural):
        plan = plans[host]
        said = {key: plan.get(key) for key in _SHAPE}
        said["driver"] = (plan.get("decisions") or {}).get("driver")
        said["cuda"] = describe.cuda_line(plan)
        groups.setdefault(json.dumps(said, sort_keys=True, default=str), []).append(host)
    found = [Shape(tuple(hosts), plans[hosts[0]]) for hosts in groups.values()]
    return sorted(found, key=lambda shape: (_rank(shape.plan), natural(shape.hosts[0])))


def summary(
    plans: Mapping[str, Mapping[str, Any]], unread: Iterable[str] = (), failed: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the small, run-level summary that goes out by set_stats: counts, and the names that need someone."""
    verdicts = Counter(plan["verdict"] for plan in plans.values())
    findings = Counter(item.get("severity") for plan in plans.values() for item in describe.open_findings(plan))
    pending = [host for host in sorted(plans, key=natural) if plans[host].get("pending")]
    blocked = [host for host in sorted(plans, key=natural) if plans[host]["verdict"] == "blocked"]
    lost, bad = sorted(set(unread), key=natural), sorted(set(failed), key=natural)
    return {
        "hosts": len(plans) + len(lost),
        "verdicts": {**{verdict: verdicts[verdict] for verdict in VERDICTS}, "unread": len(lost)},
        "changes": sum(len(plan.get("changes") or ()) for plan in plans.values()),
        "pending": sum(len(plan.get("pending") or ()) for plan in plans.values()),
        "findings": {severity: findings[severity] for severity in describe.SEVERITIES},
        "needs": sorted(
            {str(item["needs"]) for host in pending for item in plans[host]["pending"] if item.get("needs")}
        ),
        "blocked_hosts": blocked[:NAMES],
        "pending_hosts": pending[:NAMES],
        "unread_hosts": lost[:NAMES],
        "failed_hosts": bad[:NAMES],
    }


def as_json(
    plans: Mapping[str, Mapping[str, Any]],
    unread: Iterable[str] = (),
    failed: Iterable[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> str:
    """Return the whole report as JSON text: summary, hosts with their plans, hosts that could not be read."""
    content = {
        "report": "baremetal.nvidia plan",
        "version": 1,
        **(extra or {}),
        "summary": summary(plans, unread, failed),
        "unread": sorted(set(unread), key=natural),
        "hosts": {host: plans[host] for host in sorted(plans, key=natural)},
    }
    return json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n"


def _rank(plan: Mapping[str, Any]) -> int:
    return VERDICTS.index(plan["verdict"]) if plan.get("verdict") in VERDICTS else len(VERDICTS)
