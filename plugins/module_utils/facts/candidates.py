# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels that the next full upgrade would bring, if no hold of ours stood in the way.

The package manager's own resolver says it, in a dry run: which kernel comes follows from meta packages, versions,
priorities and dependencies, and nothing but the resolver weighs them all. Our own holds are left out for that run
alone; those of people stay. Older kernels that the sources still offer, and that are newer than what is installed, are
listed below it: a module may be there for one of them and not yet for the newest.
"""

from __future__ import annotations

from collections.abc import Callable

from . import candidate, candidates_apt, candidates_dnf, candidates_zypper
from .context import Context
from .kernel import images
from .packages import manager

PATH = "kernel.candidates"
_Reader = Callable[[Context, "set[str]"], "tuple[list[candidate.Candidate], set[str]]"]
_READERS: dict[str, _Reader] = {
    "apt": candidates_apt.read,
    "dnf": candidates_dnf.read,
    "zypper": candidates_zypper.read,
}


def read(ctx: Context) -> None:
    """Set ``kernel.candidates``, or say why nobody knows."""
    if not ctx.tree.is_host:
        ctx.cannot(PATH, "another tree is read: its package manager is not asked")
        return
    found = manager(ctx.tree)
    if found is None:
        ctx.cannot(PATH, "neither apt nor dnf nor zypper is there")
        return
    with ctx.attempt(PATH):
        installed = {release for release, image in images(ctx.tree).items() if image}
        rows, kept = _READERS[found](ctx, installed)
        ctx.set(PATH, candidate.newest(rows, kept))
