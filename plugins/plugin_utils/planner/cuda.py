# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CUDA decision: what the driver runs by itself, what a compatibility package adds, which wheels fit."""

from __future__ import annotations

from ..rules import cudas
from ..rules.context import Context
from . import cuda_toolkit


def fill(context: Context) -> None:
    """Fill in ``context.cuda`` for the driver that was asked for, else the chosen one."""
    judged = context.asked if context.asked is not None and context.asked.version else context.candidate
    if judged is None or not context.has_gpus:
        return
    decision = context.cuda
    decision.native_max = cudas.native_max(context, judged)
    wanted = cudas.wanted(context)
    floor = cudas.floor(context, wanted) if wanted else None
    driver = judged.parsed or cudas.parsed(judged.branch)
    if floor is not None and driver < cudas.parsed(floor):
        decision.compat = cudas.compat(context, judged, wanted)
    for name, version in context.wishes.frameworks.items():
        answer = cudas.framework(context, judged, name, version)
        decision.frameworks[name] = {
            "version": version,
            "ok": answer.ok,
            "wheel_index": answer.wheel_index,
            "cuda": answer.cuda,
            "min_driver": answer.min_driver,
        }
    cuda_toolkit.fill(context, judged)
