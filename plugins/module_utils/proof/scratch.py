# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scratch directories that a killed run cannot leave behind for ever, the room for them, and one proof at a time.

A scratch directory is recognised by its name and by the marker file in it. Whoever holds the host's proof lock knows
that no other proof runs, so every marked directory that is there then is left over from a run that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Callable

from .errors import ProofError

PREFIX = "baremetal-nvidia-proof."
MARKER = ".baremetal-nvidia-proof"


def free_mb(directory: str) -> int:
    """Megabytes that are free for us in ``directory``. Raises ProofError when it is not there."""
    try:
        info = os.statvfs(directory)
    except OSError as exc:
        raise ProofError(
            f"scratch_dir {directory} cannot be used: {exc.strerror}. Make it, or name another one"
        ) from exc
    return int(info.f_bavail * info.f_frsize // (1024 * 1024))


def require_room(directory: str, wanted_mb: int, free: Callable[[str], int] = free_mb) -> None:
    """Raise ProofError unless ``wanted_mb`` are free in ``directory``."""
    there = free(directory)
    if there < wanted_mb:
        raise ProofError(
            f"{directory} has {there} MB free and a module build needs {wanted_mb} MB (min_free_mb): free some "
            "space there, or let scratch_dir name a file system with more room"
        )


def left_over(directory: str) -> list[str]:
    """Scratch directories of ours in ``directory``, whoever made them."""
    found = []
    for entry in sorted(os.scandir(directory), key=lambda item: item.name):
        if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        info = entry.stat(follow_symlinks=False)
        if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
            continue  # not made by us: mkdtemp makes them 0700
        if os.path.lexists(os.path.join(entry.path, MARKER)):
            found.append(entry.path)
    return found


def remove_left_over(directory: str, proc: str = "/proc") -> list[str]:
    """Remove what killed runs left in ``directory``, their surviving children first; returns the paths.

    Only the holder of the proof lock may call this.
    """
    paths = left_over(directory)
    for path in paths:
        _end_children(path, proc)
        shutil.rmtree(path, ignore_errors=True)
    return paths


def _end_children(path: str, proc: str) -> None:
    """Kill processes whose working directory lies in ``path``: compilers that outlived their run."""
    for name in os.listdir(proc) if os.path.isdir(proc) else []:
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            where = os.readlink(os.path.join(proc, name, "cwd"))
            if where == path or where.startswith(path + "/"):
                os.kill(int(name), signal.SIGKILL)


@contextlib.contextmanager
def directory(parent: str) -> Iterator[str]:
    """A new scratch directory in ``parent``, removed at the end whatever happens."""
    path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    try:
        with open(os.path.join(path, MARKER), "w", encoding="ascii") as handle:
            handle.write(f"{os.getpid()}\n")
        yield path
    finally:
        _end_children(path, "/proc")  # a signal may have ended us in the middle of a build
        shutil.rmtree(path, ignore_errors=True)


class Lock:
    """One at a time: ``flock`` on ``path``, which also says who has it. The kernel frees it when its holder dies."""

    def __init__(
        self,
        path: str,
        timeout: float,
        what: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.path, self.timeout, self.what = path, timeout, what
        self.clock, self.sleep = clock, sleep
        self.waited = 0.0
        self._fd: int | None = None

    def __enter__(self) -> Lock:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        begin = self.clock()
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                self.waited = self.clock() - begin
                if self.waited >= self.timeout:
                    holder = os.pread(self._fd, 200, 0).decode("ascii", "replace").strip() or "an unknown process"
                    os.close(self._fd)
                    self._fd = None
                    raise ProofError(
                        f"{self.what} is being done by {holder} and did not end within {self.timeout:.0f} s: wait "
                        "for it, or give lock_timeout more seconds"
                    ) from None
                self.sleep(min(1.0, max(0.05, self.timeout / 20)))
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"pid {os.getpid()} on {os.uname().nodename}\n".encode("ascii", "replace"), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
