# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier runs left on the host: proved kernels, holds that are ours, an open transaction, files of one."""

from __future__ import annotations

from typing import Any

from .. import state as store
from ..managed_files import STAGE_PATHS, STATE_FILE
from .context import Context

_STAGES = "gpu_kernel"  # the role that brings kernels in


def read(ctx: Context) -> None:
    with ctx.attempt("state"):
        if not ctx.tree.exists(STATE_FILE):
            # a directory that may not be entered hides the file
            ctx.tree.names(STATE_FILE.rsplit("/", 1)[0])
            left = _left(ctx, None)
            ctx.set("state", {**(store.facts_view(store.empty()) or {}), "left": left} if left else None)
            return
        ctx.tree.read_bytes(STATE_FILE, 1)
        try:
            view = store.facts_view(store.read(ctx.tree.real(STATE_FILE))) or {}
            ctx.set("state", {**view, "left": _left(ctx, view.get("open"))})
        except store.StateError as error:
            ctx.cannot("state", str(error))


def _left(ctx: Context, opened: dict[str, Any] | None) -> list[str]:
    """The files of a kernel's coming in, where no transaction is open that they belong to."""
    if opened is not None and opened["role"] == _STAGES:
        return []
    return [path for path in STAGE_PATHS if ctx.tree.lexists(path)]
