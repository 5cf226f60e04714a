# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proof with package files instead of repositories: what a directory holds is all that is on offer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any, Callable, ClassVar

from ..checksum import sha256_of
from ..facts.kmps import Symbols
from ..packages import directory
from ..packages.base import PackageError
from .apt import Offer
from .backends import Source
from .errors import ProofError

Runner = Callable[..., Any]


class Files:
    """The questions of :class:`.backends.Source`, answered by files; what is installed the manager says."""

    offered: ClassVar[str] = "among the package files"
    way_out: ClassVar[str] = "put it there, with its checksum"

    def __init__(self, source: Source, files: Mapping[str, str | None], run: Runner, manager: str) -> None:
        self.source, self.digests = source, files
        try:
            self.files = directory.read(files, run, manager)
        except PackageError as error:
            raise ProofError(str(error)) from error

    def installed(self, name: str) -> str | None:
        """See :class:`.backends.Source`."""
        return self.source.installed(name)

    def headers_name(self, release: str) -> str:
        """See :class:`.backends.Source`: files are called as their manager calls them."""
        return self.source.headers_name(release)

    def _find(self, name: str, version: str | None) -> directory.File | None:
        fitting = [one for one in self.files if self._is(one, name)]
        return next((one for one in fitting
                     if version is None or directory.plain(one.version) == directory.plain(version)), None)

    @staticmethod
    def _is(one: directory.File, name: str) -> bool:
        """Whether the name means the file; a kernel's headers of rpm are asked for with their version."""
        label = f"{one.name}-{directory.plain(one.version)}"
        return name in (one.name, label) or name.startswith(f"{label}.")

    def offer(self, name: str, version: str | None = None) -> Offer | None:
        """See :class:`.backends.Source`."""
        one = self._find(name, version)
        if one is None:
            return None
        return Offer(name=name, version=one.version, depends=tuple(group[0][0] for group in one.needs))

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        """See :class:`.backends.Source`. The digest is looked at once more: a file may have changed since."""
        paths = []
        for name, version in sorted(wanted.items()):
            one = self._find(name, version)
            if one is None:
                raise ProofError(f"{name} {version} is not among the package files: put it into the directory, with "
                                 "its checksum")
            target = os.path.join(into, os.path.basename(one.path))
            shutil.copyfile(one.path, target)
            wish = self.digests[one.path]
            if wish and sha256_of(target) != wish.lower():
                raise ProofError(f"{one.path} has another SHA-256 than {wish}: it is not the file that was meant")
            paths.append(target)
        return paths

    def unpack(self, package: str, into: str) -> None:
        """See :class:`.backends.Source`."""
        self.source.unpack(package, into)

    def required_symbols(self, package: str) -> Symbols:
        """See :class:`.backends.Source`."""
        return self.source.required_symbols(package)

    def provided_symbols(self, release: str) -> Symbols:
        """See :class:`.backends.Source`."""
        return self.source.provided_symbols(release)
