# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts, dashboard and metrics as files, for hosts without Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from . import alerts, catalogue, counters, dashboard
from .source import Source

_HEAD = "# Written by baremetal.nvidia. Alerts for the GPUs of hosts; promtool check rules FILE.\n"


def for_hosts(kind: str, plan: Mapping[str, Any] | None, job: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return texts by file name. Raises ValueError for another kind than dcgm and textfile."""
    made = {}
    if kind == "textfile":
        metrics = catalogue.TEXTFILE
    elif kind == "dcgm":
        known = plan or {}
        listed = counters.text(known.get("groups") or catalogue.GROUPS, catalogue.exporter(known.get("exporter")))
        made["counters.csv"], metrics = listed, counters.fields(listed)
    else:
        raise ValueError(f"{kind!r} is no source of metrics; one of dcgm, textfile")
    source = Source("dcgm" if kind == "dcgm" else "textfile", metrics, job=job, labels=dict(labels))
    rules = yaml.safe_dump({"groups": alerts.groups(source)}, sort_keys=False, width=118, allow_unicode=True)
    made["rules.yml"] = _HEAD + rules
    made["nvidia-gpus.json"] = json.dumps(dashboard.build(source), indent=1, sort_keys=True) + "\n"
    return made
