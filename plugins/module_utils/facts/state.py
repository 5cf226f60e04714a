# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier runs left on the host: proved kernels, holds that are ours, an open transaction."""

from __future__ import annotations

from .. import state as store
from ..managed_files import STATE_FILE
from .context import Context


def read(ctx: Context) -> None:
    with ctx.attempt("state"):
        if not ctx.tree.exists(STATE_FILE):
            # a directory that may not be entered hides the file
            ctx.tree.names(STATE_FILE.rsplit("/", 1)[0])
            ctx.set("state", None)
            return
        ctx.tree.read_bytes(STATE_FILE, 1)
        try:
            ctx.set("state", store.facts_view(store.read(ctx.tree.real(STATE_FILE))))
        except store.StateError as error:
            ctx.cannot("state", str(error))
