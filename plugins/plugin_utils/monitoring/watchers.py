# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Prometheus objects of a cluster: where an object has to be, with which labels, so that one takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..model import chart, selectors

What = Literal["rule", "serviceMonitor"]


@dataclass(slots=True)
class Place:
    """Where a Prometheus takes an object from; namespace None: nowhere that is known, for the reason told."""

    namespace: str | None
    labels: dict[str, str] = field(default_factory=dict)
    namespace_labels: dict[str, str] = field(default_factory=dict)    # what the operator's namespace needs for it
    prometheus: str = ""
    why: str = ""


def place(prometheuses: Sequence[Mapping[str, Any]], what: What, namespace: str,
          labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> Place:
    """Return where to put a rule or ServiceMonitor with labels of its own, so that some Prometheus takes it.

    First choice is the operator's ``namespace`` as it is; then the Prometheus' own; then the operator's with more
    labels. A Prometheus without a selector takes none.
    """
    chosen: list[tuple[int, Place]] = []
    for one in prometheuses:
        spec = one.get("spec") if isinstance(one.get("spec"), Mapping) else {}
        selector = chart.at(spec, f"{what}Selector")
        if not isinstance(selector, Mapping):
            continue
        needed = {**labels, **selectors.wanted(selector)}
        if not selectors.matches(selector, needed):
            continue
        home = chart.text(one, "metadata.namespace")
        name = f"{home}/{chart.text(one, 'metadata.name') or chart.text(one, 'name')}"
        rank, found = _where(chart.at(spec, f"{what}NamespaceSelector"), namespace, home, namespace_labels)
        if found is not None:
            found.labels, found.prometheus = needed, name
            chosen.append((rank, found))
    if chosen:
        return min(chosen, key=lambda pair: pair[0])[1]
    why = (f"no Prometheus of the cluster has a {what}Selector that takes an object"
           if prometheuses else "the cluster has no Prometheus object")
    return Place(None, why=why)


def _where(selector: object, namespace: str, home: str | None,
           namespace_labels: Mapping[str, str]) -> tuple[int, Place | None]:
    if not isinstance(selector, Mapping):    # absent: its own namespace alone
        return (0, Place(namespace)) if home == namespace else (1, Place(home) if home else None)
    known = {"kubernetes.io/metadata.name": namespace, **namespace_labels}
    if selectors.matches(selector, known):
        return 0, Place(namespace)
    extra = {key: value for key, value in selectors.wanted(selector).items() if key not in known}
    if extra and selectors.matches(selector, {**known, **extra}):
        return 2, Place(namespace, namespace_labels=extra)
    return 3, None
