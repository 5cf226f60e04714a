# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel log says of the GPUs: Xid errors.

ECC and row remapping come from the driver (see ``smi``). Source: https://docs.nvidia.com/deploy/xid-errors/.
"""

from __future__ import annotations

import os
import re
from typing import Any

from .context import Context

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<address>[0-9a-fA-F:.]+)\): (?P<xid>\d+)")
_LIMIT = 16 * 1024 * 1024
_MOST = 40


def read(ctx: Context) -> None:
    if not ctx.tree.is_host:
        content = None
        with ctx.attempt("health.xids"):
            content = ctx.tree.text("/var/log/dmesg", _LIMIT)
            if content is None:
                ctx.cannot("health.xids", "another tree is read: its kernel log is not there")
            else:
                ctx.set("health.xids", parse(content))
        return
    with ctx.attempt("health.xids"):
        ctx.set("health.xids", parse(kernel_log()))


def kernel_log() -> str:
    """The kernel's ring buffer since boot. Raises OSError; needs root where kernel.dmesg_restrict is set."""
    descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    parts: list[bytes] = []
    size = 0
    try:
        while size < _LIMIT:
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten while reading: go on with the next record
                continue
            if not record:
                break
            parts.append(record)
            size += len(record)
    finally:
        os.close(descriptor)
    return b"".join(parts).decode("utf-8", "replace")


def parse(log: str) -> list[dict[str, Any]]:
    """``[{address, xid, count}]``, in order of their first appearance, at most 40."""
    counts: dict[tuple[str, int], int] = {}
    for found in _XID.finditer(log):
        key = (long_address(found.group("address")), int(found.group("xid")))
        counts[key] = counts.get(key, 0) + 1
    return [{"address": address, "xid": xid, "count": n} for (address, xid), n in list(counts.items())[:_MOST]]


def long_address(text: str) -> str:
    """``0000:3b:00.0`` of ``0000:3b:00``, ``3b:00.0`` or ``00000000:3B:00.0``."""
    address = text.lower()
    if address.count(":") == 1:
        address = f"0000:{address}"
    if "." not in address:
        address += ".0"
    domain, _mark, rest = address.partition(":")
    return f"{domain[-4:].rjust(4, '0')}:{rest}"
