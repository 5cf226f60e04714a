# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages: the one package manager of this system, and its reader."""

from __future__ import annotations

from . import packages_apt
from .context import Context
from .system import family_of, os_release
from .tree import Tree

_NOT_YET = ("installed", "available", "origins", "held", "pins", "repositories", "broken", "auto_upgrades", "locked_by",
            "cache_age", "manual")  # fmt: skip


def read(ctx: Context) -> None:
    found = manager(ctx.tree)
    if found == "apt":
        packages_apt.read(ctx)
        return
    if found is None:
        ctx.cannot("packages", "neither apt nor dnf nor zypper is there")
        return
    ctx.set("packages.manager", found)
    for key in _NOT_YET:
        ctx.cannot(f"packages.{key}", f"packages of {found} are not read yet")


def manager(tree: Tree) -> str | None:
    """apt, dnf or zypper: by the system's family, then by what is there."""
    family = family_of(os_release(tree) or {})
    if family == "debian" or (family is None and tree.isfile("/var/lib/dpkg/status")):
        return "apt"
    if family == "suse" or (family is None and tree.isfile("/usr/bin/zypper")):
        return "zypper"
    if family == "redhat" or (family is None and (tree.isfile("/usr/bin/dnf") or tree.isfile("/usr/bin/dnf5"))):
        return "dnf"
    return None
