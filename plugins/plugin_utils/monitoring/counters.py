# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of metrics that dcgm-exporter reads (CSV: field, type, help), and the ConfigMap's name for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from . import catalogue

PREFIX = "baremetal-nvidia-dcgm-metrics-"
_HEAD = "# Written by baremetal.nvidia for the GPUs of these hosts. Field, type, help.\n"


def text(groups: Iterable[str], exporter: tuple[int, ...]) -> str:
    """Return the list for an exporter, with the metrics of these groups."""
    return _text(frozenset(groups), exporter)


@lru_cache(maxsize=64)
def _text(groups: frozenset[str], exporter: tuple[int, ...]) -> str:
    lines = [f"{one.name}, {one.kind}, {one.help}\n" for one in catalogue.of_groups(groups, exporter)]
    return _HEAD + "".join(lines)


def fields(listed: object) -> frozenset[str]:
    """Return the names in a list, as the exporter reads it; labels are no metrics and are left out."""
    found = set()
    for line in listed.splitlines() if isinstance(listed, str) else ():
        parts = [part.strip() for part in line.split(",")]
        if not line.startswith("#") and len(parts) == 3 and parts[1] != "label":
            found.add(parts[0])
    return frozenset(found)


def config(listed: str) -> dict[str, Any]:
    """Return the chart's value ``dcgmExporter.config``.

    The name carries a digest of the list: the exporter reads it once, at its start, and a new name restarts it.
    """
    return {"create": True, "name": PREFIX + hashlib.sha256(listed.encode()).hexdigest()[:8], "data": listed}


def ours(name: object) -> bool:
    """Say whether a ConfigMap of this name is one of ours."""
    return isinstance(name, str) and name.startswith(PREFIX)
