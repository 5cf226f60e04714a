# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that the collection manages, so that drift shows."""

from __future__ import annotations

import hashlib
import stat as statmod
from typing import Any

from .. import managed_files
from .context import Context
from .tree import Tree


def read(ctx: Context) -> None:
    tree = ctx.tree
    rows: dict[str, Any] = {}
    apt = tree.isdir("/etc/apt")
    for path in managed_files.PATHS:
        if path in managed_files.APT_ONLY and not apt:
            continue
        with ctx.attempt(f"files[{path}]"):
            rows[path] = describe(tree, path)
    for pattern in managed_files.PATTERNS:
        for path in tree.expand(pattern):
            if path in rows:
                continue
            with ctx.attempt(f"files[{path}]"):
                rows[path] = describe(tree, path)
    ctx.set("files", rows)


def describe(tree: Tree, path: str) -> dict[str, str] | None:
    """``{sha256, mode, owner}`` of one file, None when it is not there. Raises OSError when it cannot be read."""
    try:
        status = tree.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    digest = hashlib.sha256(tree.read_bytes(path, 16 * 1024 * 1024)).hexdigest()
    mode = format(statmod.S_IMODE(status.st_mode), "04o")
    return {"sha256": digest, "mode": mode, "owner": owner(tree, status.st_uid)}


def owner(tree: Tree, uid: int) -> str:
    """The user's name by the tree's own /etc/passwd, the number as text where it has none."""
    if uid == 0:
        return "root"
    try:
        for line in tree.read("/etc/passwd").splitlines():
            fields = line.split(":")
            if len(fields) > 2 and fields[2] == str(uid):
                return fields[0]
    except OSError:
        pass
    return str(uid)
