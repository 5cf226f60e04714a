# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What we set in a file, kept in the state file with what stood there before, for the way back."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..state import Store


def note(store: Store, path: str, there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Keep the settings that change, before they do. What stood there before our first change is what comes back."""
    def change(data: dict[str, Any]) -> None:
        known = data["configured"].setdefault(path, {"sets": [], "imports": [], "version": False})
        for name, value in wanted.items():
            former = next((one for one in known["sets"] if one["path"] == [name]), None)
            if former is not None and there.get(name) == former["after"]:
                former["after"] = value
            elif there.get(name) != value:
                known["sets"] = [one for one in known["sets"] if one is not former]
                entry = {"path": [name], "before": there.get(name), "there": name in there, "after": value}
                known["sets"].append(entry)
        if not known["sets"]:
            del data["configured"][path]

    store.update(change)


def taken_back(store: Store, path: str, there: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that bring back what stood there; those that somebody changed since are left out. None: not set."""
    sets = store.read()["configured"].get(path, {}).get("sets", [])
    return {one["path"][0]: one["before"] if one["there"] else None for one in sets
            if there.get(one["path"][0]) == one["after"]}


def forget(store: Store, path: str) -> None:
    """Nothing of ours is in the file any more."""
    store.update(lambda data: data["configured"].pop(path, None))
