# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes: run one, or run a long one and show that it is alive."""
from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from .settings import LabError

BEAT = 20.0  # seconds between two signs of life


def say(text: str) -> None:
    """One line for the person who watches."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def run(command: Sequence[str], check: bool = True, stdin: str | None = None, timeout: float = 300) -> str:
    """Run a short command; its standard output, or LabError with what it said."""
    try:
        done = subprocess.run(
            list(command), check=False, text=True, input=stdin, timeout=timeout,
            stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True)
    except FileNotFoundError as error:
        raise LabError(f"{command[0]} is not installed; scripts/setup.sh installs it") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"no end after {timeout:.0f} s: {' '.join(command)}") from error
    if check and done.returncode != 0:
        raise LabError(f"rc {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-3000:]}")
    return done.stdout


def ok(command: Sequence[str], timeout: float = 60) -> bool:
    """Whether a command ends with 0."""
    try:
        return subprocess.run(
            list(command), check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=timeout).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


class Beat:
    """Says every BEAT seconds that a long step is still at work."""

    def __init__(self, what: str, log: Path | None = None) -> None:
        self._what, self._log, self._over = what, log, threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def _last(self) -> str:
        if self._log is None or not self._log.exists():
            return ""
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return f": {lines[-1][:90]}" if lines else ""

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            say(f"{self._what} … {self.seconds:.0f} s{self._last()}")

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def __enter__(self) -> Beat:
        say(f"{self._what} …")
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_rest: object) -> None:
        self._over.set()
        self._thread.join()
        if kind is None:
            say(f"{self._what}: done in {self.seconds:.0f} s")


def run_long(what: str, command: Sequence[str], log: Path, timeout: float = 1800) -> None:
    """Run a long command with its output in a log file; LabError shows the log's end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with Beat(what, log), log.open("w") as out:
        try:
            code = subprocess.run(
                list(command), check=False, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=timeout,
            ).returncode
        except FileNotFoundError as error:
            raise LabError(f"{command[0]} is not installed; scripts/setup.sh installs it") from error
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{what}: no end after {timeout:.0f} s, see {log}") from error
    if code != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise LabError(f"{what}: rc {code}, see {log}\n{end}")
