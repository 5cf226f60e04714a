# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection remembers on a host: proved kernels, its own holds, an open transaction, backups, the lease.

One JSON file, ``/var/lib/baremetal-nvidia/state.json``, for root alone, replaced atomically under a lock, versioned.

.. code-block:: yaml

    version: 1
    proved_kernels: {6.1.0-50-amd64: {driver: 535.261.03, flavour: open, at: "2026-11-30T04:00:00Z", ...}}
    holds: {kernel: {linux-image-amd64: {why: "...", at: "..."}}}    # by set; only holds that are ours
    denied: {kernel: [linux-image-rt-amd64]}                         # by set; names blocked by apt preferences
    locks: {kernel: {/etc/zypp/locks: [kernel-default]}}             # by set and file; of ours where people write too
    manual: {kernel: [linux-image-6.1.0-50-amd64]}                   # marks that are ours, taken back on release
    backups: [{path: ..., backup: ..., at: ...}]
    configured: {/etc/containerd/config.toml: {sets: [{path: [...], before: ..., after: ..., there: true}], ...}}
    seen: {linux-image-amd64: {held: 6.1.170-3, version: 6.1.176-1, at: "..."}}    # held, and first seen
    environments: {/opt/torch: {dist: torch, requirements: [...], index_url: ..., building: false}}    # Python
    open: {run_id: ..., role: ..., what: ..., at: ..., steps: [{name: ..., at: ...}]}    # or null
    trial: {release: ..., former: ..., entry: ..., at: ..., boot_id: ..., ...}    # or null
    lease: {run_id: ..., acquired: 0.0, renewed: 0.0, expires: 0.0, holder: ..., doing: ...}    # or null; epoch seconds
"""
from __future__ import annotations

import contextlib
import copy
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from . import atomic, lease
from .errors import HostError

DIRECTORY = "/var/lib/baremetal-nvidia"
PATH = DIRECTORY + "/state.json"
VERSION = 1
State = dict[str, Any]


class StateError(HostError):
    """The state file cannot be used; the message names the file, the reason and the way out."""


def empty() -> State:
    """The state of a host that was never touched."""
    return {"version": VERSION, "proved_kernels": {}, "holds": {}, "denied": {}, "locks": {}, "manual": {},
            "backups": [], "configured": {}, "environments": {}, "seen": {}, "open": None, "trial": None, "lease": None}


def stamp(now: float | None = None) -> str:
    """A UTC time as text, such as ``2026-11-30T04:00:00Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() if now is None else now))


def read(path: str) -> State | None:
    """The state in ``path``, or None when there is none.

    Raises StateError when it is not JSON of a version known here, or when others than root could have written it;
    PermissionError when the reader is not root.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            info = os.fstat(handle.fileno())
            text = handle.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if info.st_uid not in (0, os.geteuid()) or stat.S_IMODE(info.st_mode) & 0o022:
        raise StateError(f"{path} can be written by others than root (owner {info.st_uid}, mode "
                         f"{stat.S_IMODE(info.st_mode):04o}), so it is not trusted: check it, then give it to root "
                         "with mode 0600")
    try:
        data = json.loads(text)
    except ValueError as exc:
        raise StateError(f"{path} is not JSON ({exc}): move it away; holds in it then count as a person's") from exc
    if not isinstance(data, dict) or not isinstance(data.get("version"), int):
        raise StateError(f"{path} has no version: move it away; holds in it then count as a person's")
    if data["version"] > VERSION:
        raise StateError(f"{path} has version {data['version']}, this release of baremetal.nvidia knows "
                         f"{VERSION} at most: use the newer release that wrote it")
    return {**empty(), **data}


def facts_view(data: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The part that ``gpu_facts`` returns as ``state``: names only, no proofs. None stays None.

    ``{proved_kernels: [release], holds: [name], held_since: null | time of the oldest hold on a kernel,
    open: null | {run_id, role, what, started, steps: [name], was?}, trial: null | as it is kept,
    seen: {name of a held package: when a newer version was first seen on offer}}``
    """
    if data is None:
        return None
    held = sorted({name for names in data["holds"].values() for name in names})
    since = min((str(one.get("at")) for one in data["holds"].get("kernel", {}).values() if one.get("at")), default=None)
    opened = data["open"]
    if opened is not None:
        steps = [step["name"] for step in opened["steps"]]
        opened = {"run_id": opened["run_id"], "role": opened["role"], "what": opened["what"], "started": opened["at"],
                  "steps": steps, **({"was": opened["was"]} if opened.get("was") else {})}
    return {"proved_kernels": sorted(data["proved_kernels"]), "holds": held, "held_since": since, "open": opened,
            "trial": data["trial"], "configured": data["configured"],
            "seen": {name: row["at"] for name, row in data["seen"].items() if row.get("at")}}


