# SPDX-License-Identifier: GPL-3.0-or-later
"""The ssh ports of a lab's hosts, kept apart from those of every other lab on this machine.

A port is free for others only once its lab is gone, not merely while its host is not listening yet: labs that start
side by side would otherwise choose the same one. What is taken stands in one file, read and written under its lock.
"""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .settings import LabError, Settings


def of(settings: Settings, name: str) -> int:
    """Return the port of a host of this lab; choose one when it has none yet. Raises LabError when none is free."""
    ours = _chosen(settings)
    if name not in ours:
        with _taken() as taken:
            ours = _chosen(settings)
            if name not in ours:
                ours[name] = _free(settings, set(taken) | set(ours.values()))
                path = _path(settings)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(ours))
                taken[ours[name]] = str(path)
    return ours[name]


def forget(settings: Settings) -> None:
    """Give the ports of a lab that is gone to others."""
    _path(settings).unlink(missing_ok=True)


def release(settings: Settings, name: str) -> None:
    """Give the port of one host that is gone to others."""
    with _taken():
        ours = _chosen(settings)
        if ours.pop(name, None) is not None:
            _path(settings).write_text(json.dumps(ours))


def _path(settings: Settings) -> Path:
    return settings.state / "ports.json"


def _chosen(settings: Settings) -> dict[str, int]:
    path = _path(settings)
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _free(settings: Settings, taken: set[int]) -> int:
    for candidate in range(settings.first_port, 65536):
        if candidate not in taken and _listens_nobody(candidate):
            return candidate
    raise LabError(f"no free port from {settings.first_port} on; set LAB_PORT")


def _listens_nobody(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _taken() -> Iterator[dict[int, str]]:
    """Yield the ports of all labs of this user, each with the file of its lab, under a lock; keep what is added."""
    path = Path(tempfile.gettempdir()) / f"baremetal-nvidia-lab-ports-{os.getuid()}.json"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        text = stream.read()
        taken = {int(port): lab for port, lab in (json.loads(text) if text else {}).items() if _holds(lab, int(port))}
        yield taken
        stream.seek(0)
        stream.truncate()
        json.dump(taken, stream)


def _holds(lab: str, port: int) -> bool:
    """Say whether the lab with that file still has the port."""
    path = Path(lab)
    return path.exists() and port in json.loads(path.read_text()).values()
