# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subjects in processes of their own.

Reading a file can hang too: sysfs of a GPU that fell off the bus, /proc of a stuck process, a file system whose server
is gone. So groups of subjects are read by forked workers side by side, each subject has a limit, and a worker that does
not get on is killed and left behind; a fresh one goes on with the next subject.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .context import Context, Facts, reason


@dataclass(frozen=True)
class Subject:
    """``read`` fills a context; ``paths`` is what is unknown when it does not come back; ``limit`` in seconds."""

    name: str
    read: Callable[[Context], None]
    paths: tuple[str, ...]
    limit: float = 25.0


MakeContext = Callable[[Facts, float], Context]  # (facts of the group so far, deadline) → a fresh context


@dataclass
class _Worker:
    todo: list[Subject]
    known: Facts = field(default_factory=dict)
    pid: int = 0
    pipe: int = -1
    buffer: bytes = b""
    current: Subject | None = None
    limit_at: float = 0.0


@dataclass
class Outcome:
    """What all subjects handed back, merged."""

    facts: Facts = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    abandoned: list[int] = field(default_factory=list)


def gather(groups: Sequence[Sequence[Subject]], make: MakeContext, deadline: float) -> Outcome:
    """Read all groups at the same time, those of one group in their order. Returns by the deadline."""
    outcome = Outcome()
    workers = [_Worker(list(group)) for group in groups if group]
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            _start(worker, selector, make, deadline)
        while selector.get_map():
            now = time.monotonic()
            running = [key.data for key in selector.get_map().values()]
            next_limit = min(min(worker.limit_at for worker in running), deadline)
            for key, _events in selector.select(max(0.0, next_limit - now)):
                _receive(key.data, selector, outcome, make, deadline)
            now = time.monotonic()
            for key in list(selector.get_map().values()):
                late: _Worker = key.data
                if now >= deadline:
                    _stop(late, selector, outcome)
                    _give_up(late.todo, "the deadline of the module ran out", outcome)
                    late.todo = []
                elif now >= late.limit_at:
                    _overdue(late, selector, outcome, make, deadline)
    return outcome


def merge(into: Facts, new: Facts) -> None:
    """Put nested dictionaries together; other values replace."""
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


# ---- parent


def _start(worker: _Worker, selector: selectors.BaseSelector, make: MakeContext, deadline: float) -> None:
    if not worker.todo:
        return
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(worker, write_end, make, deadline)
    os.close(write_end)
    os.set_blocking(read_end, False)
    worker.pid, worker.pipe, worker.buffer, worker.current = pid, read_end, b"", worker.todo[0]
    worker.limit_at = time.monotonic() + worker.todo[0].limit
    selector.register(read_end, selectors.EVENT_READ, worker)


def _receive(
    worker: _Worker, selector: selectors.BaseSelector, outcome: Outcome, make: MakeContext, deadline: float
) -> None:
    try:
        chunk = os.read(worker.pipe, 1048576)
    except BlockingIOError:
        return
    worker.buffer += chunk
    *lines, worker.buffer = worker.buffer.split(b"\n")
    for line in lines:
        _take(worker, json.loads(line), outcome)
    if not chunk:
        _stop(worker, selector, outcome)
        if worker.todo:  # it died in the middle
            _give_up([worker.todo.pop(0)], "the process that read it ended unexpectedly", outcome)
            _start(worker, selector, make, deadline)


def _take(worker: _Worker, message: dict[str, Any], outcome: Outcome) -> None:
    worker.todo.pop(0)
    merge(outcome.facts, message["facts"])
    merge(worker.known, message["facts"])
    outcome.unknown.update(message["unknown"])
    worker.current = worker.todo[0] if worker.todo else None
    worker.limit_at = time.monotonic() + (worker.todo[0].limit if worker.todo else 1.0)


def _overdue(
    worker: _Worker, selector: selectors.BaseSelector, outcome: Outcome, make: MakeContext, deadline: float
) -> None:
    _stop(worker, selector, outcome)
    if worker.todo:
        subject = worker.todo.pop(0)
        _give_up([subject], f"reading it did not end within {subject.limit:.0f} s", outcome)
        _start(worker, selector, make, deadline)


def _give_up(subjects: Sequence[Subject], why: str, outcome: Outcome) -> None:
    for subject in subjects:
        for path in subject.paths:
            outcome.unknown[path] = why


def _stop(worker: _Worker, selector: selectors.BaseSelector, outcome: Outcome) -> None:
    """End a worker and never wait for one that cannot end."""
    selector.unregister(worker.pipe)
    os.close(worker.pipe)
    with contextlib.suppress(OSError):
        os.killpg(worker.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(worker.pid, signal.SIGKILL)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            if os.waitpid(worker.pid, os.WNOHANG)[0]:
                return
        except ChildProcessError:
            return
        time.sleep(0.005)
    outcome.abandoned.append(worker.pid)


# ---- child


def _child(worker: _Worker, write_end: int, make: MakeContext, deadline: float) -> None:
    """Read the subjects and send each one's result as a line of JSON; never returns."""
    status = 1
    try:
        os.setsid()
        # the ssh session ends when nobody holds its pipes any more, so a stuck worker must not
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(3, write_end)
        os.closerange(write_end + 1, 256)
        for subject in worker.todo:
            context = make(worker.known, deadline)
            read_one(subject, context)
            message = {"facts": context.facts, "unknown": context.unknown}
            data = json.dumps(message, default=str).encode() + b"\n"
            while data:
                data = data[os.write(write_end, data) :]
            merge(worker.known, context.facts)
        status = 0
    finally:
        os._exit(status)


def read_one(subject: Subject, context: Context) -> None:
    """One subject; what it does not expect makes its paths unknown and leaves the others alone."""
    try:
        subject.read(context)
    except Exception as error:  # noqa: BLE001 - one subject must not take the others with it
        for path in subject.paths:
            if not has(context.facts, path):
                context.unknown.setdefault(path, reason(error))


def has(facts: Facts, path: str) -> bool:
    """Whether a dotted path is there."""
    node: Any = facts
    for key in path.split("."):
        if not isinstance(node, dict) or key not in node:
            return False
        node = node[key]
    return True
