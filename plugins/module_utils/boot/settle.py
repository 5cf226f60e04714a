# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that GRUB finds whole whatever moment the power goes.

GRUB does not replay the journal of ext4 or XFS: what fsync has made durable for Linux, it may not see, or see by halves
(the new name, and an inode that is not there yet). So what a rename brings is written to its place before and after,
the former file stays until the new one is there, and the environment block, which keeps its size, is written in place.
"""
from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct

from .. import atomic

_CHECKPOINT = 0x4004662B    # EXT4_IOC_CHECKPOINT, Linux 5.14
_FREEZE, _THAW = 0xC0045877, 0xC0045878
FORMER = ".baremetal-nvidia.old"


def checkpoint(directory: str) -> bool:
    """Let the file system of ``directory`` write its journal to where it belongs; say whether it could."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.ioctl(fd, _CHECKPOINT, struct.pack("I", 0))
            return True
        # freezing does it too, where it cannot stop this very process
        if os.stat(directory).st_dev == os.stat("/").st_dev:
            return False
        former = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            fcntl.ioctl(fd, _FREEZE, 0)
            fcntl.ioctl(fd, _THAW, 0)
        except OSError:
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        return True
    finally:
        os.close(fd)


def swap(new: str, path: str, on_host: bool) -> None:
    """Let ``new`` (same directory, complete) take the place of ``path``, whose former file has a second name already.

    ``on_host``: not one of a tree that nobody boots.
    """
    directory = os.path.dirname(path)
    atomic.sync_file(new)
    atomic.sync_dir(directory)
    if on_host:
        checkpoint(directory)
    os.rename(new, path)
    atomic.sync_dir(directory)
    if on_host:
        checkpoint(directory)


def replace(new: str, path: str, on_host: bool) -> None:
    """Make ``new`` (same directory, complete) the file ``path``; its former file lives until the new one is there."""
    former = path + FORMER
    atomic.remove(former)
    with contextlib.suppress(OSError):    # there is none yet, or FAT, which has no second names and no journal
        os.link(path, former)
    swap(new, path, on_host)
    atomic.remove(former)


def overwrite(path: str, data: bytes) -> None:
    """Write ``data`` into a file of the same size, where it lies."""
    fd = os.open(path, os.O_WRONLY)
    try:
        if os.pwrite(fd, data, 0) != len(data):
            raise OSError(f"{path} was not written whole")
        os.fsync(fd)
    finally:
        os.close(fd)
