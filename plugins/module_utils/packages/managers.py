# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Picks what makes transactions on the host at hand."""
from __future__ import annotations

from . import detect
from .base import NotSupported, Runner
from .transact_apt import AptTransaction
from .transact_dnf import DnfTransaction
from .transact_zypper import ZypperTransaction
from .transaction import Manager


def transactions(run: Runner, root: str = "/", name: str | None = None) -> Manager:
    """The manager for ``name``, or for what the host has. Raises NotSupported."""
    name = name or detect.detect(root)
    if name == "apt":
        return AptTransaction(run)
    if name in ("dnf", "yum", "dnf5"):
        return DnfTransaction(run, root)
    if name == "zypper":
        return ZypperTransaction(run)
    raise NotSupported(f"package manager {name or '(none was found)'} is not supported: apt, dnf and zypper are")
