# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a package manager's lock: POSIX record locks, asked for without taking them, and waited for."""
from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from typing import Callable

from .base import Holder, LockHeld

_FLOCK = "hhqqi"    # struct flock of Linux on 64 bit: type, whence, start, length, pid


def command_of(pid: int, proc: str = "/proc") -> str | None:
    """The command line of a process, or its short name, or None when it is gone."""
    for name in ("cmdline", "comm"):
        with contextlib.suppress(OSError):
            with open(f"{proc}/{pid}/{name}", "rb") as handle:
                text = " ".join(handle.read().replace(b"\0", b" ").decode("utf-8", "replace").split())
            if text:
                return text[:200]
    return None


def holder_of(path: str, proc: str = "/proc") -> Holder | None:
    """The process with a write lock on ``path``, or None when it is free or does not exist.

    The pid is unknown where the kernel does not tell (a lock held over a network, or from another pid namespace).
    Raises PermissionError for others than root.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _whence, _start, _length, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    finally:
        os.close(fd)    # we hold no lock on it, so nothing is dropped
    if kind == fcntl.F_UNLCK:
        return None
    if pid <= 0:
        return Holder(None, None)
    return Holder(pid, command_of(pid, proc))


class Patient:
    """Waits until no one has the lock. A backend says by ``_lock`` which lock is held, and by whom."""

    poll = 2.0    # seconds between two looks

    def __init__(self, sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.sleep = sleep
        self.clock = clock

    def _lock(self) -> tuple[str, Holder] | None:
        raise NotImplementedError

    def wait_for_lock(self, timeout: float) -> float:
        """Wait until the lock is free; the seconds waited. Raises LockHeld, naming who has it."""
        return self._wait(self.clock(), timeout)

    def _wait(self, start: float, timeout: float) -> float:
        while True:
            found = self._lock()
            waited = self.clock() - start
            if found is None:
                return waited
            if waited >= timeout:
                raise LockHeld(found[1], waited, found[0])
            self._pause(timeout - waited)

    def _pause(self, left: float) -> None:
        self.sleep(min(self.poll, max(left, 0.1)))
