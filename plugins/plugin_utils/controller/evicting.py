# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the eviction of a node's pods has come, over several looks, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Progress:
    """What the looks at one node said; each is the result of the module baremetal.nvidia.cluster_evict."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.asked = False
        self.users: list[str] = []    # of all looks
        self.left: list[str] = []
        self.refused: list[str] = []
        self.blocked: dict[str, str] = {}
        self.evicted: list[str] = []

    def saw(self, look: Mapping[str, Any]) -> None:
        """Take in a look."""
        self.asked = True
        self.left = list(look["users"])
        self.refused, self.blocked = list(look["refused"]), dict(look["blocked"])
        self.users += [name for name in self.left if name not in self.users]
        self.evicted += [name for name in look["evicted"] if name not in self.evicted]

    def result(self) -> dict[str, Any]:
        """Return the whole of it for the task's result."""
        return {"changed": bool(self.evicted), "users": self.users, "evicted": self.evicted, "refused": self.refused,
                "blocked": self.blocked}

    def words(self) -> str:
        """Say what stands in the way: pods that may not be evicted, budgets, or pods that take their time to end."""
        gone = [name for name in self.evicted if name not in self.left]
        done = f"evicted from {self.node} so far: {', '.join(gone)}" if gone else f"no pod of {self.node} was evicted"
        if self.refused:
            return f"{'; '.join(self.refused)} ({done})"
        ends = [name for name in self.left if name not in self.blocked]
        held = [f"{name} is held by a PodDisruptionBudget: {words}" for name, words in sorted(self.blocked.items())]
        held += [f"{', '.join(ends)} {'ends' if len(ends) == 1 else 'end'}"] if ends else []
        return f"{'; '.join(held)} ({done})"
