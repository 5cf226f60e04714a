# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The compatibility matrix: rows with sources, loaded once, asked in microseconds.

``load(overlays)`` returns a :class:`Matrix`; bad data raises :class:`MatrixError` with file and line.
"""

from __future__ import annotations

from .errors import MatrixError
from .loader import load
from .matrix import KernelFit, Matrix, Support

__all__ = ["KernelFit", "Matrix", "MatrixError", "Support", "load"]
