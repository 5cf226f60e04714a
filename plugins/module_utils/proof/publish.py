# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the package transaction finds its build done.

Debian's ``/usr/lib/dkms/common.postinst`` removes whatever DKMS has under the driver's name and version and builds
anew, so a build that is only loaded into the host's DKMS tree beforehand is thrown away; ``dkms ldtarball`` of DKMS 3
takes the first kernel of a tarball and skips the others. What DKMS documents and keeps to are its per-kernel override
files, ``/etc/dkms/<name>-<version>-<kernel>.conf``: ours replaces the make command, for this driver version and this
kernel alone, by copying the proved files, after their checksums and that of the kernel's Module.symvers were compared.
When they differ the original make command runs. DKMS then signs and installs as ever. The files are taken away again
after the transaction (``withdraw``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import atomic
from ..checksum import sha256_of
from ..state import DIRECTORY
from .bundle import MANIFEST
from .errors import ProofError

MARK = "# Managed by baremetal.nvidia: the proved build of this kernel."
TMP_PREFIX = ".partial-"


@dataclass(frozen=True)
class Place:
    """Where one build is published below ``root``."""

    root: str
    name: str
    version: str
    release: str

    @property
    def key(self) -> str:
        return f"{self.name}-{self.version}-{self.release}"

    @property
    def parent(self) -> str:
        return os.path.join(self.root, DIRECTORY.lstrip("/"), "proved")

    @property
    def directory(self) -> str:
        return os.path.join(self.parent, self.key)

    @property
    def override(self) -> str:
        return os.path.join(self.root, "etc/dkms", self.key + ".conf")


def override_text(place: Place) -> str:
    """The DKMS override. DKMS echoes it through eval, so it has no quotes, no globs and no variables but MAKE[0]."""
    there = f"{DIRECTORY}/proved/{place.key}"
    return (
        f"{MARK}\n# Copied if its checksums hold, else the module is built. Removed after the package transaction.\n"
        f'MAKE[0]="( cd {there} && sha256sum --status --check SHA256SUMS )'
        f' && cp -R {there}/files/. ./ || ${{MAKE[0]}}"\n'
    )


def foreign(place: Place) -> str | None:
    """The override file, when it is there and not ours."""
    text = atomic.read_text(place.override)
    return place.override if text is not None and not text.startswith(MARK) else None


def published(place: Place) -> bool:
    """Whether a build is offered to DKMS."""
    return os.path.isfile(os.path.join(place.directory, MANIFEST)) and atomic.read_text(
        place.override
    ) == override_text(place)


def publish(place: Place, bundle: str, manifest: Mapping[str, Any], symvers: str | None) -> None:
    """Offer the bundle in directory ``bundle`` to DKMS: files first, complete and synced, the override last.

    ``symvers``: SHA-256 of the Module.symvers it was built against; it must be the one of the headers DKMS will see.
    Raises ProofError when a person has an override of their own.
    """
    other = foreign(place)
    if other:
        raise ProofError(
            f"{other} is not ours: DKMS would mix it with the proved build. Remove it, or build by hand", place.release
        )
    os.makedirs(place.parent, mode=0o700, exist_ok=True)
    tmp = tempfile.mkdtemp(prefix=TMP_PREFIX, dir=place.parent)
    try:
        for name in manifest["modules"]:
            target = os.path.join(tmp, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(bundle, name), target)
            atomic.sync_file(target)
        shutil.copyfile(os.path.join(bundle, MANIFEST), os.path.join(tmp, MANIFEST))
        sums = {name: row["sha256"] for name, row in manifest["modules"].items()}
        if symvers:
            sums[f"/lib/modules/{place.release}/build/Module.symvers"] = symvers
        atomic.write(os.path.join(tmp, "SHA256SUMS"), "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))
        shutil.rmtree(place.directory, ignore_errors=True)
        os.rename(tmp, place.directory)
    except BaseException:
        shutil.rmtree(tmp, ignore_errors=True)
        raise
    atomic.sync_dir(place.parent)
    atomic.write(place.override, override_text(place))


def withdraw(place: Place) -> bool:
    """Take an offered build away: the override first. True when there was something."""
    gone = False
    if foreign(place) is None:
        gone = atomic.remove(place.override)
    if os.path.isdir(place.directory):
        shutil.rmtree(place.directory, ignore_errors=True)
        gone = True
    return gone


def remove_partial(root: str) -> list[str]:
    """Remove what a killed run left half published; only the holder of the proof lock may call this."""
    parent = Place(root, "", "", "").parent
    gone = []
    for name in sorted(os.listdir(parent)) if os.path.isdir(parent) else []:
        if name.startswith(TMP_PREFIX):
            gone.append(os.path.join(parent, name))
            shutil.rmtree(gone[-1], ignore_errors=True)
    return gone


def symvers_of(build: str | None) -> str | None:
    """SHA-256 of the Module.symvers in a headers directory; None without one."""
    path = os.path.join(build or "/nonexistent", "Module.symvers")
    return sha256_of(path) if os.path.isfile(path) else None
