# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of systemd that are ours: written, enabled and started without a reload of all units where that is not needed.

systemd finds a unit that it did not know by itself. A reload, which takes GPUs from some running containers, is needed
only when a unit that it has loaded changes, and then only with leave.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from . import atomic
from .errors import HostError
from .packages import guard
from .run import Result

Run = Callable[..., Result]
_TIMEOUT = 60


class UnitError(HostError):
    """systemctl refused something."""


@dataclass
class Wish:
    """files: content by path, None takes a file away. enabled, started: units. restarted: units that read the files."""

    files: Mapping[str, str | None]
    enabled: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()        # stopped and disabled before their files go
    restarted: tuple[str, ...] = ()     # where something changed, also when `changed` says so
    changed: bool = False
    reload_allowed: bool = False


@dataclass
class Outcome:
    """What was done, or would be; waiting: why systemd still works with the former unit."""

    actions: list[str] = field(default_factory=list)
    before: dict[str, str | None] = field(default_factory=dict)
    after: dict[str, str | None] = field(default_factory=dict)
    waiting: str | None = None

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        return bool(self.actions)


class Units:
    """Brings units to what is wished for."""

    def __init__(self, run: Run, look: Callable[[], None] = guard.refuse_under_gpu_containers,
                 running: Callable[[], bool] = lambda: os.path.isdir("/run/systemd/system")) -> None:
        self.run, self.look, self.running = run, look, running

    def __call__(self, wish: Wish, check: bool = False) -> Outcome:
        """Do it. Raises UnitError, OSError."""
        outcome = Outcome()
        self._stop(wish, outcome, check)
        for path, content in wish.files.items():
            self._file(path, content, outcome, check)
        self._reload(wish, outcome, check)
        self._enable(wish, outcome, check)
        self._start(wish, outcome, check)
        return outcome

    def _file(self, path: str, content: str | None, outcome: Outcome, check: bool) -> None:
        there = atomic.read_text(path)
        if there == content:
            return
        outcome.before[path], outcome.after[path] = there, content
        outcome.actions.append(f"{'remove' if content is None else 'write'} {path}")
        if check:
            return
        if content is not None:
            atomic.write(path, content)
            return
        atomic.remove(path)
        with contextlib.suppress(OSError):    # a folder of drop-ins that holds others stays
            if path.endswith(".conf"):
                os.rmdir(os.path.dirname(path))

    def _stop(self, wish: Wish, outcome: Outcome, check: bool) -> None:
        for unit in wish.absent:
            if self._is("is-active", unit):
                outcome.actions.append(f"stop {unit}")
                if not check:
                    self._systemctl("stop", unit)
            if self._is("is-enabled", unit):
                outcome.actions.append(f"disable {unit}")
                if not check:
                    self._systemctl("disable", unit)

    def _reload(self, wish: Wish, outcome: Outcome, check: bool) -> None:
        """Reload where systemd has loaded what changed. What is refused is told, and tried again by the next run."""
        stale = [unit for unit in dict.fromkeys((*wish.enabled, *wish.started, *wish.restarted)) if self._stale(unit)]
        if not stale or check:
            return
        if not wish.reload_allowed:
            try:
                self.look()
            except HostError as error:
                outcome.waiting = f"{', '.join(stale)}: systemd goes on with the former unit until it reloads; {error}"
                return
        outcome.actions.append("reload systemd's units")
        self._systemctl("daemon-reload")

    def _enable(self, wish: Wish, outcome: Outcome, check: bool) -> None:
        for unit in wish.enabled:
            if not self._is("is-enabled", unit):
                outcome.actions.append(f"enable {unit}")
                if not check:
                    self._systemctl("enable", unit)

    def _start(self, wish: Wish, outcome: Outcome, check: bool) -> None:
        changed = outcome.changed or wish.changed
        for unit in dict.fromkeys((*wish.restarted, *wish.started)):
            active = self._is("is-active", unit)
            if not active and unit in wish.started:
                outcome.actions.append(f"start {unit}")
                if not check:
                    self._systemctl("start", unit)
            elif active and changed and unit in wish.restarted:
                outcome.actions.append(f"restart {unit}")
                if not check:
                    self._systemctl("restart", unit)

    def _stale(self, unit: str) -> bool:
        done = self.run(["systemctl", "show", "--property=NeedDaemonReload", "--value", unit], timeout=_TIMEOUT)
        return done.ok and done.out.strip() == "yes"

    def _is(self, verb: str, unit: str) -> bool:
        return self.running() and self.run(["systemctl", verb, "--quiet", unit], timeout=_TIMEOUT).ok

    def _systemctl(self, verb: str, *units: str) -> None:
        if not self.running():
            return
        done = self.run(["systemctl", "--no-reload", verb, *units], timeout=_TIMEOUT)
        if not done.ok:
            raise UnitError(done.why(f"systemctl {verb} {' '.join(units)}".strip()))
