# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong with the data of the matrix."""

from __future__ import annotations


class MatrixError(ValueError):
    """A file or an inline overlay that cannot be used.

    file: name of the file, or ``overlay[0]`` for the first inline one. line: from 1, None where there are no lines.
    message: what is wrong and what is wanted, with the path of the row.
    """

    def __init__(self, message: str, file: str, line: int | None = None) -> None:
        self.message, self.file, self.line = message, file, line
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")
