# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of package files in the place of all repositories: what it holds is what is on offer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..model import offline
from ..rules.context import Context
from . import family


def take(context: Context) -> None:
    """Have the files stand for everything that is on offer of the driver and of what it needs; kernels stay as told."""
    wish = context.wishes.driver_offline
    if wish is None:
        return
    host = context.host.packages
    there = host.installed if isinstance(host.installed, dict) else {}
    known = host.available if isinstance(host.available, dict) else {}
    found: dict[str, tuple[str, ...]] = {name: known[name] for name in family.kernel_family(known)}
    for name, versions in offline.packages(wish["sha256"]).items():
        # an epoch is not in the name of a file; what is installed tells it
        found[name] = tuple(there[name] if offline.plain(there.get(name, "")) == offline.plain(one) else one
                            for one in versions)
    context.host = replace(context.host, packages=replace(host, available=found, cache_age=0))


def decide(context: Context) -> dict[str, Any] | None:
    """Return the directory where packages come from it."""
    wish = context.wishes.driver_offline
    return {"path": wish["path"], "on": wish["on"], "files": wish["sha256"]} if wish is not None else None
