# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are the old or the new one, never something between."""
from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import _bootstrap  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic


def test_writes_content_and_exact_mode(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a" / "b"
    before = os.umask(0o077)
    try:
        atomic.write(str(path), "new\n", mode=0o644)
    finally:
        os.umask(before)
    assert path.read_text() == "new\n" and atomic.mode_of(str(path)) == 0o644
    assert [p.name for p in path.parent.iterdir()] == ["b"]


def test_a_link_stays_a_link(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    atomic.write(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"


def test_failure_leaves_the_old_file_and_no_litter(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def no_space(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        atomic.write(str(path), "new")
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["file"]


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic
os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
atomic.write(sys.argv[2], "new" * 100000)
"""


def test_killed_between_temporary_file_and_rename_leaves_the_old_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    tests = str(pathlib.Path(_bootstrap.__file__).parent)
    child = subprocess.run([sys.executable, "-c", KILLED, tests, str(path)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    left = [p.name for p in tmp_path.iterdir() if p.name != "file"]
    assert len(left) == 1 and left[0].startswith(atomic.TMP_PREFIX), "the child did get as far as the temporary file"
    atomic.write(str(path), "newer")
    assert path.read_text() == "newer"


def test_directory_is_synced_after_the_rename(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real_rename, real_fsync = os.rename, os.fsync
    monkeypatch.setattr(atomic.os, "rename", lambda a, b: (order.append("rename"), real_rename(a, b)))

    def fsync(fd: int) -> None:
        order.append("dir" if os.path.isdir(os.readlink(f"/proc/self/fd/{fd}")) else "file")
        real_fsync(fd)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    atomic.write(str(tmp_path / "file"), "new")
    assert order == ["file", "rename", "dir"]


def test_remove_says_whether_there_was_something(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    assert atomic.remove(str(tmp_path / "file")) is True
    assert atomic.remove(str(tmp_path / "file")) is False
