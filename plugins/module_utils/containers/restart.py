# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restart containerd so that a node never stays without it.

The guard is looked at again right before: no restart under running GPU containers unless that is allowed. Afterwards
the socket, the API and the CRI plugin must answer and the handlers must be known, or the former files are put back,
containerd is started with them, and the reason is told.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import HostError
from ..run import Result
from ..state import Store
from .config_files import Placed, left_open, put_back

Runner = Callable[..., Result]

_RUNTIME = re.compile(
    r"^\s*\[plugins\.[\"'][\w.]+[\"']\.containerd\.runtimes\.(?:[\"']([^\"']+)[\"']|([\w-]+))\]", re.MULTILINE)
_CRI_ROW = re.compile(r"^\S+\s+(cri|runtime|images)\s+\S+\s+(ok|error|skip)\s*$", re.MULTILINE)


def _beside(program: str, name: str) -> str | None:
    """A tool from the folder of containerd's own program, where that is named by path; else from the PATH."""
    if "/" in program:
        path = os.path.join(os.path.dirname(program), name)
        return path if os.path.isfile(path) else None
    return name if shutil.which(name) else None


class RestartError(HostError):
    """containerd did not come back with the new files. The message says why, and what runs now."""


@dataclass(frozen=True)
class Wish:
    """What to restart, and what must be there afterwards."""

    services: tuple[str, ...] = ("containerd.service",)  # the first that is there is restarted
    address: str = "/run/containerd/containerd.sock"
    program: str = "containerd"
    main: str = "/etc/containerd/config.toml"
    handlers: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # handlers that must be gone
    by_owner: bool = False  # whoever owns this containerd restarts it by itself: only wait and look
    allowed: bool = False
    timeout: float = 60
    restore: tuple[Placed, ...] = ()

    @property
    def service(self) -> str:
        """The unit that is meant."""
        return self.services[0]


@dataclass
class Outcome:
    """What was done."""

    changed: bool = False
    gpu_containers: int | None = None
    handlers: list[str] = field(default_factory=list)
    skipped_reason: str | None = None
    actions: list[str] = field(default_factory=list)