class Store:
    """The state file below ``root``; every change is read, changed and written under one lock."""

    def __init__(self, root: str = "/", clock: Callable[[], float] = time.time) -> None:
        self.path = os.path.join(root, PATH.lstrip("/"))
        self.clock = clock

    def read(self) -> State:
        """The state, or the empty one."""
        return read(self.path) or empty()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        directory = os.path.dirname(self.path)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        fd = os.open(os.path.join(directory, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def update(self, change: Callable[[State], None]) -> bool:
        """Apply ``change`` to the state in place and write it if that made a difference; say whether it did."""
        with self._locked():
            before = self.read()
            after = copy.deepcopy(before)
            change(after)
            if after == before:
                return False
            text = json.dumps(after, indent=1, sort_keys=True) + "\n"
            atomic.write(self.path, text, mode=0o600, dir_mode=0o700)
            return True

    # the lease

    def renew(self, run_id: str | None, ttl: int = lease.TTL, force: bool = False, holder: str | None = None,
              dead: str | None = None, doing: str | None = None) -> lease.Outcome:
        """Take or renew the lease for ``run_id``; without one, only see that no other run has it.

        ``doing`` is kept in it, so that a run that was cut off can be told where.
        Raises lease.LeaseHeld, naming the run that has it.
        """
        if run_id is None:
            return lease.look(self.read()["lease"], self.clock())
        outcomes: list[lease.Outcome] = []

        def change(data: State) -> None:
            data["lease"], outcome = lease.take(data["lease"], run_id, self.clock(), ttl, force, holder, dead)
            if doing:
                data["lease"]["doing"] = doing
            outcomes.append(outcome)
        self.update(change)
        return outcomes[0]

    def release(self, run_id: str) -> bool:
        """Give the lease back. Nothing happens when it is not ours (any more); say whether it was."""
        def change(data: State) -> None:
            if data["lease"] and data["lease"]["run_id"] == run_id:
                data["lease"] = None
        return self.update(change)

    # proofs

    def prove(self, release: str, proof: Mapping[str, Any]) -> bool:
        """Record that a working module for kernel ``release`` was built and checked; ``proof`` says which and how."""
        def change(data: State) -> None:
            data["proved_kernels"][release] = dict(proof)
        return self.update(change)

    # the trial boot

    def arm_trial(self, trial: Mapping[str, Any]) -> bool:
        """Record which kernel is to be started once, and what for. Raises StateError while another trial is open."""
        def change(data: State) -> None:
            former = data["trial"]
            if former is not None and former["release"] != trial["release"]:
                raise StateError(f"a trial of kernel {former['release']} is open since {former['at']}: end it first")
            data["trial"] = dict(trial)
        return self.update(change)

    def end_trial(self) -> bool:
        """Forget the trial; say whether there was one."""
        def change(data: State) -> None:
            data["trial"] = None
        return self.update(change)

    # the open transaction

    def begin(self, run_id: str, role: str, what: str, was: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Open a transaction; returns the one that was cut off before, if any, whose steps are thereby taken over.

        ``was`` is what the next run has to know of before and will not see any more.
        """
        left: list[dict[str, Any] | None] = []

        def change(data: State) -> None:
            left.append(data["open"])
            data["open"] = {"run_id": run_id, "role": role, "what": what, "at": stamp(self.clock()), "steps": [],
                            **({"was": dict(was)} if was else {})}
        self.update(change)
        return left[0]

    def step(self, name: str) -> None:
        """Note in the open transaction that step ``name`` begins. Raises StateError when none is open."""
        def change(data: State) -> None:
            if data["open"] is None:
                raise StateError(f"step {name!r}: no transaction is open in {self.path}")
            data["open"]["steps"].append({"name": name, "at": stamp(self.clock())})
        self.update(change)

    def finish(self) -> None:
        """Close the open transaction."""
        def change(data: State) -> None:
            data["open"] = None
        self.update(change)
