# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operating systems as rows name them: ``debian``, ``debian 12``, ``rhel 9.5``."""

from __future__ import annotations

import functools

# Rebuilds of RHEL share its kernels and packages. Values of ID in os-release.
REBUILDS = {
    "rocky": "rhel",
    "almalinux": "rhel",
    "alma": "rhel",
    "centos": "rhel",
    "redhat": "rhel",
    "opensuse-leap": "sles",
    "sles_sap": "sles",
    "suse": "sles",
}


@functools.lru_cache(maxsize=1024)
def canonical(os_id: str) -> str:
    """The id rows use: ``rocky`` → ``rhel``."""
    return REBUILDS.get(os_id.lower(), os_id.lower())


@functools.lru_cache(maxsize=4096)
def matches(pattern: str, os_id: str, os_version: str) -> bool:
    """True if ``rhel 9`` (pattern) takes in ``rocky`` ``9.5``: same id, version equal or deeper."""
    wanted, _space, version = pattern.partition(" ")
    if wanted not in (os_id.lower(), canonical(os_id)):
        return False
    return not version or os_version == version or os_version.startswith(f"{version}.")
