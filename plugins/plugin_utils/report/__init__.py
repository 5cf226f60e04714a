# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan in words: one line, a diff, a table of a host or a fleet, JSON. Knows plans, not Ansible."""

from __future__ import annotations
