# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that a transaction replaces or takes out are kept as files, so that there is a way back.

Archives often have the newest version alone, and dnf empties its cache after a transaction. A package is fetched at its
installed version; where no source has that any more, a Debian package is packed again from its files. The folder has
those of one move: it is emptied when another one begins, and not when a cut-off one goes on.
"""
from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .. import atomic
from ..checksum import sha256_of
from ..proof import backends
from ..proof.errors import ProofError
from ..stage.debs import Debs
from .base import Runner
from .directory import plain
from .transaction import Todo, Wish

MARK = ".move"
SUMS = "SHA256SUMS"


class Source(Protocol):
    """What fetches packages: see ``proof.backends``."""

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        """Fetch packages at exact versions into a directory. Raises ProofError."""


@dataclass
class Kept:
    """What was kept in ``folder``. ``lost``: packages that no source offers any more, as NAME VERSION."""

    folder: str
    files: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Keeper:
    """Keeps what leaves. ``run`` starts programs, ``source`` fetches."""

    def __init__(self, run: Runner, manager: str, folder: str, root: str = "/", source: Source | None = None) -> None:
        self.run, self.manager, self.root = run, manager, root
        self.folder = os.path.join(root, folder.lstrip("/"))
        self.source: Source = source or backends.backend(run, root)

    def keep(self, todo: Todo, wish: Wish, there: Mapping[str, tuple[str, ...]]) -> Kept | None:
        """Keep what ``todo`` replaces or takes out; None where it does neither. Raises OSError: then nothing moved."""
        leaving = {_plain_name(name, there[name][-1]): there[name][-1] for name in (*todo.install, *todo.remove)
                   if name in there}
        if not leaving:
            return None
        self._begin(wish)
        missing = {name: version for name, version in leaving.items() if not self._file(name, version)}
        scratch = os.path.join(self.folder, ".partial")
        shutil.rmtree(scratch, ignore_errors=True)
        if missing:
            os.makedirs(scratch, mode=0o700)
            if not wish.only_files:
                self._fetch(missing, scratch)
            self._pack({name: version for name, version in missing.items() if not self._file(name, version)}, scratch)
            shutil.rmtree(scratch)
        files = sorted(one for one in os.listdir(self.folder) if one.endswith((".deb", ".rpm")))
        sums = "".join(f"{sha256_of(os.path.join(self.folder, one))}  {one}\n" for one in files)
        atomic.write(os.path.join(self.folder, SUMS), sums)
        lost = [f"{name} {version}" for name, version in sorted(leaving.items()) if not self._file(name, version)]
        return Kept(self.folder, files, lost)

    def _begin(self, wish: Wish) -> None:
        """Empty the folder unless it is this very move that goes on."""
        mark = os.path.join(self.folder, MARK)
        move = hashlib.sha256(json.dumps(sorted(wish.packages.items())).encode()).hexdigest()
        if (atomic.read_text(mark) or "").strip() != move:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.makedirs(self.folder, mode=0o755)
            atomic.write(mark, move + "\n")

    def _file(self, name: str, version: str) -> str | None:
        if self.manager == "apt":
            pattern = f"{glob.escape(name)}_{glob.escape(version.replace(':', '%3a'))}_*.deb"
        else:
            pattern = f"{glob.escape(name)}-{glob.escape(plain(version))}.*.rpm"
        return next(iter(glob.glob(os.path.join(glob.escape(self.folder), pattern))), None)

    def _fetch(self, wanted: Mapping[str, str], scratch: str) -> None:
        """All at once; where one is not there any more, each by itself."""
        try:
            self._take(self.source.download(wanted, scratch))
        except ProofError:
            for name, version in wanted.items() if len(wanted) > 1 else ():
                try:
                    self._take(self.source.download({name: version}, scratch))
                except ProofError:
                    continue  # it is among the lost then, unless it can be packed again

    def _pack(self, wanted: Mapping[str, str], scratch: str) -> None:
        if self.manager != "apt" or not wanted:
            return
        kept = Debs(self.run, self.root).keep({name: (version, "") for name, version in wanted.items()}, scratch)
        for name, path in kept.items():
            arch = self.run(["dpkg-deb", "--field", path, "Architecture"], timeout=60).out.strip() or "all"
            named = os.path.join(scratch, f"{name}_{wanted[name].replace(':', '%3a')}_{arch}.deb")
            os.rename(path, named)
            self._take([named])

    def _take(self, paths: list[str]) -> None:
        for path in paths:
            atomic.sync_file(path)
            os.replace(path, os.path.join(self.folder, os.path.basename(path)))
        atomic.sync_dir(self.folder)


def _plain_name(name: str, version: str) -> str:
    """The name without its version: one of several kernels' packages is asked for with it."""
    return name.partition(f"-{plain(version)}")[0]
