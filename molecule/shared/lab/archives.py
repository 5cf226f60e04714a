# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloaded packages: one pool a suite, hard-linked into each host, so that large ones are fetched once."""
from __future__ import annotations

import contextlib
import os
import pwd
from pathlib import Path


def _link(source: Path, target: Path) -> None:
    for path in source.glob("*.deb"):
        goal = target / path.name
        if not goal.exists() and path.is_file():
            os.link(path, goal)


def fill(folder: Path, pool: Path) -> Path:
    """A folder for /var/cache/apt/archives of a new host, with everything of the pool; hosts never share apt's lock."""
    pool.mkdir(parents=True, exist_ok=True)
    (folder / "partial").mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(KeyError):  # without that user apt downloads as root and says so
        os.chown(folder / "partial", pwd.getpwnam("_apt").pw_uid, 0)
    (folder / "partial").chmod(0o700)
    _link(pool, folder)
    return folder


def harvest(folder: Path, pool: Path) -> None:
    """Give the pool what a host has downloaded."""
    if folder.is_dir():
        pool.mkdir(parents=True, exist_ok=True)
        _link(folder, pool)
