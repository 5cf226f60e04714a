# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the backend for the host at hand."""
from __future__ import annotations

import os

from . import apt, base

_OTHERS = (("dnf", "usr/bin/dnf"), ("zypper", "usr/bin/zypper"), ("yum", "usr/bin/yum"), ("pacman", "usr/bin/pacman"))


def detect(root: str = "/") -> str | None:
    """The name of the package manager of the tree ``root``, or None."""
    if os.path.exists(os.path.join(root, "var/lib/dpkg/status")):
        return "apt"
    for name, path in _OTHERS:
        if os.path.exists(os.path.join(root, path)):
            return name
    return None


def backend(run: base.Runner, root: str = "/", name: str | None = None) -> base.PackageManager:
    """The backend for ``name``, or for what the host has.

    Raises base.NotSupported, naming the manager, where there is no backend for it yet.
    """
    name = name or detect(root)
    if name == "apt":
        return apt.Apt(run, root)
    if name is None:
        raise base.NotSupported("no package manager was found here (looked for dpkg, dnf, zypper)")
    raise base.NotSupported(f"package manager {name} is not supported yet: only apt is")
