# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the backend for the host at hand."""
from __future__ import annotations

import os

from . import apt, base, dnf, zypper

_OTHERS = (("zypper", "usr/bin/zypper"), ("dnf", "usr/bin/dnf"), ("dnf", "usr/bin/dnf5"), ("yum", "usr/bin/yum"),
           ("pacman", "usr/bin/pacman"))
_FAMILIES = {"debian": "apt", "ubuntu": "apt", "rhel": "dnf", "fedora": "dnf", "suse": "zypper", "sles": "zypper"}


def detect(root: str = "/") -> str | None:
    """The name of the package manager of the tree ``root``, or None: by its family, then by what is there."""
    family = _family(root)
    if family is not None:
        return family
    if os.path.exists(os.path.join(root, "var/lib/dpkg/status")):
        return "apt"
    for name, path in _OTHERS:
        if os.path.exists(os.path.join(root, path)):
            return name
    return None


def _family(root: str) -> str | None:
    """What os-release says; programs of another family may be installed beside the system's own."""
    for path in ("etc/os-release", "usr/lib/os-release"):
        try:
            with open(os.path.join(root, path), encoding="utf-8", errors="replace") as handle:
                lines = handle.read().splitlines()
        except OSError:
            continue
        values = dict(line.split("=", 1) for line in lines if "=" in line)
        words = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").replace("'", "").split()
        return next((_FAMILIES[word] for word in words if word in _FAMILIES), None)
    return None


def backend(run: base.Runner, root: str = "/", name: str | None = None) -> base.PackageManager:
    """The backend for ``name``, or for what the host has.

    Raises base.NotSupported, naming the manager, where there is no backend for it.
    """
    name = name or detect(root)
    if name == "apt":
        return apt.Apt(run, root)
    if name == "dnf":
        return dnf.Dnf(run, root)
    if name == "zypper":
        return zypper.Zypper(run, root)
    if name is None:
        raise base.NotSupported("no package manager was found here (looked for dpkg, dnf, zypper)")
    raise base.NotSupported(f"package manager {name} is not supported: only apt, dnf and zypper are")
