# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the policy from a host's variables, and catch the misspelt ones.

A policy variable that is spelt wrong would otherwise be ignored in silence and the default taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

PREFIX = "gpu_"


class UnknownVariable(ValueError):
    """A variable that looks like a misspelt one of ours; the message names it, its value and the nearest name."""


def collect(
    variables: Mapping[str, Any], known: Collection[str], template: Callable[[str, Any], Any]
) -> dict[str, Any]:
    """Return the templated values of the policy variables that are set.

    ``template(name, value)`` gets only values of known names: facts and other people's variables are never evaluated.
    """
    return {name: template(name, variables[name]) for name in known if name in variables}


def refuse_misspelt(variables: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise UnknownVariable for the first variable that is nearly, but not quite, one of ``known``."""
    names = frozenset(known)
    for name in variables:
        if not name.startswith(PREFIX) or name in names:
            continue
        near = nearest(name, names)
        if near is not None:
            raise UnknownVariable(
                f"unknown variable {name} (value {variables[name]!r}): did you mean {near}? "
                f"A variable of your own needs a name that is further from it."
            )


def refuse_unknown(given: Any, known: Collection[str]) -> None:
    """Raise UnknownVariable for a key of an explicit policy mapping that is no policy variable."""
    if not isinstance(given, Mapping):
        raise UnknownVariable(f"policy is a {type(given).__name__}; a mapping of policy variables is needed")
    for name in given:
        if name not in known:
            near = nearest(str(name), known)
            hint = f"did you mean {near}?" if near else f"allowed are {', '.join(sorted(known))}."
            raise UnknownVariable(f"policy has the unknown key {name} (value {given[name]!r}): {hint}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` is probably meant to be, or None.

    Near means: the same letters but for underscores, case and order of words, or at most two letters wrong
    (one in a short name).
    """
    words = _words(name)
    best: tuple[int, str] | None = None
    for candidate in sorted(known):
        if _words(candidate) == words or _squeezed(candidate) == _squeezed(name):
            return candidate
        allowed = 2 if len(candidate) - len(PREFIX) >= 8 else 1
        distance = _distance(name, candidate, allowed)
        if distance <= allowed and (best is None or distance < best[0]):
            best = (distance, candidate)
    return best[1] if best else None


def _words(name: str) -> list[str]:
    return sorted(name.lower().split("_"))


def _squeezed(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _distance(left: str, right: str, limit: int) -> int:
    """Return the edit distance (swaps of neighbours count one), or limit + 1 as soon as it is more than ``limit``."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row = row, [i]
        for j, b in enumerate(right, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before = previous
    return row[-1]
