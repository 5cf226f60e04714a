# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet as the HTML page shows it: hosts of one shape, what they are filtered by, findings, what waits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import describe, fleet
from .hostnames import natural

#: What a host can be, worst first, with what it means.
STATES: Mapping[str, str] = {
    "blocked": "an error stands in the way; nothing is changed",
    "unread": "no facts in this run",
    "change": "something differs from the plan",
    "pending": "as planned, but changes wait for leave",
    "ok": "as planned",
}
WORDS: Mapping[str, str] = {**{state: state for state in STATES}, "unread": "not read"}
UNKNOWN = "unknown"
_COUNT = re.compile(r"[0-9]+ x ")


@dataclass(frozen=True)
class Card:
    """Hosts whose plans say the same."""

    number: int
    hosts: tuple[str, ...]
    state: str
    plan: Mapping[str, Any]

    def subject(self, key: str) -> str:
        """Return gpus, os, kernel, driver or containerd as text."""
        value = (self.plan.get("subject") or {}).get(key)
        return str(value) if value else ("none" if key == "driver" and self.plan else UNKNOWN)

    @property
    def gpus(self) -> list[str]:
        """The names of the GPUs, each once and without their number."""
        return sorted({_COUNT.sub("", part, count=1) for part in self.subject("gpus").split(", ")})

    @property
    def rules(self) -> list[str]:
        """The rules that have something to say here, waived ones too."""
        return sorted({str(item.get("rule")) for item in self.plan.get("findings") or ()})


@dataclass
class Group:
    """Something that is the same on many hosts: the thing, and the numbers of the cards that have it."""

    thing: Mapping[str, Any]
    cards: list[int]
    hosts: list[str]


def cards(plans: Mapping[str, Mapping[str, Any]], unread: Iterable[str] = ()) -> list[Card]:
    """Return the fleet folded, worst first; hosts without a plan are one card of the state unread."""
    found = [(state(shape.plan), shape.hosts, shape.plan) for shape in fleet.shapes(plans)]
    lost = tuple(sorted(set(unread), key=natural))
    if lost:
        found.append(("unread", lost, {}))
    order = list(STATES)
    found.sort(key=lambda item: (order.index(item[0]), natural(item[1][0])))
    return [Card(number, hosts, word, plan) for number, (word, hosts, plan) in enumerate(found)]


def state(plan: Mapping[str, Any]) -> str:
    """Return the verdict, with a word of its own for hosts that are ok but for changes that wait."""
    verdict = str(plan.get("verdict"))
    if verdict == "ok" and plan.get("pending"):
        return "pending"
    return verdict if verdict in ("ok", "change") else "blocked"


def worst(states: Iterable[str]) -> str:
    """Return the state that needs someone most."""
    return min(states, key=list(STATES).index)


def findings(of: Iterable[Card]) -> list[Group]:
    """Return the findings of all hosts, the same ones once: errors first, then by rule."""
    order = [*describe.SEVERITIES, "waived"]
    groups = _grouped((card, item) for card in of for item in card.plan.get("findings") or ())
    return sorted(groups, key=lambda group: (order.index(severity(group.thing)), str(group.thing.get("rule"))))


def severity(finding: Mapping[str, Any]) -> str:
    """Return error, warning, info or waived."""
    if finding.get("waived"):
        return "waived"
    word = str(finding.get("severity"))
    return word if word in describe.SEVERITIES else "info"


def waiting(of: Iterable[Card]) -> list[Group]:
    """Return the changes that wait for leave, the same ones once, by the variable that allows them."""
    groups = _grouped((card, item) for card in of for item in card.plan.get("pending") or ())
    return sorted(groups, key=lambda group: str(group.thing.get("needs")))


def _grouped(things: Iterable[tuple[Card, Mapping[str, Any]]]) -> list[Group]:
    groups: dict[str, Group] = {}
    for card, thing in things:
        group = groups.setdefault(json.dumps(thing, sort_keys=True, default=str), Group(thing, [], []))
        if card.number not in group.cards:
            group.cards.append(card.number)
            group.hosts += card.hosts
    return list(groups.values())
