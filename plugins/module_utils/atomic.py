# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are either the old or the new one, whatever moment the power goes.

Write beside the target, fsync, rename, fsync the directory. Raises OSError as the system gives it.
"""
from __future__ import annotations

import contextlib
import os
import stat
import tempfile

TMP_PREFIX = ".baremetal-nvidia."


def sync_dir(path: str) -> None:
    """Make the names in directory ``path`` durable. File systems that cannot (FAT, some network ones) are let pass."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: str) -> None:
    """Make the content of ``path`` durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def publish(tmp: str, path: str) -> None:
    """Make ``tmp`` (same file system, complete) the new ``path``, durably."""
    sync_file(tmp)
    os.rename(tmp, path)
    sync_dir(os.path.dirname(path))


def write(path: str, data: str | bytes, mode: int = 0o644, dir_mode: int = 0o755) -> None:
    """Replace ``path`` by ``data`` with exactly ``mode``; missing directories are made with ``dir_mode``.

    A symbolic link is followed, so that what it names is replaced and the link stays.
    """
    path = os.path.realpath(path)
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=dir_mode, exist_ok=True)
    raw = data.encode("utf-8") if isinstance(data, str) else data
    fd, tmp = tempfile.mkstemp(prefix=TMP_PREFIX, dir=directory)
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(raw)
            handle.flush()
            os.fchmod(handle.fileno(), mode)
            os.fsync(handle.fileno())
        os.rename(tmp, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(tmp)
        raise
    sync_dir(directory)


def remove(path: str) -> bool:
    """Remove ``path`` durably; say whether it was there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    sync_dir(os.path.dirname(path))
    return True


def read_text(path: str) -> str | None:
    """The text of ``path``, or None when there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def mode_of(path: str) -> int | None:
    """The permission bits of ``path``, or None when it is absent."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