class _Count:
    """Counts and remembers; None where it cannot be told."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self.last: int | None = None

    def __call__(self) -> int:
        self.last = self._count()
        return self.last

    def number(self) -> int | None:
        """The count, or None."""
        try:
            return self()
        except (OSError, ValueError):
            return None


def not_now(count: Callable[[], int]) -> str | None:
    """Why containerd must not be restarted now without leave; None if nothing stands in the way."""
    try:
        running = count()
    except (OSError, ValueError) as error:
        return f"whether GPU containers run cannot be told ({error}), and gpu_containerd_restart_allowed is false"
    if running:
        return f"{running} GPU containers run here and gpu_containerd_restart_allowed is false"
    return None


class Restart:
    """One restart. ``count`` returns the number of GPU containers on this host."""

    def __init__(self, run: Runner, count: Callable[[], int], store: Store, *,
                 pause: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
                 has_systemd: Callable[[], bool] = lambda: os.path.isdir("/run/systemd/system")) -> None:
        self.run, self.count, self.store = run, count, store
        self.pause, self.clock, self.has_systemd = pause, clock, has_systemd

    def __call__(self, wish: Wish, check: bool) -> Outcome:
        """Restart if that is allowed, and see that it works. Raises RestartError."""
        outcome = Outcome()
        if not self.has_systemd():
            outcome.skipped_reason = "systemd does not run here, so no service is restarted"
            if not check:
                self.store.finish()
            return outcome
        counted = _Count(self.count)
        why = None if wish.allowed or wish.by_owner else not_now(counted)
        outcome.gpu_containers = counted.number() if why is None else counted.last
        unit = self._unit(wish)
        if why is not None:
            outcome.skipped_reason = f"{why}; the new files count from the next start of {unit} on"
            return outcome
        wish = replace(wish, services=(unit,))
        outcome.changed = not wish.by_owner
        outcome.actions.append(f"wait until {unit} has read its files" if wish.by_owner else f"restart {unit}")
        if check:
            return outcome
        problem = None if wish.by_owner else self._restart(wish)
        if problem is None:
            problem, outcome.handlers = self._answers(wish)
        if problem is None:
            self.store.finish()
            return outcome
        raise RestartError(self._back(wish, problem))

    def _unit(self, wish: Wish) -> str:
        """The unit that is restarted: the one that is there, of several that may be."""
        for unit in wish.services if len(wish.services) > 1 else ():
            told = self.run(["systemctl", "show", "--property=LoadState", "--value", unit], timeout=10)
            if told.ok and told.out.strip() == "loaded":
                return unit
        return wish.service

    def _restart(self, wish: Wish) -> str | None:
        self.run(["systemctl", "reset-failed", wish.service], timeout=10)
        result = self.run(["systemctl", "restart", wish.service], timeout=max(wish.timeout, 30))
        return None if result.ok else self._reason(wish, result.why(f"restart of {wish.service}"))

    def _reason(self, wish: Wish, what: str) -> str:
        log = self.run(["journalctl", "--unit", wish.service, "--lines", "30", "--no-pager", "--output", "cat"],
                       timeout=10)
        told = [line.strip() for line in log.out.splitlines() if "level=fatal" in line or "level=error" in line
                or line.startswith("containerd:")]
        return what + (f" ({told[-1][:400]})" if told else "")

    def _answers(self, wish: Wish) -> tuple[str | None, list[str]]:
        """Wait until containerd answers; (what is wrong, the handlers it knows)."""
        end = self.clock() + wish.timeout
        while True:
            problem, handlers = self._look(wish)
            if problem is None:
                return None, handlers
            if self.clock() >= end:
                return self._reason(wish, problem), handlers
            self.pause(0.5)

    def _look(self, wish: Wish) -> tuple[str | None, list[str]]:
        if not self._connects(wish.address):
            return f"nothing answers on {wish.address}", []
        active = self.run(["systemctl", "is-active", wish.service], timeout=10)
        if active.out.strip() != "active":
            return f"{wish.service} is {active.out.strip() or 'not active'}", []
        handlers: list[str] = []
        ctr = _beside(wish.program, "ctr")
        if ctr:
            listed = self.run([ctr, "--address", wish.address, "plugins", "ls"], timeout=15)
            if not listed.ok:
                return listed.why("ctr plugins ls"), []
            states = dict(_CRI_ROW.findall(listed.out))
            if states.get("cri") != "ok":
                return f"the CRI plugin is {states.get('cri', 'not there')}", []
        problem, handlers = self._handlers(wish)
        missing = sorted(set(wish.handlers) - set(handlers))
        left = sorted(set(wish.absent) & set(handlers))
        if problem is None and left:
            problem = f"the runtime {', '.join(left)} is still known to it"
        if problem is None and missing:
            problem = f"the runtime {', '.join(missing)} is not known to it (known: {', '.join(handlers) or 'none'})"
        return problem, handlers

    def _handlers(self, wish: Wish) -> tuple[str | None, list[str]]:
        """The runtimes it knows: from CRI where crictl is there, else from its own view of its files."""
        if shutil.which("crictl"):
            told = self.run(["crictl", "--runtime-endpoint", f"unix://{wish.address}", "info"], timeout=15)
            if not told.ok:
                return told.why("crictl info"), []
            try:
                config: Any = json.loads(told.out)["config"]["containerd"]["runtimes"]
                return None, sorted(config)
            except (ValueError, KeyError, TypeError):
                pass  # an older or newer form: its files tell as well
        dumped = self.run([wish.program, "--config", wish.main, "config", "dump"], timeout=30)
        if not dumped.ok:
            return dumped.why("containerd config dump"), []
        return None, sorted({one or two for one, two in _RUNTIME.findall(dumped.out)})

    def _connects(self, address: str) -> bool:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(5)
        try:
            client.connect(address)
            return True
        except OSError:
            return False
        finally:
            client.close()

    def _back(self, wish: Wish, problem: str) -> str:
        restore = wish.restore or tuple(left_open(self.store))
        if not restore:
            return f"{wish.service} does not work: {problem}. No former files were named, so nothing was put back"
        put_back(restore)
        names = ", ".join(item.path for item in restore)
        again = None if wish.by_owner else self._restart(wish)
        if again is None:
            again, _handlers = self._answers(replace(wish, handlers=(), absent=()))
        self.store.finish()
        if again is None:
            return (f"{wish.service} did not work with the new files: {problem}. The former ones ({names}) were put "
                    "back and it runs again")
        return (f"{wish.service} did not work with the new files: {problem}. The former ones ({names}) were put back, "
                f"and it does not work with them either: {again}")
