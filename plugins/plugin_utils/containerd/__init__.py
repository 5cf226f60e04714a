# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration: what is in force (``merge``), what to do (``decision``), how to write it (``editor``)."""
from __future__ import annotations

from .decision import Decision, Note, decide, work_out
from .generation import RUNTIME_PATH, generation
from .settings import Settings

__all__ = ["RUNTIME_PATH", "Decision", "Note", "Settings", "decide", "generation", "work_out"]
