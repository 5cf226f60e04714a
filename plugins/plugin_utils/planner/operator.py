# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's part of a plan: none before a cluster is known."""

from __future__ import annotations

from typing import Any

from ..rules.context import Context


def decide(context: Context) -> dict[str, Any] | None:
    """Return the operator decision, None where none is made from one host's facts."""
    return None
