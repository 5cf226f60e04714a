# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits on a GPU by MIG: slices of compute and memory, and layouts in the words of mig-parted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..model.facts import each
from ..model.sharing import BALANCED, Group
from .context import Card, Context

_PROFILE = re.compile(r"([0-9]+)g\.([0-9]+)gb(.*)\Z")


def rows(context: Context) -> list[tuple[Card, Any]]:
    """Return the cards with their MIG row, None for a card that has none."""
    found = []
    for card in each(context.cards):
        name = getattr(card.product, "mig", None)
        found.append((card, context.matrix.mig(name) if isinstance(name, str) else None))
    return found


def slices(row: Any, profile: str) -> tuple[int, int] | None:
    """Return the slices of compute and memory that a profile takes; None where the row does not tell."""
    unit = min((int(found.group(2)) for one in row.profiles or () if (found := _PROFILE.match(one))), default=None)
    found = _PROFILE.match(profile)
    if unit is None or found is None:
        return None
    return int(found.group(1)), round(int(found.group(2)) / unit)


def room(row: Any) -> tuple[int, int]:
    """Return how many slices of compute and memory a GPU has: 7 of compute go with 8 of memory."""
    return row.max_instances, 8 if row.max_instances == 7 else row.max_instances


def most(row: Any, profile: str) -> int:
    """Return how many instances of a profile a GPU holds; 0 where it does not have it."""
    taken = slices(row, profile)
    if taken is None or profile not in (row.profiles or ()):
        return 0
    if "+me" in profile:    # the engines for video go to one instance
        return 1
    compute, memory = room(row)
    return min(compute // taken[0], memory // taken[1])


def fits(row: Any, counts: Mapping[str, int]) -> bool:
    """Say whether a GPU holds these instances at once."""
    taken = [(slices(row, profile) or (99, 99), count) for profile, count in counts.items()]
    compute, memory = room(row)
    return (sum(one[0] * count for one, count in taken) <= compute
            and sum(one[1] * count for one, count in taken) <= memory
            and all(count <= most(row, profile) for profile, count in counts.items()))


def entries(context: Context, group: Group) -> dict[str, list[dict[str, Any]]]:
    """Return a group's layout for the host's kinds of GPUs, by its name, as mig-parted reads it."""
    kinds = {str(card.gpu.id): row for card, row in rows(context) if row is not None and isinstance(card.gpu.id, str)}
    made = []
    for ident, row in sorted(kinds.items()):
        counts = dict(group.mig_profile) if isinstance(group.mig_profile, Mapping) else {
            profile: most(row, profile) for profile in group.profiles}
        if counts and all(counts.values()):
            vendor, device = ident.upper().split(":")
            made.append({"device-filter": [f"0x{device}{vendor}"], "devices": "all", "mig-enabled": True,
                         "mig-devices": counts})
    return {name(group): made} if made else {}


def name(group: Group) -> str:
    """Return the name of a group's layout: one of MIG manager's own where each GPU gets one profile."""
    if isinstance(group.mig_profile, Mapping):
        return group.key
    if group.mig_profile == BALANCED:
        return "all-balanced"
    return f"all-{group.mig_profile}".replace("+", ".")
