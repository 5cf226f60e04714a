# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The survey: what is on the host in the matrix' terms, before anything is decided."""

from __future__ import annotations

import datetime
import fnmatch
from typing import Any

from ..model.facts import Maybe
from ..model.host import Gpu, Host
from ..model.wishes import Wishes
from ..rules.context import SHARED_KERNEL, Card, Context
from . import boot, directory, installed

GIVEN_AWAY = ("vfio-pci", "pci-stub")  # drivers that keep a GPU for a virtual machine


def survey(name: str, host: Host, wishes: Wishes, matrix: Any, now: datetime.date) -> Context:
    """Return the context of a host with everything filled in that needs no decision."""
    context = Context(name=name, host=host, wishes=wishes, matrix=matrix, now=now)
    context.waived = frozenset(
        waiver["rule"]
        for waiver in wishes.findings_waived
        if waiver["until"] >= now and fnmatch.fnmatchcase(name, waiver["host"])
    )
    context.cards = _cards(host, matrix)
    context.packaging = _packaging(host, matrix)
    directory.take(context)
    context.borrowed_kernel = isinstance(host.os.virt, str) and host.os.virt in SHARED_KERNEL and not host.kernels
    context.installed = installed.find(context)
    context.boot = boot.choose(context)
    return context


def _cards(host: Host, matrix: Any) -> Maybe[tuple[Card, ...]]:
    if not isinstance(host.gpus, tuple):
        return host.gpus
    return tuple(_card(gpu, matrix) for gpu in host.gpus if gpu.driver not in GIVEN_AWAY)


def _card(gpu: Gpu, matrix: Any) -> Card:
    if not isinstance(gpu.id, str):
        return Card(gpu, None, None)
    product = matrix.product(gpu.id, gpu.subsystem if isinstance(gpu.subsystem, str) else None)
    architecture = matrix.architecture(product.architecture) if product is not None else None
    return Card(gpu, product, architecture)


def _packaging(host: Host, matrix: Any) -> Any:
    if not isinstance(host.os.id, str) or not isinstance(host.os.version, str):
        return None
    arch = host.os.arch if isinstance(host.os.arch, str) else "x86_64"
    return matrix.packaging(host.os.id, host.os.version, arch)
