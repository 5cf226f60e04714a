# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of driver packages that are always of the driver's own version."""

from __future__ import annotations

import re
from functools import lru_cache

_LOCKSTEP = re.compile(
    r"((lib)?nvidia-(compute|utils|cfg1|ml1|smi|kernel-source|dkms|alternative|kernel-dkms|kernel-open-dkms)"
    r"|libcuda1\Z|nvidia-driver-cuda(-libs)?\Z|libnvidia-(ml|cfg)\Z|kmod-nvidia-(open|latest)-dkms\Z)"
)


@lru_cache(maxsize=4096)
def in_lockstep(name: str) -> bool:
    """Say whether a package works only together with others of exactly its version."""
    return bool(_LOCKSTEP.match(name))
