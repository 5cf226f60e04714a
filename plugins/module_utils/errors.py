# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The common root of what helpers on the host raise, so that a module catches one thing."""
from __future__ import annotations


class HostError(Exception):
    """Something on the host is not as it must be. The message names the thing, the reason and the way out."""
