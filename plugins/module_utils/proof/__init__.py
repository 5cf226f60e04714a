# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proving that a driver's kernel module builds for a kernel, before any package is touched.

``prove.py`` is the whole in order; it uses ``scratch`` (where it is built), ``apt`` and ``headers`` (what it is built
from), ``dkms`` (how), ``modinfo`` (whether it is right), ``cache`` (built once for many hosts) and ``publish`` (how the
package transaction finds its build done).
"""
