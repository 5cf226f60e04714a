# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error of this package."""

from __future__ import annotations

from ..errors import HostError


class ProofError(HostError):
    """No proof. The message names the thing, the reason and the way out; ``log`` is the end of a build log."""

    def __init__(self, message: str, kernel: str | None = None, log: list[str] | None = None) -> None:
        self.kernel = kernel
        self.log = log or []
        super().__init__(message)
