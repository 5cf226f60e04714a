# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proved builds kept as tarballs, so that hosts of one shape need one build between them.

The name of a tarball says for which shape it is and what its own SHA-256 must be, so one rename publishes it whole and
a changed or cut-off file is known by itself:
``nvidia-current-535.261.03_6.1.0-50-amd64_<shape>_<sha256>.tar.gz``.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tarfile
import tempfile

from .. import atomic
from ..checksum import sha256_of
from .errors import ProofError
from .shape import Shape

TMP_PREFIX = ".partial-"


class Cache:
    """The tarballs in ``directory``, which must be writable by root alone. An absent directory is an empty cache."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def _names(self, shape: Shape) -> list[str]:
        stem = f"{shape.dkms_name}-{shape.driver}_{shape.kernel}_{shape.digest}_"
        wanted = re.compile(re.escape(stem) + r"[0-9a-f]{64}\.tar\.gz\Z")
        try:
            return sorted(name for name in os.listdir(self.directory) if wanted.match(name))
        except FileNotFoundError:
            return []

    def trusted(self) -> None:
        """Raise ProofError when someone else than root could have put files here."""
        try:
            info = os.stat(self.directory)
        except FileNotFoundError:
            return
        if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o022:
            raise ProofError(
                f"cache_dir {self.directory} can be written by others (owner {info.st_uid}, mode "
                f"{stat.S_IMODE(info.st_mode):04o}): kernel modules are taken only from a directory that is "
                "root's alone. Give it to root with mode 0755, or name another one"
            )

    def find(self, shape: Shape) -> str | None:
        """A tarball for this shape, unread; None when there is none. Raises ProofError as ``trusted`` does."""
        names = self._names(shape)
        if not names:
            return None
        self.trusted()
        return os.path.join(self.directory, names[0])

    def open(self, path: str, shape: Shape, into: str) -> None:
        """Unpack a tarball into the empty directory ``into``. Raises ProofError when it was changed."""
        wanted = os.path.basename(path)[: -len(".tar.gz")].rsplit("_", 1)[1]
        info = os.lstat(path)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
            raise ProofError(f"{path} is not a file of root's own", shape.kernel)
        if sha256_of(path) != wanted:
            raise ProofError(
                f"{path} was changed after it was stored: its checksum is not the one in its name", shape.kernel
            )
        try:
            with tarfile.open(path, "r:gz") as archive:
                for member in archive.getmembers():
                    parts = member.name.split("/")
                    if (
                        not member.isfile()
                        or member.name.startswith("/")
                        or ".." in parts
                        or parts[0] not in ("files", "manifest.json")
                    ):
                        raise ProofError(f"{path} holds {member.name!r}, which no proved build has", shape.kernel)
                    target = os.path.join(into, member.name)
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    reader = archive.extractfile(member)
                    if reader is None:
                        raise ProofError(f"{path} holds {member.name!r}, which is no file", shape.kernel)
                    with open(target, "wb") as writer:
                        writer.write(reader.read())
        except (tarfile.TarError, OSError, EOFError) as exc:
            raise ProofError(f"{path} cannot be opened: {exc}", shape.kernel) from exc

    def store(self, bundle: str, shape: Shape) -> str:
        """Keep the bundle in directory ``bundle``; the path of its tarball. Others of the same shape are replaced."""
        os.makedirs(self.directory, mode=0o755, exist_ok=True)
        self.trusted()
        former = self._names(shape)
        fd, tmp = tempfile.mkstemp(prefix=TMP_PREFIX, dir=self.directory)
        os.close(fd)
        try:
            with tarfile.open(tmp, "w:gz", compresslevel=3) as archive:
                for where, _dirs, names in os.walk(bundle):
                    for name in sorted(names):
                        full = os.path.join(where, name)
                        archive.add(full, arcname=os.path.relpath(full, bundle), filter=_plain)
            os.chmod(tmp, 0o644)
            name = f"{shape.dkms_name}-{shape.driver}_{shape.kernel}_{shape.digest}_{sha256_of(tmp)}.tar.gz"
            atomic.publish(tmp, os.path.join(self.directory, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(tmp)
            raise
        for other in former:
            if other != name:
                self.drop(os.path.join(self.directory, other))
        return os.path.join(self.directory, name)

    def drop(self, path: str) -> None:
        """Remove a tarball that failed its check."""
        with contextlib.suppress(OSError):
            os.unlink(path)

    def remove_partial(self, older_than: float) -> list[str]:
        """Remove half written files that are older than ``older_than`` (epoch seconds): others may share this place."""
        gone = []
        for name in os.listdir(self.directory) if os.path.isdir(self.directory) else []:
            path = os.path.join(self.directory, name)
            with contextlib.suppress(OSError):
                if name.startswith(TMP_PREFIX) and os.lstat(path).st_mtime < older_than:
                    os.unlink(path)
                    gone.append(path)
        return gone


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nothing in a tarball says who built it."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = 0o644
    return member
