# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing a kernel onto a host so that every step may be the last one, and taking it back.

``stage.py`` is the whole in order; it uses ``snapshot`` (what of the host counts, before and after), ``debs`` and
``rpms`` (what a transaction would move, and how it is undone) and ``complete`` (is the new kernel whole).
"""
