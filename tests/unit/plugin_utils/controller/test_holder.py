# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the run that has a lease still lives: known for runs of this machine, unknown for all others."""
from __future__ import annotations

import os
import pathlib
import subprocess

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import holder


def test_a_living_run_is_not_dead() -> None:
    line = holder.describe(os.getpid())
    assert line and not holder.is_dead(line)


def test_a_killed_run_is_dead() -> None:
    child = subprocess.Popen(["sleep", "60"])
    line = holder.describe(child.pid)
    assert line and not holder.is_dead(line)
    child.kill()
    child.wait()
    assert holder.is_dead(line)
    assert holder.describe(child.pid) is None


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["sleep", "60"])
    line = holder.describe(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert holder.is_dead(line)
    child.wait()


def test_a_pid_that_was_given_anew_is_another_process() -> None:
    line = str(holder.describe(os.getpid()))
    place, pid, started = line.rsplit("|", 2)
    assert holder.is_dead(f"{place}|{pid}|{int(started) + 1}")


def test_of_other_machines_boots_and_containers_nothing_is_known() -> None:
    line = str(holder.describe(os.getpid()))
    host, boot, space, _pid, _started = line.split("|")
    gone = "999999999|1"
    assert holder.is_dead(f"{host}|{boot}|{space}|{gone}")
    assert not holder.is_dead(f"other|{boot}|{space}|{gone}")
    assert not holder.is_dead(f"{host}|other|{space}|{gone}")
    assert not holder.is_dead(f"{host}|{boot}|pid:[1]|{gone}")


def test_rubbish_and_nothing_are_not_dead(tmp_path: pathlib.Path) -> None:
    for line in (None, "", "x", "a|b|c", "a|b|c|d|e"):
        assert not holder.is_dead(line)
    assert holder.describe(os.getpid(), tmp_path) is None
    assert not holder.is_dead(holder.describe(os.getpid()), tmp_path)
