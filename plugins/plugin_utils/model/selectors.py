# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes label selectors: whether labels match, and which labels would. Takes anything, raises nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def matches(selector: object, labels: Mapping[str, str]) -> bool:
    """Say whether a selector takes labels. An empty one takes everything, one that is not there nothing."""
    if not isinstance(selector, Mapping):
        return False
    table = selector.get("matchLabels")
    plain = table if isinstance(table, Mapping) else {}
    return all(labels.get(str(key)) == str(value) for key, value in plain.items()) and all(
        _holds(operator, values, labels.get(key)) for key, operator, values in _expressions(selector))


def wanted(selector: object) -> dict[str, str]:
    """Return labels that a selector asks for: its matchLabels, and what its expressions need to hold."""
    if not isinstance(selector, Mapping):
        return {}
    table = selector.get("matchLabels")
    found = {str(key): str(value) for key, value in table.items()} if isinstance(table, Mapping) else {}
    for key, operator, values in _expressions(selector):
        if operator == "In" and values and found.get(key) not in values:
            found[key] = values[0]
        elif operator == "Exists":
            found.setdefault(key, "true")
    return found


def _expressions(selector: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    listed = selector.get("matchExpressions")
    for one in listed if isinstance(listed, (list, tuple)) else ():
        if isinstance(one, Mapping):
            values = one.get("values")
            yield (str(one.get("key")), str(one.get("operator")),
                   [str(value) for value in values] if isinstance(values, (list, tuple)) else [])


def _holds(operator: str, values: list[str], label: str | None) -> bool:
    if operator == "In":
        return label in values
    if operator == "NotIn":
        return label not in values
    if operator == "Exists":
        return label is not None
    return operator == "DoesNotExist" and label is None
