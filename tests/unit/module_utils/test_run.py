# SPDX-License-Identifier: GPL-3.0-or-later
"""Children with deadlines: those that end, those that do not want to, and those that cannot."""

from __future__ import annotations

import os
import pathlib
import sys
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as subject
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run, run_bytes


def alive(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def test_result_of_a_child_that_ends():
    result = run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.rc, result.out, result.err, result.timed_out, result.ok) == (3, "out\n", "err\n", False, False)
    assert result.why("it") == "it ended with status 3: err"


def test_input_reaches_the_child():
    assert run(["cat"], input="hello").out == "hello"
    large = "x" * 500_000
    assert run(["cat"], input=large).out == large


def test_a_child_that_does_not_read_its_input():
    assert run(["true"], input="x" * 500_000).rc == 0


def test_missing_program_is_no_exception():
    result = run(["/nonexistent/program"])
    assert result.rc == 127 and result.missing
    assert result.why("program") == "program is not installed"


def test_program_that_may_not_be_started(tmp_path: pathlib.Path):
    script = tmp_path / "x"
    script.write_text("#!/bin/sh\n")
    result = run([str(script)])
    assert result.rc == 126 and not result.missing


def test_a_program_that_answers_127_is_not_missing():
    assert not run(["sh", "-c", "exit 127"]).missing


def test_deadline(tmp_path: pathlib.Path):
    before = time.monotonic()
    result = run(["sleep", "60"], timeout=0.3)
    assert result.timed_out and result.rc == 124 and not result.stuck
    assert time.monotonic() - before < 3
    assert "did not end in time" in result.why("sleep")


def test_a_child_that_ignores_sigterm_is_killed():
    before = time.monotonic()
    result = run(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], timeout=0.3)
    assert result.timed_out and not result.stuck and not alive(result.pid)
    assert time.monotonic() - before < 4


def test_its_own_children_are_killed_with_it(tmp_path: pathlib.Path):
    note = tmp_path / "pid"
    result = run(["sh", "-c", f"sleep 600 & echo $! > {note}; wait"], timeout=0.4)
    assert result.timed_out
    time.sleep(0.1)
    assert not alive(int(note.read_text()))


def test_a_child_that_cannot_be_killed_is_left_behind(monkeypatch: pytest.MonkeyPatch):
    """No signal reaches a process that hangs in the kernel; here none is sent, which looks the same."""
    monkeypatch.setattr(subject.os, "killpg", lambda *_args: None)
    before = time.monotonic()
    result = run(["sleep", "60"], timeout=0.2)
    elapsed = time.monotonic() - before
    os.kill(result.pid, 9)
    os.waitpid(result.pid, 0)
    assert result.stuck and result.timed_out and elapsed < 4
    assert "cannot be killed" in result.why("sleep")


def test_a_grandchild_that_keeps_the_pipe_does_not_hold_us_up():
    before = time.monotonic()
    result = run(["sh", "-c", "setsid sleep 5 & echo done"], timeout=30)
    assert result.out == "done\n" and not result.timed_out
    assert time.monotonic() - before < 3


def test_output_is_limited_and_the_child_still_ends():
    result = run(["sh", "-c", "yes | head -c 3000000"], limit=1000)
    assert result.rc == 0 and len(result.out) == 1000 and result.truncated


def test_large_output_on_both_pipes():
    result = run(["sh", "-c", "yes | head -c 400000; yes n | head -c 400000 >&2"])
    assert (len(result.out), len(result.err)) == (400000, 400000) and not result.truncated


def test_own_session_and_english():
    result = run([sys.executable, "-c", "import os; print(os.getsid(0) == os.getpid(), os.environ['LC_ALL'])"])
    assert result.out.split() == ["True", "C.UTF-8"]


def test_environment_is_added_to():
    result = run(["sh", "-c", "echo $A-$HOME"], env={"A": "1"})
    assert result.out.strip() == f"1-{os.environ.get('HOME', '')}"


def test_bytes_and_undecodable_text():
    assert run_bytes(["printf", "\\377"]).out == b"\xff"
    assert run(["printf", "\\377"]).out == "�"


def test_a_caller_never_waits_for_a_stopped_child():
    """SIGSTOP keeps a process from handling SIGTERM; SIGKILL still ends it."""
    result = run(["sh", "-c", "kill -STOP $$"], timeout=0.3)
    assert result.timed_out and not result.stuck
    with pytest.raises(ChildProcessError):
        os.waitpid(result.pid, os.WNOHANG)


def test_no_shell():
    assert run(["echo", "$HOME; exit"]).out == "$HOME; exit\n"
