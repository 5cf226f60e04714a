# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bringing a kernel in raises."""

from __future__ import annotations

from ..errors import HostError


class StageError(HostError):
    """A kernel cannot be brought in, or what came in is not whole; the message names the thing and the way out."""
