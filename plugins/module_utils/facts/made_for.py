# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver a package with ready modules is made for, by what it asks of the driver's other half.

The package's own version is the kernel's: linux-modules-nvidia-580-server-6.8.0-60-generic 6.8.0-60.63+1 depends on
nvidia-kernel-common-580-server (>= 580.173.02), and on (<= 580.173.02-1).
"""

from __future__ import annotations

import re

PREFIX = "linux-modules-nvidia-"
_MADE_FOR = re.compile(r"nvidia-kernel-common-[\w-]+ \(>= ?(?P<driver>\d+\.[\d.]*\d)")


def driver(stanza: str) -> str | None:
    """The driver that a stanza of a package list names, None where it names none."""
    match = _MADE_FOR.search(stanza)
    return match.group("driver") if match else None
