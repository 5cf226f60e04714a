# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of the HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import describe
from .cards import STATES, WORDS, Card, Group, severity
from .hostnames import fold, natural
from .markup import Safe, join, linked, tag

_MARKS = {"blocked": "✖", "unread": "?", "change": "✎", "pending": "…", "ok": "✔"}


def hosts_word(number: int) -> str:
    """Return the number with its noun."""
    return f"{number} host" if number == 1 else f"{number} hosts"


def glance(cards: Sequence[Card]) -> Safe:
    """Return how many hosts are in which state, as tiles that filter when pressed."""
    counted: Counter[str] = Counter()
    for card in cards:
        counted[card.state] += len(card.hosts)
    tiles = [
        tag(
            "li",
            tag(
                "button",
                join([tag("b", counted[state]), tag("span", f"{_MARKS[state]} {WORDS[state]}")], " "),
                tag("small", meaning),
                type="button",
                disabled=True,
                data_state=state,
                aria_pressed="false",
            ),
            class_=f"state {state}" if counted[state] else "state none",
        )
        for state, meaning in STATES.items()
        if counted[state] or state != "unread"
    ]
    return tag("ul", *tiles, class_="tiles")


def filters(cards: Sequence[Card]) -> Safe:
    """Return the form that filters; hidden until the script shows it."""
    drivers = {card.subject("driver") for card in cards if card.plan}
    kernels = {card.subject("kernel") for card in cards if card.plan}
    fields = [
        tag("label", "Host", tag("input", type="search", name="host", placeholder="part of a name")),
        _select("Finding", "rule", (rule for card in cards for rule in card.rules)),
        _select("GPU", "gpu", (gpu for card in cards if card.plan for gpu in card.gpus)),
        _select("Driver", "driver", drivers),
        _select("Kernel", "kernel", kernels),
        _select("State", "state", (state for state in STATES if any(card.state == state for card in cards)), WORDS),
        tag("button", "Show all", type="reset"),
    ]
    return tag("form", *fields, id="filters", hidden=True, aria_label="Filter hosts and findings")


def _select(label: str, name: str, values: Iterable[str], words: Mapping[str, str] | None = None) -> Safe:
    distinct = list(dict.fromkeys(values))
    if words is None:
        distinct.sort(key=natural)
    options = [tag("option", "any", value="")]
    options += [tag("option", (words or {}).get(value, value), value=value) for value in distinct]
    return tag("label", label, tag("select", *options, name=name))


def findings(groups: Sequence[Group]) -> Safe:
    """Return all findings: what, why, the way out, the sources, and on which hosts."""
    if not groups:
        return tag("p", "No finding.")
    return join(_finding(group) for group in groups)


def _finding(group: Group) -> Safe:
    finding = group.thing
    level = severity(finding)
    sources = [tag("li", linked(source)) for source in finding.get("sources") or ()]
    parts = [
        tag("h3", join([_badge(level), tag("span", finding.get("rule")), finding.get("subject")], " ")),
        tag("p", linked(finding.get("summary") or "")),
        _pair("What to do", linked(finding.get("remedy") or "Nothing is known.")),
    ]
    if finding.get("waived"):
        parts.append(_pair("Waived", _waiver(finding["waived"])))
    parts.append(_pair("On", f"{hosts_word(len(group.hosts))}: {fold(group.hosts)}"))
    if sources:
        parts.append(_pair("Sources" if len(sources) > 1 else "Source", tag("ul", *sources)))
    return tag(
        "article", *parts, class_=f"finding {level}", data_rule=finding.get("rule"), data_cards=_numbers(group.cards)
    )


def _waiver(waived: Any) -> str:
    if isinstance(waived, Mapping):
        return ", ".join(f"{key}: {value}" for key, value in waived.items())
    return str(waived)


def waiting(groups: Sequence[Group]) -> Safe:
    """Return the changes that wait, by the variable that would allow them and by the hosts that they are on."""
    if not groups:
        return tag("p", "No change waits for leave.")
    by_leave: dict[str, dict[tuple[int, ...], list[Group]]] = {}
    for group in groups:
        same = by_leave.setdefault(str(group.thing.get("needs") or ""), {})
        same.setdefault(tuple(group.cards), []).append(group)
    return join(_leave(needs, same.values()) for needs, same in by_leave.items())


