# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small pieces of HTML; whatever comes from a host or a person goes through here and is text, never markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

_ADDRESS = re.compile(r"https?://[^\s<>\"'()\[\]{}]+")
#: Characters that no text of ours needs and that browsers, terminals or readers take for something else.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_EMPTY = frozenset(("br", "input"))


class Safe(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: Any) -> Safe:
    """Return a value as HTML text, fit for content and for attributes in quotes; Safe text as it is."""
    if isinstance(value, Safe):
        return value
    return Safe(html.escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True))


def tag(element: str, /, *content: Any, **attributes: Any) -> Safe:
    """Return an element: content is escaped unless it is Safe; attributes that are None or False are left out.

    ``_`` in an attribute's name stands for ``-``, one at its end for nothing (``class_``).
    """
    start = f"<{element}{_attributes(attributes)}>"
    return Safe(start if element in _EMPTY else f"{start}{join(content)}</{element}>")


def join(content: Iterable[Any], between: str = "") -> Safe:
    """Return contents one after the other, each escaped unless it is Safe."""
    return Safe(between.join(text(item) for item in content))


def linked(value: Any) -> Safe:
    """Return a text in which web addresses are links; nothing but http and https becomes one."""
    given = str(value)
    parts: list[Safe] = []
    end = 0
    for match in _ADDRESS.finditer(given):
        address = match[0].rstrip(".,;:!?")
        parts += [text(given[end : match.start()]), tag("a", address, href=address, rel="noreferrer")]
        end = match.start() + len(address)
    return join([*parts, text(given[end:])])


def _attributes(attributes: dict[str, Any]) -> str:
    parts = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        shown = name.rstrip("_").replace("_", "-")
        parts.append(f" {shown}" if value is True else f' {shown}="{text(value)}"')
    return "".join(parts)
