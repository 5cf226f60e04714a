# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard in front of the package manager: what it could be called by here, what does call it, and what it allows."""

from __future__ import annotations

from typing import Any

from ..kernel_guard import guard, script
from .context import Context


def read(ctx: Context, manager: str) -> None:
    """``packages.guard``: ``{can: [..], via: [..], allowed: [..], proved: [..], reason: text | null}``.

    ``via`` lists what is in place word for word as this release writes it; [] = there is no guard.
    """
    if not ctx.tree.is_host:
        ctx.cannot("packages.guard", "another tree is read: nothing runs in it")
        return
    with ctx.attempt("packages.guard"):
        ctx.set("packages.guard", _guard(ctx, manager))


def _guard(ctx: Context, manager: str) -> dict[str, Any]:
    tree = ctx.tree
    hooks, reason = guard.hooks(manager, ctx.run, tree.root)
    listed = tree.text_exact(script.LIST)
    there = listed is not None and _as_written(ctx, guard.File(script.PATH, script.SCRIPT, 0o755))
    allowed, proved = script.parse_list(listed or "")
    via = sorted(kind for kind, file in hooks.items() if there and _as_written(ctx, file))
    return {"can": sorted(hooks), "via": via, "allowed": allowed, "proved": proved, "reason": reason}


def _as_written(ctx: Context, file: guard.File) -> bool:
    if ctx.tree.text_exact(file.path) != file.content:
        return False
    return ctx.tree.stat(file.path).st_mode & 0o777 == file.mode
