# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of the driver that have packages of their own and must be of exactly its version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..model import version as versions
from .context import Context

#: Components of an NVSwitch fabric that fail with a driver of another patch level.
LOCKSTEP = ("fabricmanager", "imex", "nscq", "nvsdm")
TITLES = {"fabricmanager": "fabric manager", "imex": "IMEX", "nscq": "NSCQ", "nvsdm": "NVSDM", "nvlsm": "NVLSM",
          "persistenced": "the persistence daemon"}
_BRANCH = re.compile(r"-\d{3}\Z")
_KINDS = {"nvidia-fabricmanager": "fabricmanager", "nvidia-fabric-manager": "fabricmanager",
          "cuda-drivers-fabricmanager": "fabricmanager", "nvidia-imex": "imex", "libnvidia-nscq": "nscq",
          "libnvsdm": "nvsdm", "nvlsm": "nvlsm"}


def component_of(name: str) -> str | None:
    """Return the component that a package is of, whatever branch its name has: libnvidia-nscq-570 is nscq."""
    return _KINDS.get(_BRANCH.sub("", name))


def of_branch(name: str, branch: str) -> str:
    """Return a package's name with another branch in it, where it has one: libnvidia-nscq-570 as libnvidia-nscq-580."""
    return _BRANCH.sub(f"-{branch}", name)


def out_of_step(context: Context) -> Iterator[tuple[str, str, str, str]]:
    """Yield title, package, its version and the driver's, for each installed part that is of another version."""
    installed, driver = context.host.packages.installed, context.installed
    if driver is None or not isinstance(installed, dict):
        return
    persistenced = None
    if context.packaging is not None:
        row = context.packaging.fabric_package("persistenced", driver.version, driver.source or "nvidia")
        persistenced = row.packages[0] if row is not None and row.lockstep else None
    for name, there in installed.items():
        kind = "persistenced" if name == persistenced else component_of(name)
        upstream = versions.upstream(there)
        if kind in (*LOCKSTEP, "persistenced") and upstream is not None and upstream != driver.version:
            yield TITLES[kind], name, upstream, driver.version
