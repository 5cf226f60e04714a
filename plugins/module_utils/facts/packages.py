# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages: the one package manager of this system, and its reader."""

from __future__ import annotations

from . import arrivals, history, kernel_guard, packages_apt, packages_dnf, packages_zypper
from .context import Context
from .system import family_of, os_release
from .tree import Tree

_READERS = {"apt": packages_apt.read, "dnf": packages_dnf.read, "zypper": packages_zypper.read}


def read(ctx: Context) -> None:
    found = manager(ctx.tree)
    if found is None:
        ctx.cannot("packages", "neither apt nor dnf nor zypper is there")
    else:
        _READERS[found](ctx)
        history.read(ctx, found)
        arrivals.read(ctx, found)
        kernel_guard.read(ctx, found)


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
