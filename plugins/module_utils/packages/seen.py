# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when a held kernel package has a newer version on offer.

apt's lists say no dates. So the day on which a newer version was first seen is written down, whenever lists are
fetched.
"""
from __future__ import annotations

from ..state import State, Store, stamp
from .base import PackageManager

SET = "kernel"


def note(store: Store, manager: PackageManager) -> None:
    """Write down what is newly on offer for kernel packages that we hold; forget what moved. Raises HostError."""
    names = sorted(store.read()["holds"].get(SET, {}))
    if not names or manager.name != "apt":  # dnf and zypper have advisories, with their dates
        return
    installed = manager.installed()
    held = {name: installed[name][0].version for name in names if name in installed}
    offered = {name: version for name, version in manager.candidates(held).items()
               if version is not None and version != held.get(name)}
    known = store.read()["seen"]
    now = {name: known[name] if known.get(name, {}).get("held") == held[name] else
           {"held": held[name], "version": version, "at": stamp(store.clock())} for name, version in offered.items()}
    if now != known:
        store.update(lambda state: _set(state, now))


def _set(state: State, seen: dict[str, dict[str, str]]) -> None:
    state["seen"] = seen