def _leave(needs: str, by_hosts: Iterable[Sequence[Group]]) -> Safe:
    title = join(["Allowed by ", tag("code", f"{needs}: true")]) if needs else "Waiting for another change"
    items = []
    for same in by_hosts:
        lines = describe.change_lines({**group.thing, "needs": None} for group in same)
        reasons = dict.fromkeys(str(group.thing["why"]) for group in same if group.thing.get("why"))
        items.append(
            tag(
                "li",
                tag("b", f"{hosts_word(len(same[0].hosts))}: {fold(same[0].hosts)}"),
                tag("ul", *(tag("li", line) for line in lines)),
                *(tag("p", reason, class_="quiet") for reason in reasons),
                data_cards=_numbers(same[0].cards),
            )
        )
    return tag("div", tag("h3", title), tag("ul", *items), class_="leave")


def hosts(cards: Sequence[Card]) -> Safe:
    """Return the hosts, those of one shape together, each with what is there, what is found and what would change."""
    return join((_card(card) for card in cards), "\n")


def _card(card: Card) -> Safe:
    parts = [
        tag("h3", join([_badge(card.state, f"{_MARKS[card.state]} {WORDS[card.state]}"), fold(card.hosts)], " ")),
        tag("p", hosts_word(len(card.hosts)), class_="count"),
    ]
    if card.plan:
        parts += [_there(card), _said(card)]
    else:
        parts.append(tag("p", "No facts in this run: the host did not answer, or failed before it was planned."))
    return tag(
        "article",
        *parts,
        class_=f"card {card.state}",
        id=f"card-{card.number}",
        data_hosts="\n".join(card.hosts),
        data_state=card.state,
        data_rule="\n".join(card.rules),
        data_gpu="\n".join(card.gpus) if card.plan else "",
        data_kernel=card.subject("kernel") if card.plan else "",
        data_driver=card.subject("driver") if card.plan else "",
    )


def _there(card: Card) -> Safe:
    names = {"gpus": "GPU", "os": "System", "kernel": "Kernel", "containerd": "containerd"}
    pairs = [(title, card.subject(key)) for key, title in names.items()]
    pairs.insert(3, ("Driver", describe.driver_movement(card.plan)))
    cuda = describe.cuda_line(card.plan)
    if cuda is not None:
        pairs.insert(4, ("CUDA", cuda))
    return tag("dl", *(tag("div", tag("dt", title), tag("dd", value)) for title, value in pairs))


def _said(card: Card) -> Safe:
    plan = card.plan
    lines = []
    for finding in [*describe.open_findings(plan), *(one for one in plan.get("findings") or () if one.get("waived"))]:
        level = severity(finding)
        said = f"{finding.get('rule')} {finding.get('subject')}: {finding.get('summary')}"
        remedy = finding.get("remedy")
        lines.append(
            tag(
                "li",
                join([_badge(level), linked(said)], " "),
                *((tag("span", "→ ", linked(remedy), class_="remedy"),) if remedy else ()),
            )
        )
    for label, changes in (("change", plan.get("changes")), ("pending", plan.get("pending"))):
        lines += [
            tag("li", join([_badge(label), line], " "))
            for line in describe.change_lines(changes or ())
        ]
    return tag("ul", *lines) if lines else tag("p", "Nothing to do, nothing to say.")


def ages(unchecked: Mapping[str, int], oldest: str | None, days: int) -> Safe:
    """Return how many rows of the matrix nobody has compared with their sources for longer than ``days``."""
    first = f" The oldest check is of {oldest}." if oldest else ""
    if not unchecked:
        return tag("p", f"Every row was held against its source within the last {days} days.{first}")
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", number)) for name, number in sorted(unchecked.items())]
    return join(
        [
            tag("p", f"These rows were not held against their source for more than {days} days.{first}"),
            tag(
                "table",
                tag("caption", "Old rows by section"),
                tag("thead", tag("tr", tag("th", "Section", scope="col"), tag("th", "Rows", scope="col"))),
                tag("tbody", *rows),
            ),
        ]
    )


def _badge(kind: str, word: str | None = None) -> Safe:
    return tag("span", word or kind, class_=f"badge {kind}")


def _pair(title: str, content: Any) -> Safe:
    return tag("div", tag("b", title), tag("div", content), class_="pair")


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))
