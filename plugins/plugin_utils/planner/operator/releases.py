# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release of the operator: the installed one stays; a new cluster gets the newest that fits."""

from __future__ import annotations

from typing import Any

from ...model import version as versions
from ...model.cluster import Cluster
from ...model.operator import OperatorDecision
from ...rules import operator_releases
from ...rules.context import Context


def fill(context: Context, here: Cluster, decision: OperatorDecision) -> None:
    """Fill in the version."""
    wanted = context.wishes.operator_version
    if wanted is not None:
        decision.version = wanted if wanted.startswith("v") else f"v{wanted}"
        decision.because.append("gpu_operator_version")
    elif here.installed is not None:
        decision.version = here.installed
        decision.because.append("installed; auto does not move it")
    else:
        row = _newest(context, here)
        decision.version = row.version if row is not None else None
        if row is not None:
            about = f" for Kubernetes {here.version}" if here.version else ""
            decision.because.append(f"the newest release{about}")
    decision.components = components(context)


def components(context: Context) -> dict[str, str]:
    """Return the release's own versions of the driver, and of what stands beside it in its pod."""
    row = operator_releases.row(context)
    if row is None:
        return {}
    known = {**row.components, "driver": row.default_driver}
    return {part: str(known[part]) for part in ("driver", "gds", "gdrcopy") if known.get(part)}


def _newest(context: Context, here: Cluster) -> Any:
    """Return the newest release that fits; one that lists the wanted driver branch goes before a newer one."""
    containerd = operator_releases.containerd(context)
    rows = [
        row for row in context.matrix.operators()
        if row.decides and (here.version is None or operator_releases.fits_kubernetes(row, here.version))
        and operator_releases.fits_containerd(row, containerd) is not False
    ]
    rows = [row for row in rows if row.life_cycle != "end of support"] or rows
    branch = _branch(context)
    listing = [row for row in rows if branch is not None and branch in (row.drivers or {})]
    return next(iter(listing or rows), None)


def _branch(context: Context) -> str | None:
    wishes = context.wishes
    if wishes.driver_version is not None:
        return versions.branch(wishes.driver_version)
    return None if wishes.driver_branch == "auto" else wishes.driver_branch
