# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts and free space."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .context import Context
from .tree import Tree

PLACES = ("/", "/boot", "/var", "/usr/src")


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo (proc(5)); ``device`` is ``major:minor``, None where only /proc/mounts could be read."""

    point: str
    fstype: str
    source: str
    options: tuple[str, ...]
    device: str | None


def read(ctx: Context) -> None:
    try:
        table = mounts(ctx.tree)
    except OSError:
        table = []
    for place in PLACES:
        path = f"storage.{place}"
        if not ctx.tree.is_host:
            ctx.cannot(path, "another tree is read: free space is that of this machine")
            continue
        with ctx.attempt(path):
            values = os.statvfs(nearest(place))
            mount = mount_of(table, place)
            # a file system that went read-only after an error says so in its options, not always in statvfs
            read_only = bool(values.f_flag & os.ST_RDONLY) or (mount is not None and "ro" in mount.options)
            free = values.f_bavail * values.f_frsize // (1024 * 1024)
            ctx.facts.setdefault("storage", {})[place] = {"free_mb": free, "read_only": read_only}


def nearest(path: str) -> str:
    """The path, or the nearest directory above it that is there: where it would be made."""
    while path != "/" and not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def mounts(tree: Tree) -> list[Mount]:
    """All mounts, in the order they were made. Raises OSError when neither table can be read."""
    try:
        return _mountinfo(tree.read("/proc/self/mountinfo"))
    except OSError:
        if tree.lexists("/proc/self/mounts"):
            return _mtab(tree.read("/proc/self/mounts"))
        return _mtab(tree.read("/proc/mounts"))


def mount_of(table: list[Mount], path: str) -> Mount | None:
    """The mount that a path lies on: the longest mount point above it, the last one made of equals."""
    best: Mount | None = None
    for mount in table:
        point = mount.point.rstrip("/")
        inside = path == mount.point or path.startswith(point + "/")
        if inside and (best is None or len(point) >= len(best.point.rstrip("/"))):
            best = mount
    return best


def _mountinfo(text: str) -> list[Mount]:
    rows = []
    for line in text.splitlines():
        left, mark, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if not mark or len(fields) < 6 or len(rest) < 2:
            continue
        options = fields[5].split(",") + (rest[2].split(",") if len(rest) > 2 else [])
        rows.append(Mount(_plain(fields[4]), rest[0], _plain(rest[1]), tuple(options), fields[2]))
    return rows


def _mtab(text: str) -> list[Mount]:
    rows = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4:
            rows.append(Mount(_plain(fields[1]), fields[2], _plain(fields[0]), tuple(fields[3].split(",")), None))
    return rows


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)
