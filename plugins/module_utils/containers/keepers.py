# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that keep what they are: owner, mode, SELinux context and links stay when the content is exchanged.

A file is written beside its place, synced and renamed. What was there is kept in the backup folder, the newest few.
"""
from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time

from .. import atomic, state

BACKUPS = state.DIRECTORY + "/backups"


def read(path: str) -> bytes | None:
    """The content of a file, or None if there is none."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def replace(path: str, content: bytes, mode: int = 0o644) -> None:
    """Put ``content`` in the place of ``path``; ``mode`` counts for a new file. A link is followed."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    fd, tmp = tempfile.mkstemp(prefix=atomic.TMP_PREFIX, dir=folder)
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(content)
            handle.flush()
            _like(path, handle.fileno(), mode)
            os.fsync(handle.fileno())
        os.rename(tmp, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(tmp)
        raise
    atomic.sync_dir(folder)


def _like(path: str, fd: int, mode: int) -> None:
    """Give the open file the owner, mode and attributes of ``path``, or what a new file has."""
    try:
        info = os.stat(path)
    except FileNotFoundError:
        os.fchmod(fd, mode)
        return
    os.fchown(fd, info.st_uid, info.st_gid)
    os.fchmod(fd, stat.S_IMODE(info.st_mode))
    try:
        names = os.listxattr(path)
    except OSError:
        return
    for name in names:  # the SELinux context and access lists among them
        with contextlib.suppress(OSError):
            os.setxattr(fd, name, os.getxattr(path, name))


def backup(path: str, keep: int = 5, folder: str = BACKUPS, now: float | None = None) -> str | None:
    """Copy ``path`` into the backup folder, for root alone, and let the newest ``keep`` live. None without a file."""
    content = read(path)
    if content is None:
        return None
    target_folder = os.path.join(folder, os.path.dirname(path).strip("/"))
    os.makedirs(target_folder, mode=0o700, exist_ok=True)
    os.chmod(folder, 0o700)
    name = os.path.basename(path)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() if now is None else now))
    target = os.path.join(target_folder, f"{name}.{stamp}")
    count = 1
    while os.path.exists(target):
        target = os.path.join(target_folder, f"{name}.{stamp}.{count:03d}")
        count += 1
    atomic.write(target, content, mode=0o600, dir_mode=0o700)
    kept = sorted(entry for entry in os.listdir(target_folder) if entry.startswith(name + "."))
    for entry in kept[: -max(keep, 1)]:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(target_folder, entry))
    return target


def remove(path: str) -> None:
    """Take a file away, and the link with what it names: containerd does not start with one that dangles."""
    target = os.path.realpath(path)
    if target != os.path.abspath(path):
        atomic.remove(path)
    atomic.remove(target)


def restore(path: str, saved: str | None) -> None:
    """Put a backup back, or take the file away where there was none before."""
    if saved is None:
        atomic.remove(os.path.realpath(path))
        return
    content = read(saved)
    if content is None:
        raise FileNotFoundError(f"the backup {saved} of {path} is gone")
    replace(path, content)
