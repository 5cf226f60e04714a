# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""Who has the lock of a package manager."""

from __future__ import annotations

import fcntl
import struct
import subprocess
import sys

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import locks
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree

HOLD = "import fcntl,sys,time; f=open(sys.argv[1],'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / "lock-frontend"
    path.write_text("")
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "held"
    yield str(path), child
    child.kill()
    child.wait()
    child.stdout.close()


def context():
    return Context(Tree())


def test_lock_holder(lock):
    path, child = lock
    found = locks.holder(context(), ["/nonexistent/lock", path])
    assert found["pid"] == child.pid and found["command"].startswith("python")


def test_free_lock(tmp_path):
    path = tmp_path / "lock"
    path.write_text("")
    assert locks.holder(context(), [str(path)]) is None


def test_lock_that_may_not_be_opened(lock, monkeypatch):
    path, child = lock

    def denied(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(locks, "_asked", denied)
    assert locks.holder(context(), [path])["pid"] == child.pid


def test_flock_layout():
    """The answer of F_GETLK is read with the kernel's layout: 32 bytes on 64-bit machines."""
    assert struct.calcsize(locks._FLOCK) == 32 and fcntl.F_GETLK


def test_pid_file(host):
    host.put("/run/zypp.pid", "4711\n")
    read_context = Context(host.tree)
    assert locks.by_pid_file(read_context, locks.PID_FILES) is None
    host.put("/proc/4711/comm", "zypper\n")
    assert locks.by_pid_file(read_context, locks.PID_FILES) == {"pid": 4711, "command": "zypper"}
