# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One kernel that could come, and how those of a host are put in order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .kernel import natural
from .tree import Tree

MOST = 3
_STATE = "/var/lib/baremetal-nvidia/state.json"


@dataclass
class Candidate:
    """A kernel release and the packages that bring it.

    ``security`` is None where nothing tells it; ``modules`` are the ready modules for it, None where that is not known:
    with zypper the KMPs that fit it and their versions, with apt packages, their versions and the driver of each.
    ``since`` and ``cves``: when its security advisory was issued, and what it fixes.
    """

    release: str
    packages: dict[str, str] = field(default_factory=dict)
    security: bool | None = None
    origin: str | None = None
    modules: dict[str, Any] | None = None
    since: str | None = None
    cves: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The fact."""
        row: dict[str, Any] = {
            "release": self.release,
            "packages": dict(sorted(self.packages.items())),
            "security": self.security,
            "origin": self.origin,
        }
        if self.since is not None:
            row.update(since=self.since, cves=self.cves)
        if self.modules is not None:
            row["modules"] = dict(sorted(self.modules.items()))
        return row


def newest(found: Iterable[Candidate], kept: set[str]) -> list[dict[str, Any]]:
    """The newest few, the newest first; without those that a person holds back (``kept``: names).

    A kernel brings the fixes of the ones before it: it is a security update when one of them is.
    """
    rows = sorted((one for one in found if not kept & set(one.packages)), key=lambda one: natural(one.release))
    secure = False
    for one in rows:
        secure = secure or one.security is True
        one.security = True if secure else one.security
    return [one.row() for one in reversed(rows)][:MOST]


def coming(known: dict[str, Any]) -> set[str]:
    """Releases of the candidates that were read before: what is offered for them matters as for installed kernels."""
    return {row["release"] for row in known.get("kernel", {}).get("candidates") or []}


def ours(tree: Tree, section: str) -> set[str]:
    """Names that our state file has in a section, over all sets. Raises OSError."""
    return {name for by_name in _sets(tree, section) for name in by_name if isinstance(name, str)}


def ours_in_files(tree: Tree) -> dict[str, set[str]]:
    """Path of a lock file → the entries in it that are ours. Raises OSError."""
    found: dict[str, set[str]] = {}
    for by_path in _sets(tree, "locks"):
        for path, entries in by_path.items() if isinstance(by_path, dict) else ():
            found.setdefault(path, set()).update(entry for entry in entries if isinstance(entry, str))
    return found


def _sets(tree: Tree, section: str) -> list[Any]:
    """A damaged state file has nothing that is ours: what is held then counts as a person's."""
    text = tree.text(_STATE, 1024 * 1024)
    if text is None:
        return []
    try:
        data = json.loads(text).get(section)
    except (ValueError, AttributeError):
        return []
    return list(data.values()) if isinstance(data, dict) else []
