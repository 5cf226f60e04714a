# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts for what is there: the rule groups of Prometheus out of ``alerts.yml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from .source import Source

_FILE = Path(__file__).with_name("alerts.yml")


@lru_cache(maxsize=1)
def _table() -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: list[dict[str, Any]] = yaml.load(_FILE.read_text(encoding="utf-8"), Loader=loader)
    return loaded


def groups(source: Source) -> list[dict[str, Any]]:
    """Return the groups with the alerts that can fire at this source, as a rule file has them under ``groups``."""
    found = []
    for group in _table():
        rules = list(_rules(group, source)) if _serves(group, source) else []
        if rules:
            found.append({"name": group["name"], "rules": rules})
    return found


def left_out(source: Source) -> list[str]:
    """Return the names of alerts that this source could have and whose metrics are not collected."""
    there = {rule["alert"] for group in groups(source) for rule in group["rules"]}
    return [rule["alert"] for group in _table() if _serves(group, source)
            for rule in group["rules"] if _serves(rule, source) and rule["alert"] not in there]


def _serves(entry: Mapping[str, Any], source: Source) -> bool:
    return source.kind in entry.get("only", (source.kind,))


def _rules(group: Mapping[str, Any], source: Source) -> Iterator[dict[str, Any]]:
    for rule in group["rules"]:
        expr = _expr(rule, source) if _serves(rule, source) else None
        if expr is not None:
            yield {
                "alert": rule["alert"], "expr": expr, **({"for": rule["for"]} if "for" in rule else {}),
                "labels": {"severity": rule["severity"], **source.labels},
                "annotations": {name: source.fill(rule[name]) for name in ("summary", "description", "runbook")},
            }


def _expr(rule: Mapping[str, Any], source: Source) -> str | None:
    for choice in rule["exprs"]:
        needed = [source.fill(name) for name in choice["needs"]]
        if (_serves(choice, source) and all(name in source.metrics for name in needed)
                and choice.get("where", source.where) == source.where):
            return source.fill(choice["expr"])
    return None


def names() -> list[str]:
    """Return the names of all alerts."""
    return [rule["alert"] for group in _table() for rule in group["rules"]]
