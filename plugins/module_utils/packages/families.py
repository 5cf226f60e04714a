# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package names belong to a kernel family: what a whole pin must cover.

Sources: the binary packages of Debian's ``linux`` and ``linux-signed-amd64``, of Ubuntu's ``linux``, ``linux-meta`` and
``linux-restricted-modules``, of Red Hat's and Fedora's ``kernel`` and ``kernel-rt``, Oracle's ``kernel-uek``, Amazon's
``kernel6.12``, ELRepo's ``kernel-ml`` and ``kernel-lt``, and SUSE's ``kernel-source``.
"""
from __future__ import annotations

import re
from collections.abc import Iterable

# Names that move a host to another kernel, or hold one that must match it. Debian and Ubuntu:
_PARTS = (
    # linux-base-ABI, linux-base-amd64, linux-binary-ABI: Debian 14 splits its image (linux 7.2)
    ("image", re.compile(r"linux-(image|binary|base)-(?!.*-dbg(sym)?$)")),
    ("headers", re.compile(r"linux-headers-(?!.*-common(-rt)?$)")),
    ("modules", re.compile(r"linux-(modules|modules-extra|modules-nvidia|objects-nvidia|signatures-nvidia)-")),
    # Ubuntu's metas of image and headers together: linux-generic, linux-generic-hwe-22.04, linux-nvidia-64k-hwe-24.04
    ("meta", re.compile(r"linux-(generic|lowlatency|virtual|aws|azure|gcp|gke|oracle|ibm|kvm|nvidia|realtime|oem|raspi)"
                        r"(-[a-z0-9.]+)*$")),
)
_NOT_KERNELS = re.compile(r"linux-(libc-dev|kbuild-|compiler-|doc|source|perf|base$|config-|support-)")
# what fits one kernel only, or brings what fits the newest: linux-tools-6.8.0-60-generic, linux-tools-generic-hwe-24.04
_TOOLS = re.compile(r"linux-(.*-)?(cloud-)?tools-(?P<rest>.+)")

# Red Hat's kin and SUSE. A kernel has a flavour in its name (kernel-rt-core, kernel-default-devel) or none.
_FLAVOUR = (r"(?:-(?:rt|64k|rt-64k|debug|rt-debug|64k-debug|uek(?:-?\d+[a-z]?)?|ml|lt|longterm|automotive|zfcpdump|"
            r"default|azure|64kb|kvmsmall|vanilla|preempt|pae|coco|coco_debug))?")
_RPM_PARTS = (
    ("image", re.compile(rf"kernel(?:6\.\d+)?{_FLAVOUR}(?:-core|-base|-uki-virt(?:-addons)?|-uki|-virt)$")),
    # a meta package with Red Hat, the image itself with SUSE, Oracle (UEK up to 6) and Amazon
    ("image", re.compile(r"kernel-(?:default|azure|rt|64kb|kvmsmall|vanilla|preempt|coco|coco_debug)$|kernel6\.\d+$")),
    ("headers", re.compile(rf"kernel(?:6\.\d+)?{_FLAVOUR}-devel(?:-matched)?$"
                           r"|kernel-(?:devel|source|syms|macros)(?:-.*)?$")),
    ("modules", re.compile(rf"kernel(?:6\.\d+)?{_FLAVOUR}-(?:modules(?:-.+)?|extra|optional|livepatch(?:-.*)?|kvm)$")),
    ("tools", re.compile(rf"kernel(?:6\.\d+)?{_FLAVOUR}-tools(?:-libs(?:-devel)?|-devel)?$")),
    ("meta", re.compile(rf"kernel{_FLAVOUR}$")),
)

# What unattended-upgrades is told, so that it stays right for names that do not exist yet.
PREFIXES = ("linux-image-", "linux-headers-", "linux-modules-", "linux-binary-", "linux-base-")


def kernel_part(name: str) -> str | None:
    """``image``, ``headers``, ``modules``, ``tools`` or ``meta`` when ``name`` is of a kernel family, else None.

    Userspace headers, firmware, the build programs of headers (``linux-kbuild-6.1``, ``…-common``) are none: they
    follow a kernel and never bring one.
    """
    if name.startswith("kernel"):
        return next((part for part, pattern in _RPM_PARTS if pattern.match(name)), None)
    if not name.startswith("linux-") or _NOT_KERNELS.match(name):
        return None
    tools = _TOOLS.match(name)
    if tools:
        return None if tools.group("rest") in ("common", "host") else "tools"
    for part, pattern in _PARTS:
        if pattern.match(name):
            return part
    return None


def missing_from_pin(pinned: Iterable[str], installed: Iterable[str]) -> list[str]:
    """The installed packages of the kernel family that a pin of ``pinned`` would leave free to move.

    Empty when the pin names no package of the family, since it is then about something else. Tools that fit one
    kernel are held with it where they are named, and no pin is half for lack of them: they bring no kernel.
    """
    names = set(pinned)
    if not any(kernel_part(name) in ("image", "meta") for name in names):
        return []
    return sorted(name for name in set(installed) - names if kernel_part(name) not in (None, "tools"))
