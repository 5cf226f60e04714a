# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a run is at home, as one line of text, and whether such a run still lives.

Only a run of the same machine, boot and process namespace can be looked at; of any other nothing is known.
"""

from __future__ import annotations

import os
import pathlib
import socket

PROC = pathlib.Path("/proc")


def _place(proc: pathlib.Path) -> list[str]:
    """What tells machines, their boots and their containers apart."""
    boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return [socket.gethostname(), boot, os.readlink(proc / "self/ns/pid")]


def _started(pid: int, proc: pathlib.Path) -> str | None:
    """When a process started, in ticks since boot; None when there is none. A pid that was given anew differs in it."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rsplit(")", 1)[-1].split()  # the name before may hold anything
    return None if fields[0] in ("Z", "X") else fields[19]


def describe(pid: int, proc: pathlib.Path = PROC) -> str | None:
    """The line for the run whose main process is ``pid``; None where that cannot be told (not Linux, no /proc)."""
    try:
        started = _started(pid, proc)
        return "|".join([*_place(proc), str(pid), started]) if started else None
    except OSError:
        return None


def is_dead(line: str | None, proc: pathlib.Path = PROC) -> bool:
    """Say whether the run of that line was of this machine, boot and namespace, and is gone. Unknown is not dead."""
    parts = (line or "").rsplit("|", 2)
    if len(parts) != 3 or not parts[1].isdigit():
        return False
    try:
        if parts[0].split("|") != _place(proc):
            return False
    except OSError:
        return False
    return _started(int(parts[1]), proc) != parts[2]
