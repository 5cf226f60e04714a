# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions over many hosts, from their plans: which hosts are of one shape, and which modules to build once.

A module is the same on every host whose kernel release, compiler, driver source package and flavour are the same: it is
built on one of them and handed to the others.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..model import cluster as clusters
from .operator import fleet as operator_fleet


def plan_fleet(
    plans: Iterable[Mapping[str, Any]],
    cluster: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    now: datetime.date | None = None,
) -> dict[str, Any]:
    """Return verdicts, shapes and builds of a fleet; the plans are those of :func:`.plan`, in any order.

    ``operator`` is what the cluster's operator is to be like for all of them together, None where no host is a node.
    ``policy`` and ``now`` went into the plans already; of ``cluster`` the objects that are there keep their names.
    """
    ordered = sorted(plans, key=lambda plan: str(plan.get("host")))
    verdicts: dict[str, list[str]] = {"ok": [], "change": [], "blocked": []}
    shapes: dict[str, list[str]] = {}
    builds: dict[str, dict[str, Any]] = {}
    for plan in ordered:
        host = str(plan.get("host"))
        verdicts.setdefault(str(plan.get("verdict")), []).append(host)
        shapes.setdefault(shape(plan), []).append(host)
        for build in _builds(plan):
            entry = builds.setdefault(json.dumps(build, sort_keys=True), {**build, "hosts": []})
            entry["hosts"].append(host)
    return {
        "hosts": len(ordered),
        "verdicts": verdicts,
        "shapes": [{"shape": name, "hosts": hosts} for name, hosts in sorted(shapes.items())],
        "builds": [{**entry, "build_on": entry["hosts"][0]} for _key, entry in sorted(builds.items())],
        "operator": operator_fleet.together(ordered, clusters.read(cluster)),
    }


def shape(plan: Mapping[str, Any]) -> str:
    """Return a short digest of what is decided for a host: hosts of one shape have it in common."""
    decisions = plan.get("decisions") or {}
    text = json.dumps(decisions, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _builds(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    driver = (plan.get("decisions") or {}).get("driver") or {}
    if plan.get("verdict") == "blocked" or driver.get("method") != "dkms":
        return []
    steps = [*(plan.get("changes") or []), *(plan.get("pending") or [])]
    source = driver.get("source_package")
    return [
        {
            "kernel": step["target"],
            "version": driver.get("version"),
            "flavour": driver.get("flavour"),
            "source_package": source,
            "package_version": (driver.get("packages") or {}).get(source),
            "compilers": [name for name in driver.get("prerequisites") or [] if str(name).startswith("gcc")],
        }
        for step in steps
        if step.get("role") == "gpu_driver" and step.get("action") == "prove"
    ]
