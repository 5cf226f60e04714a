# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take Ansible's tagged and lazy types apart, once, at the edge.

Since ansible-core 2.19 every value that came through a template or a variable file may be an instance of a subclass
that carries tags (origin, trust). They compare like their base types but pickle, print and serialise differently, so
nothing behind the edge may meet one.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from typing import Any


class EdgeError(ValueError):
    """A value that cannot be data: names the path and the type."""


def plain(value: Any, path: str = "value") -> Any:
    """Return ``value`` as exact builtin types (dict, list, str, int, float, bool, None, date, datetime).

    Sets and tuples become lists. Raises EdgeError for anything else, naming where it stands.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Mapping):
        return {plain(key, path): plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, datetime.datetime):
        return datetime.datetime(
            value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.tzinfo
        )
    if isinstance(value, datetime.date):
        return datetime.date(value.year, value.month, value.day)
    if isinstance(value, (bytes, bytearray)):
        raise EdgeError(f"{path} is bytes; text is needed")
    if isinstance(value, (Sequence, Set)):
        return [plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    raise EdgeError(f"{path} is a {type(value).__name__}; only text, numbers, booleans, lists and mappings are data")


def plain_json(value: Any) -> tuple[Any, str]:
    """Return (exact builtin copy, digest) of a JSON-like value; several times faster than plain() on large facts.

    Raises EdgeError when the value holds something JSON has no form for.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError):
        text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), default=_date_text)
    return json.loads(text), sha(text)


def digest(value: Any) -> str:
    """Return the sha256 of plain data, the same for equal data whatever the order of its keys."""
    return sha(json.dumps(value, sort_keys=True, separators=(",", ":"), default=_date_text))


def sha(text: str) -> str:
    """Return the sha256 of a text, as hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _date_text(value: Any) -> str:
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not data")
