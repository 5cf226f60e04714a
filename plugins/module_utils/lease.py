# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease that keeps two runs on one host apart: pure functions over the lease entry of the state file."""
from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import HostError

TTL = 3600    # seconds; longer than the longest single step, a module build on a slow host


class LeaseHeld(HostError):
    """Another run has the lease; the message names it, since when, and the way out. ``lease`` is its entry."""

    def __init__(self, message: str, lease: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.lease = dict(lease)


@dataclass(frozen=True)
class Outcome:
    """What became of a request. ``here``: taken by this call. ``took_over``: the run whose stale lease was replaced."""

    here: bool
    took_over: str | None = None
    note: str | None = None


def _text(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _stale(current: Mapping[str, Any], now: float) -> str | None:
    """Why the lease no longer counts, or None while it does."""
    if now >= current["expires"]:
        return f"it expired at {_text(current['expires'])}"
    if now + 60 < current["renewed"]:
        return f"it was renewed at {_text(current['renewed'])}, in this host's future: the clock went back"
    return None


def _refuse(current: Mapping[str, Any], now: float) -> LeaseHeld:
    return LeaseHeld(
        f"run {current['run_id']} is changing this host: it took the lease at {_text(current['acquired'])}, renewed "
        f"it {int(now - current['renewed'])} s ago, and it expires at {_text(current['expires'])}. Wait for that run "
        "to end. If it is dead, wait until the lease expires or take it with host_lease state=acquired force=true",
        current)


def look(current: Mapping[str, Any] | None, now: float) -> Outcome:
    """See that nobody else has the lease. Raises LeaseHeld."""
    if current is not None and _stale(current, now) is None:
        raise _refuse(current, now)
    return Outcome(here=False)


def take(current: Mapping[str, Any] | None, run_id: str, now: float, ttl: int = TTL, force: bool = False,
         holder: str | None = None, dead: str | None = None) -> tuple[dict[str, Any], Outcome]:
    """The lease entry after ``run_id`` took or renewed it for ``ttl`` seconds. Raises LeaseHeld.

    ``holder`` says where the run is at home, so that others can see whether it lives; ``dead`` names one that does not.
    A renewal within the first fifth of the time to live leaves the entry as it is, so that it costs no write.
    """
    if current is not None and current["run_id"] == run_id and current["expires"] > now:
        if 0 <= now - current["renewed"] < ttl / 5 and current["expires"] >= now + ttl * 4 / 5:
            return dict(current), Outcome(here=False)
        return {**current, "renewed": now, "expires": now + ttl}, Outcome(here=False)
    fresh: dict[str, Any] = {"run_id": run_id, "acquired": now, "renewed": now, "expires": now + ttl}
    if holder:
        fresh["holder"] = holder
    if current is None:
        return fresh, Outcome(here=True)
    if current["run_id"] == run_id:
        return fresh, Outcome(here=True, note=f"the lease of this run had expired at {_text(current['expires'])}")
    why = _stale(current, now)
    if why is None and dead == current["run_id"]:
        why = "that run was cut off, its process is gone"
    if why is None and not force:
        raise _refuse(current, now)
    why = why or "force was given"
    if current.get("doing"):
        why += f". It was at: {current['doing']}; this run finishes that"
    return fresh, Outcome(here=True, took_over=current["run_id"],
                          note=f"took over the lease of run {current['run_id']}: {why}")
