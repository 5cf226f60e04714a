# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds the package manager's locks.

dpkg and apt lock with fcntl; the kernel names the holder (F_GETLK), or /proc/locks does where the file cannot be
opened.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Sequence
from typing import Any

from .context import Context

APT_LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
RPM_LOCKS = ("/var/lib/rpm/.rpm.lock", "/usr/lib/sysimage/rpm/.rpm.lock")
PID_FILES = ("/run/zypp.pid", "/var/run/zypp.pid", "/run/yum.pid", "/var/cache/dnf/metadata_lock.pid")
_FLOCK = "hhqqi4x"


def holder(ctx: Context, paths: Sequence[str]) -> dict[str, Any] | None:
    """``{pid, command}`` of the process that holds one of the files, None when none is held.

    Raises OSError when a file can neither be opened nor be found in /proc/locks.
    """
    if not ctx.tree.is_host:
        return None
    table: str | None = None
    for path in paths:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            pid = _asked(path)
        except PermissionError:
            if table is None:
                table = ctx.tree.read("/proc/locks")
            pid = _listed(table, status)
        if pid is not None:
            return {"pid": pid, "command": command(ctx, pid)}
    return None


def by_pid_file(ctx: Context, paths: Sequence[str]) -> dict[str, Any] | None:
    """The same for tools that leave their pid in a file: the process must be there still."""
    for path in paths:
        text = ctx.tree.text(path, 64) or ""
        if text.isdigit() and ctx.tree.isdir(f"/proc/{text}"):
            return {"pid": int(text), "command": command(ctx, int(text))}
    return None


def command(ctx: Context, pid: int) -> str | None:
    """The name of a process; None when it is gone or in another namespace."""
    try:
        return ctx.tree.text(f"/proc/{pid}/comm", 64)
    except OSError:
        return None


def _asked(path: str) -> int | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    finally:
        os.close(descriptor)
    return None if answer[0] == fcntl.F_UNLCK else int(answer[4])


def _listed(table: str, status: os.stat_result) -> int | None:
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in table.splitlines():
        match = re.match(r"\d+: (?:POSIX|OFDLCK)\s+\S+\s+WRITE\s+(-?\d+)\s+(\S+)\s", line)
        if match and match.group(2) == device:
            return int(match.group(1))
    return None
