# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes with deadlines.

A GPU host is exactly the place where a child does not come back: a sick GPU leaves ``nvidia-smi`` in the kernel,
state D, where not even SIGKILL reaches it. So every child has a session of its own (it can be killed with all its
children), pipes of its own (never those of the ssh session, which would then not close), a limit on what it may print,
and when it cannot be killed it is left behind and never waited for.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEFAULT_TIMEOUT = 10.0
OUTPUT_LIMIT = 4 * 1024 * 1024
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_TERM_GRACE = 0.5  # seconds between SIGTERM and SIGKILL
_KILL_GRACE = 1.0  # seconds after SIGKILL until the child counts as stuck in the kernel
_DRAIN_GRACE = 0.3  # seconds for output that a grandchild still holds open after the child has ended

RC_TIMEOUT = 124
RC_MISSING = 127
RC_DENIED = 126


@dataclass(frozen=True)
class Result:
    """What came of a child.

    ``rc`` is its exit status, negative for a signal as in :mod:`subprocess`; 127 when there is no such program, 126
    when it may not be started, 124 when it ran past its deadline. ``out`` and ``err`` are text, undecodable bytes
    replaced.
    ``stuck`` says that it could not even be killed; ``truncated`` that it printed more than the limit.
    """

    rc: int
    out: str = ""
    err: str = ""
    timed_out: bool = False
    stuck: bool = False
    truncated: bool = False
    pid: int = 0

    @property
    def ok(self) -> bool:
        return self.rc == 0 and not self.timed_out

    @property
    def missing(self) -> bool:
        return self.rc == RC_MISSING and self.pid == 0

    def why(self, what: str = "the command") -> str:
        """One sentence that says why there is no answer, for people."""
        if self.missing:
            return f"{what} is not installed"
        if self.stuck:
            return f"{what} did not end in time and cannot be killed (pid {self.pid}, stuck in the kernel)"
        if self.timed_out:
            return f"{what} did not end in time and was killed"
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return f"{what} ended with status {self.rc}" + (f": {lines[0][:200]}" if lines else "")


def run(
    argv: Sequence[str],
    timeout: float = DEFAULT_TIMEOUT,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,
    limit: int = OUTPUT_LIMIT,
    cwd: str = "/",
) -> Result:
    """Run ``argv`` without a shell, for at most ``timeout`` seconds. Never raises for what the child does."""
    raw = run_bytes(argv, timeout=timeout, env=env, input=input, limit=limit, cwd=cwd)
    return Result(
        rc=raw.rc,
        out=raw.out.decode("utf-8", "replace"),
        err=raw.err.decode("utf-8", "replace"),
        timed_out=raw.timed_out,
        stuck=raw.stuck,
        truncated=raw.truncated,
        pid=raw.pid,
    )


@dataclass
class RawResult:
    """As :class:`Result`, with bytes."""

    rc: int
    out: bytes = b""
    err: bytes = b""
    timed_out: bool = False
    stuck: bool = False
    truncated: bool = False
    pid: int = 0


def run_bytes(
    argv: Sequence[str],
    timeout: float = DEFAULT_TIMEOUT,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,
    limit: int = OUTPUT_LIMIT,
    cwd: str = "/",
) -> RawResult:
    """As :func:`run`, for output that is no text."""
    deadline = time.monotonic() + timeout
    data = input.encode() if isinstance(input, str) else (input or b"")
    try:
        # run_command would wait for a child that hangs in the kernel
        child = subprocess.Popen(  # pylint: disable=ansible-bad-function
            list(argv),
            stdin=subprocess.PIPE if data else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(env),
            cwd=cwd,
            close_fds=True,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        return RawResult(rc=RC_MISSING, err=str(error).encode())
    except OSError as error:
        return RawResult(rc=RC_DENIED, err=str(error).encode())
    out, err = bytearray(), bytearray()
    truncated, timed_out = _pump(child, data, out, err, limit, deadline)
    stuck = False
    if timed_out:
        stuck = not kill_group(child)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return RawResult(
        rc=RC_TIMEOUT if timed_out else int(child.returncode),
        out=bytes(out),
        err=bytes(err),
        timed_out=timed_out,
        stuck=stuck,
        truncated=truncated,
        pid=child.pid,
    )


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: the caller's, in English, with the system's search path, and ``extra`` on top."""
    env = dict(os.environ)
    env.update({"LC_ALL": "C.UTF-8", "LANGUAGE": "C", "PATH": PATH})
    env.update(extra or {})
    return env


def _pump(
    child: subprocess.Popen[bytes], data: bytes, out: bytearray, err: bytearray, limit: int, deadline: float
) -> tuple[bool, bool]:
    """Move data until the child has ended; returns (truncated, timed_out)."""
    truncated = False
    ended_at: float | None = None
    view = memoryview(data)
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((child.stdout, out), (child.stderr, err)):
            if stream is None:  # both are pipes: this is for the type checker
                continue
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, buffer)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE, None)
        while True:
            now = time.monotonic()
            if child.poll() is not None:
                ended_at = now if ended_at is None else ended_at
                if not _readers(selector) or now - ended_at > _DRAIN_GRACE:
                    return truncated, False
            elif now >= deadline:
                return truncated, True
            wait = 0.02 if not selector.get_map() or ended_at is not None else min(0.25, max(0.0, deadline - now))
            if not selector.get_map():
                time.sleep(min(wait, 0.02))
                continue
            for key, _events in selector.select(wait):
                if key.data is None:
                    view = _feed(selector, child, view)
                else:
                    truncated = _take(selector, key.fileobj, key.data, limit) or truncated


def _readers(selector: selectors.BaseSelector) -> bool:
    return any(key.data is not None for key in selector.get_map().values())


def _feed(selector: selectors.BaseSelector, child: subprocess.Popen[bytes], view: memoryview) -> memoryview:
    if child.stdin is None:
        return view
    try:
        view = view[os.write(child.stdin.fileno(), view[:65536]) :]
    except BlockingIOError:
        return view
    except OSError:  # the child does not want to read it
        view = view[len(view) :]
    if not view:
        selector.unregister(child.stdin)
        with contextlib.suppress(OSError):
            child.stdin.close()
    return view


def _take(selector: selectors.BaseSelector, stream: object, buffer: bytearray, limit: int) -> bool:
    """Read what is there; what exceeds the limit is thrown away, so that the child can end. True when it was."""
    try:
        chunk = os.read(stream.fileno(), 262144)  # type: ignore[attr-defined]
    except BlockingIOError:
        return False
    except OSError:
        chunk = b""
    if not chunk:
        selector.unregister(stream)  # type: ignore[arg-type]
        return False
    room = limit - len(buffer)
    buffer += chunk[: max(0, room)]
    return len(chunk) > room


def kill_group(child: subprocess.Popen[bytes]) -> bool:
    """End a child and all it started: SIGTERM, then SIGKILL. False when it is still there: stuck in the kernel."""
    for sig, grace in ((signal.SIGTERM, _TERM_GRACE), (signal.SIGKILL, _KILL_GRACE)):
        with contextlib.suppress(OSError):
            os.killpg(child.pid, sig)
        end = time.monotonic() + grace
        while time.monotonic() < end:
            if child.poll() is not None:
                if sig != signal.SIGKILL:  # the leader went quietly; what it started may have not
                    with contextlib.suppress(OSError):
                        os.killpg(child.pid, signal.SIGKILL)
                return True
            time.sleep(0.01)
    return False
