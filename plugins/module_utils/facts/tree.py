# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read: the host itself or another tree, through one door.

:class:`Tree` reads files below a root, following symlinks as a process inside that root would. Nothing is ever written.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import stat as statmod

READ_LIMIT = 1024 * 1024
_MAX_LINKS = 40


class Tree:
    """Files below ``root``; paths are absolute and as seen from inside."""

    def __init__(self, root: str = "/") -> None:
        self.root = os.path.realpath(root)
        self.is_host = self.root == "/"

    def real(self, path: str) -> str:
        """The path on this machine for ``path`` inside the tree, symlinks resolved within the tree.

        The last components need not exist. Raises OSError (ELOOP) for symlink loops.
        """
        if self.is_host:
            return path
        return self.root + self.resolve(path)

    def resolve(self, path: str) -> str:
        """``path`` without symlinks, as seen from inside the tree."""
        if self.is_host:
            return os.path.realpath(path)
        todo = [part for part in path.split("/") if part]
        done: list[str] = []
        links = 0
        while todo:
            part = todo.pop(0)
            if part == ".":
                continue
            if part == "..":
                if done:
                    done.pop()
                continue
            try:
                target = os.readlink(os.path.join(self.root, *done, part))
            except OSError:
                done.append(part)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done = []
            todo = [piece for piece in target.split("/") if piece] + todo
        return "/" + "/".join(done)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """At most ``limit`` bytes of a regular file (or one of /proc and /sys). Raises OSError."""
        real = self.real(path)
        descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not statmod.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            parts: list[bytes] = []
            left = limit
            while left > 0:
                chunk = os.read(descriptor, min(left, 262144))
                if not chunk:
                    break
                parts.append(chunk)
                left -= len(chunk)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        """As :meth:`read_bytes`, as text; undecodable bytes are replaced. Raises OSError."""
        return self.read_bytes(path, limit).decode("utf-8", "replace")

    def text(self, path: str, limit: int = READ_LIMIT) -> str | None:
        """The stripped text, or None when there is no such file. Other errors are raised as OSError."""
        try:
            return self.read(path, limit).strip()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def text_exact(self, path: str, limit: int = READ_LIMIT) -> str | None:
        """The text with every byte of it kept (surrogateescape); None when there is no such file.

        Raises OSError, and ValueError when it is longer than the limit: a part of it would be misleading.
        """
        try:
            raw = self.read_bytes(path, limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(raw) > limit:
            raise ValueError(f"{path} is longer than {limit} bytes")
        return raw.decode("utf-8", "surrogateescape")

    def names(self, path: str) -> list[str]:
        """Sorted names in a directory; empty when there is none. Other errors are raised as OSError."""
        try:
            return sorted(os.listdir(self.real(path)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def glob(self, directory: str, pattern: str = "*") -> list[str]:
        """Sorted full paths of the entries of one directory that match; hidden files only if the pattern asks."""
        return [
            f"{directory.rstrip('/')}/{name}"
            for name in self.names(directory)
            if fnmatch.fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))
        ]

    def expand(self, pattern: str) -> list[str]:
        """Sorted paths that match a pattern with wildcards in any component (as shells do it, no ``**``)."""
        found = ["/"]
        for part in [piece for piece in pattern.split("/") if piece]:
            if any(char in part for char in "*?["):
                found = [hit for base in found for hit in self._glob_quietly(base, part)]
            else:
                found = [f"{base.rstrip('/')}/{part}" for base in found]
        return [path for path in found if self.lexists(path)]

    def _glob_quietly(self, base: str, part: str) -> list[str]:
        try:
            return self.glob(base, part)
        except OSError:
            return []

    def lexists(self, path: str) -> bool:
        head, tail = os.path.split(path.rstrip("/") or "/")
        try:
            return os.path.lexists(os.path.join(self.real(head), tail))
        except OSError:
            return False

    def exists(self, path: str) -> bool:
        try:
            return os.path.exists(self.real(path))
        except OSError:
            return False

    def isdir(self, path: str) -> bool:
        try:
            return os.path.isdir(self.real(path))
        except OSError:
            return False

    def isfile(self, path: str) -> bool:
        try:
            return os.path.isfile(self.real(path))
        except OSError:
            return False

    def readlink(self, path: str) -> str | None:
        """The text of a symlink, None when it is none or not there."""
        head, tail = os.path.split(path.rstrip("/"))
        try:
            return os.readlink(os.path.join(self.real(head), tail))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise

    def stat(self, path: str) -> os.stat_result:
        return os.stat(self.real(path))
