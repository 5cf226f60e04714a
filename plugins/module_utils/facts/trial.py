# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a trial boot has come: what was armed (state file) and what the units on the host wrote about it."""

from __future__ import annotations

from typing import Any

from .. import state as store
from ..managed_files import STATE_FILE, TRIAL_RESULT
from .tree import Tree

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
PHASES = ("armed", "booted", "healthy", "failed")


def read(tree: Tree) -> dict[str, Any] | None:
    """``{release, phase, since, reason}`` of the open trial, None without one. Raises OSError, ValueError."""
    if not tree.exists(STATE_FILE):
        tree.names(STATE_FILE.rsplit("/", 1)[0])    # a directory that may not be entered hides the file
        return None
    try:
        data = store.read(tree.real(STATE_FILE))
    except store.StateError as error:
        raise ValueError(str(error)) from error
    armed = data.get("trial") if data else None
    if not armed:
        return None
    return phase_of(armed, result(tree.text(TRIAL_RESULT, 65536)), tree.text(_BOOT_ID, 128))


def result(text: str | None) -> dict[str, str]:
    """The lines KEY=value that the units write."""
    rows = (line.partition("=") for line in (text or "").splitlines())
    return {key.strip(): value.strip() for key, mark, value in rows if mark}


def phase_of(armed: dict[str, Any], said: dict[str, str], boot_id: str | None) -> dict[str, Any]:
    """Where the trial ``armed`` stands, by what the units said about it (nothing, if that is about another one)."""
    release = armed["release"]
    found = {"release": release, "phase": "armed", "since": armed["at"], "reason": None}
    seen_in = armed.get("boot_id")
    if said.get("AT") == armed["at"] and said.get("PHASE") in PHASES:
        found.update(phase=said["PHASE"], since=said.get("SINCE") or armed["at"], reason=said.get("REASON") or None)
        seen_in = said.get("BOOT_ID") or seen_in
    if found["phase"] != "failed" and boot_id and seen_in and boot_id != seen_in:
        found.update(phase="failed", reason=f"the host restarted while the trial of {release} was {found['phase']}, "
                                            "and its unit did not say how that went")
    return found
