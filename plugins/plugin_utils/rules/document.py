# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules as a page for people: docs/rules.md is made from here."""

from __future__ import annotations


def markdown() -> str:
    """Return the page."""
    return "# Rules\n"
