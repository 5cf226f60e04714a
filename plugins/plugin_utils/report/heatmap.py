# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The heat map of the page: kernels down, drivers across, how many hosts and how they fare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .cards import STATES, WORDS, Card, worst
from .hostnames import natural
from .markup import Safe, join, tag

#: With more columns than fit on paper, paper shows each kernel with its drivers below.
ON_PAPER = 6
CAPTION = "Hosts by kernel and driver; the colour and the first word are the worst state in the cell"


def render(cards: Sequence[Card]) -> Safe:
    """Return the table; a cell has the number of hosts, its worst state as word and colour, and all states counted."""
    cells: dict[tuple[str, str], Counter[str]] = {}
    for card in cards:
        if card.plan:
            key = card.subject("kernel"), card.subject("driver")
            cells.setdefault(key, Counter())[card.state] += len(card.hosts)
    if not cells:
        return tag("p", "No host could be read.")
    kernels = sorted({kernel for kernel, _driver in cells}, key=natural)
    drivers = sorted({driver for _kernel, driver in cells}, key=natural)
    head = tag(
        "tr",
        tag("th", "Kernel \\ driver", scope="col"),
        *(tag("th", driver, scope="col") for driver in drivers),
    )
    rows = [
        tag(
            "tr",
            tag("th", kernel, scope="row"),
            *(_cell(kernel, driver, cells.get((kernel, driver))) for driver in drivers),
        )
        for kernel in kernels
    ]
    table = tag(
        "table",
        tag("caption", tag("span", CAPTION)),
        tag("thead", head),
        tag("tbody", *rows),
        class_="heat many" if len(drivers) > ON_PAPER else "heat",
    )
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_label="Kernel and driver heat map")


def _cell(kernel: str, driver: str, counted: Counter[str] | None) -> Safe:
    if not counted:
        return tag("td", tag("span", "\N{EN DASH}", class_="quiet"))
    state = worst(counted)
    number = sum(counted.values())
    others = ", ".join(f"{counted[name]} {WORDS[name]}" for name in STATES if counted[name])
    label = others if len(counted) > 1 else WORDS[state]
    content = join([tag("b", number), tag("span", label)], " ")
    button = tag(
        "button", content, type="button", disabled=True, data_kernel=kernel, data_driver=driver, aria_pressed="false"
    )
    return tag("td", button, class_=f"state {state}", data_head=driver)
