# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package names belong to a kernel family (Debian, Ubuntu): what a whole pin must cover.

Sources: the binary packages of Debian's ``linux`` and ``linux-signed-amd64`` and of Ubuntu's ``linux``,
``linux-meta`` and ``linux-restricted-modules``.
"""
from __future__ import annotations

import re
from collections.abc import Iterable

# Names that move a host to another kernel, or hold one that must match it.
_PARTS = (
    # linux-base-ABI, linux-base-amd64, linux-binary-ABI: Debian 14 splits its image (linux 7.2)
    ("image", re.compile(r"linux-(image|binary|base)-(?!.*-dbg(sym)?$)")),
    ("headers", re.compile(r"linux-headers-(?!.*-common(-rt)?$)")),
    ("modules", re.compile(r"linux-(modules|modules-extra|modules-nvidia|objects-nvidia|signatures-nvidia)-")),
    # Ubuntu's metas of image and headers together: linux-generic, linux-generic-hwe-22.04, linux-nvidia-64k-hwe-24.04
    ("meta", re.compile(r"linux-(generic|lowlatency|virtual|aws|azure|gcp|gke|oracle|ibm|kvm|nvidia|realtime|oem|raspi)"
                        r"(-[a-z0-9.]+)*$")),
)
_NOT_KERNELS = re.compile(r"linux-(libc-dev|kbuild-|compiler-|doc|source|tools|cloud-tools|perf|base$|config-|support-)"
                          r"|linux-(aws|azure|gcp|oracle|nvidia)(-[a-z0-9.]+)*-(tools|cloud-tools)-")

# What unattended-upgrades is told, so that it stays right for names that do not exist yet.
PREFIXES = ("linux-image-", "linux-headers-", "linux-modules-", "linux-binary-", "linux-base-")


def kernel_part(name: str) -> str | None:
    """``image``, ``headers``, ``modules`` or ``meta`` when ``name`` is of a kernel family, else None.

    Userspace headers, tools, the build programs of headers (``linux-kbuild-6.1``, ``…-common``) are none: they
    follow a kernel and never bring one.
    """
    if not name.startswith("linux-") or _NOT_KERNELS.match(name):
        return None
    for part, pattern in _PARTS:
        if pattern.match(name):
            return part
    return None


def missing_from_pin(pinned: Iterable[str], installed: Iterable[str]) -> list[str]:
    """The installed packages of the kernel family that a pin of ``pinned`` would leave free to move.

    Empty when the pin names no package of the family, since it is then about something else.
    """
    names = set(pinned)
    if not any(kernel_part(name) in ("image", "meta") for name in names):
        return []
    return sorted(name for name in set(installed) - names if kernel_part(name))
