# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs by the names that people use: H100, "A100 80GB", rtx5090."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

_PCI = re.compile(r"10de:[0-9a-f]{4}\Z", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+[0-9]+[a-z]*|[0-9]+[a-z]*|[a-z]+")
#: Words that say nothing about which card it is.
_FILLERS = frozenset(("nvidia", "geforce", "tesla", "quadro"))
NEAREST = 5


class UnknownGpu(ValueError):
    """A name that no card has; the message names the nearest ones."""


def find(matrix: Any, name: str) -> tuple[Any, ...]:
    """Return the products that a PCI id or a name means: those with all words of the name in theirs, the cards that
    drivers' lists know before others; where these are of several architectures, those of that very name.

    Raises UnknownGpu for a name without a card, and for an id that is none of NVIDIA's.
    """
    given = name.strip()
    if ":" in given:
        if not _PCI.match(given):
            raise UnknownGpu(f"{name!r} is no PCI id of NVIDIA; such as 10de:2330 (lspci -nn shows it)")
        product = matrix.product(given.lower())
        if product is None:
            raise UnknownGpu(f"no list knows the PCI id {given}")
        return (product,)
    known = list(matrix.devices.by_id.values())
    wanted = words(given) - _FILLERS or words(given)
    fitting = [one for one in known if wanted and wanted <= words(one.name)]
    found = [one for one in fitting if one.known] or fitting
    if len({one.architecture for one in found}) > 1:
        exact = [one for one in found if words(one.name) - _FILLERS == wanted]
        found = exact or found
    if found:
        return tuple(sorted(found, key=lambda one: str(one.id)))
    near = nearest(given, known)
    hint = "a name such as H100 or a PCI id such as 10de:2330 is needed"
    if near:
        hint = f"the nearest are {', '.join(near)}"
    raise UnknownGpu(f"no GPU is called {name!r}; {hint}")


def nearest(name: str, known: Iterable[Any]) -> list[str]:
    """Return the names that the given one is most like, best first; cards that drivers' lists know come first."""
    wanted = "".join(sorted(words(name) - _FILLERS)) or name.lower()
    rated = []
    for title in dict.fromkeys(one.name for one in sorted(known, key=lambda one: (not one.known, one.name))):
        rate = max(
            (difflib.SequenceMatcher(None, wanted, word).ratio() for word in [*words(title), _squeezed(title)]),
            default=0.0,
        )
        rated.append((rate, title))
    rated.sort(key=lambda item: -item[0])
    return [title for rate, title in rated[:NEAREST] if rate >= 0.6]


def words(name: str) -> frozenset[str]:
    """Return the words of a name: ``Tesla V100-SXM2-16GB`` → tesla, v100, sxm2, 16gb; ``rtx5090`` → rtx, 5090."""
    found: set[str] = set()
    for word in _WORD.findall(name.lower()):
        found.update(re.findall(r"[a-z]{3,}|[0-9]+", word) if re.match(r"(rtx|gtx)[0-9]", word) else (word,))
    return frozenset(found)


def _squeezed(title: str) -> str:
    return re.sub(r"[^a-z0-9]", "", title.lower())
