# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plans of a fleet as one HTML page that needs nothing else: no network, no other file, no script to be read.

The page carries a content security policy that allows its own style and script by their digest and nothing more: text
that came from a host can neither run nor fetch anything, even if it got past the escaping.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from . import cards, heatmap, html_sections
from .markup import Safe, join, tag, text

_HERE = pathlib.Path(__file__).parent


def render(
    plans: Mapping[str, Mapping[str, Any]],
    unread: Iterable[str] = (),
    about: Mapping[str, Any] | None = None,
    matrix_age: Mapping[str, Any] | None = None,
) -> str:
    """Return the page.

    ``about``: ``title``, ``written`` (UTC), ``run_id``; each may be missing. ``matrix_age``: ``days``, ``unchecked``
    (rows by section that are older), ``oldest``; left out when the caller has no matrix.
    """
    about = about or {}
    style, script = _file("page.css"), _file("page.js")
    found = cards.cards(plans, unread)
    title = str(about.get("title") or "Plan")
    content = [
        ("glance", "Fleet at a glance", html_sections.glance(found)),
        ("heat", "Kernel and driver", heatmap.render(found)),
        ("findings", "Findings", html_sections.findings(cards.findings(found))),
        ("pending", "Changes that wait for leave", html_sections.waiting(cards.waiting(found))),
        ("hosts", "Hosts", html_sections.hosts(found)),
    ]
    if matrix_age:
        ages = html_sections.ages(matrix_age["unchecked"], matrix_age.get("oldest"), matrix_age["days"])
        content.append(("matrix", "Age of the compatibility matrix", ages))
    sections = {name: tag("section", tag("h2", head), body, id=name) for name, head, body in content}
    total = sum(len(card.hosts) for card in found)
    status = tag("p", f"All {html_sections.hosts_word(total)}.", id="status", role="status", data_total=total)
    filters = join([html_sections.filters(found), status])
    order = [sections.pop("glance"), sections.pop("heat"), filters, *sections.values()]
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            '<link rel="icon" href="data:,">',
            tag("title", f"{title}: {_in_short(found)}"),
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            tag("header", tag("h1", f"GPU hosts: {title}"), _written(about)),
            '<main id="main">',
            *order,
            "</main>",
            f"<script>{script}</script>",
            "</body>",
            "</html>\n",
        )
    )


def _in_short(found: Iterable[cards.Card]) -> str:
    counted: dict[str, int] = dict.fromkeys(cards.STATES, 0)
    for card in found:
        counted[card.state] += len(card.hosts)
    return ", ".join(f"{number} {cards.WORDS[state]}" for state, number in counted.items() if number) or "no host"


def _written(about: Mapping[str, Any]) -> Safe:
    parts = []
    if about.get("written"):
        parts.append(join(["written ", tag("time", about["written"], datetime=about["written"])]))
    if about.get("run_id"):
        parts.append(text(f"run {about['run_id']}"))
    return tag("p", join(["baremetal.nvidia", *parts], ", "))


@functools.cache
def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8").strip() + "\n"


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
