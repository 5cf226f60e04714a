# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a field of a row may hold: the checks behind the type annotations of ``rows.py``.

A field is annotated with one of the types below; the schema reads the annotation, so type, check and documentation
are one thing. A check takes the YAML value and returns the value to keep, or raises :class:`Refused` with what is
wrong and what is wanted.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from ..model import version as versions
from .ranges import DriverRange, KernelRange, RangeError


class Refused(ValueError):
    """A value that a field does not take; the message says what is wanted instead."""


@dataclass(frozen=True)
class Kind:
    """A named check, carried by ``typing.Annotated``."""

    name: str
    check: Callable[[Any], Any]


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, datetime.date)):
        raise Refused("a text is wanted")
    if not isinstance(value, str):
        raise Refused(f"{value!r} is {type(value).__name__} in YAML: quote it")
    if not value.strip():
        raise Refused("a text is wanted, not an empty one")
    return value


def _pattern(name: str, pattern: str, example: str) -> Kind:
    compiled = re.compile(pattern)

    def check(value: Any) -> str:
        text = _text(value)
        if not compiled.fullmatch(text):
            raise Refused(f"{text!r} is no {name}, such as {example}")
        return text

    return Kind(name, check)


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        raise Refused("a date without time is wanted, such as 2026-11-30")
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise Refused(f"{value!r} is no date, such as 2026-11-30") from None


def _range(kind: type[DriverRange] | type[KernelRange]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        text = _text(value)
        try:
            return kind.parse(text)
        except RangeError as error:
            raise Refused(str(error)) from None

    return check


def _kernel(value: Any) -> str:
    text = _text(value)
    if versions.KernelRelease.try_parse(text) is None:
        raise Refused(f"{text!r} is no kernel version or release, such as 6.12.97 or 6.1.0-50-amd64")
    return text


def _regex(value: Any) -> str:
    text = _text(value)
    try:
        re.compile(text)
    except re.error as error:
        raise Refused(f"{text!r} is no regular expression: {error}") from None
    return text


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused(f"{value!r} is no whole number")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refused(f"{value!r} is no number")
    return float(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused(f"{value!r} is neither true nor false")
    return value


Text = Annotated[str, Kind("text", _text)]
Integer = Annotated[int, Kind("whole number", _integer)]
Number = Annotated[float, Kind("number", _number)]
Flag = Annotated[bool, Kind("true or false", _bool)]
Date = Annotated[datetime.date, Kind("date", _date)]
Version = Annotated[str, _pattern("driver version", r"\d{2,3}\.\d+(?:\.\d+)*", "'580.95.05'")]
Floor = Annotated[str, _pattern("driver version or branch", r"\d{2,3}(?:\.\d+)*", "'580.65.06' or '580'")]
BranchName = Annotated[str, _pattern("driver branch", r"\d{2,3}", "'580'")]
Cuda = Annotated[str, _pattern("CUDA version", r"\d+\.\d+(?:\.\d+)?", "'12.4' or '12.4.1'")]
Dotted = Annotated[str, _pattern("version", r"v?\d+(?:\.\d+)*(?:[-+~.][0-9A-Za-z.~+-]+)?", "'1.19.1'")]
PciId = Annotated[str, _pattern("PCI id", r"[0-9a-f]{4}:[0-9a-f]{4}", "'10de:1eb8' (lower case)")]
Device = Annotated[str, _pattern("PCI device id", r"[0-9a-f]{4}", "'1eb8' (four hex digits, lower case)")]
Word = Annotated[str, _pattern("word", r"[A-Za-z0-9][A-Za-z0-9_.+-]*", "'nvidia-current'")]
Package = Annotated[
    str,
    _pattern("package name", r"[a-z0-9A-Z][a-zA-Z0-9.+_-]*(?:\{[a-z]+\}[a-zA-Z0-9.+_-]*)*", "'nvidia-driver-{branch}'"),
]
Fingerprint = Annotated[str, _pattern("key fingerprint", r"[0-9A-F]{40}", "40 hex digits, upper case, no spaces")]
KernelText = Annotated[str, Kind("kernel version", _kernel)]
Regex = Annotated[str, Kind("regular expression", _regex)]
Drivers = Annotated[DriverRange, Kind("driver range", _range(DriverRange))]
Kernels = Annotated[KernelRange, Kind("kernel range", _range(KernelRange))]
