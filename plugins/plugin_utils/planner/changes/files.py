# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a file that the collection writes stands on the host as it should."""

from __future__ import annotations

import hashlib
from typing import Any

from ....module_utils.packages import transaction
from ...model.facts import UNKNOWN
from ...rules.context import Context

DENIAL = f"/{transaction.POLICY}"


def differs(context: Context, path: str, content: str) -> bool:
    """Say whether the file has to be written (or taken away, when ``content`` is empty)."""
    there = entry(context, path)
    if content == "":
        return there is not UNKNOWN and there is not None
    if there is UNKNOWN or there is None:
        return True
    return not isinstance(there, dict) or there.get("sha256") != digest(content)


def entry(context: Context, path: str) -> Any:
    """Return what the facts say of a file: a mapping, None for absent, UNKNOWN."""
    files = context.host.files
    if not isinstance(files, dict) or path not in files:
        return UNKNOWN
    return files[path]


def digest(content: str) -> str:
    """Return the digest that the facts have of a file with this content."""
    return hashlib.sha256(content.encode()).hexdigest()


def before(context: Context, path: str) -> str | None:
    """Return the digest of the file that stands there."""
    there = entry(context, path)
    return str(there.get("sha256")) if isinstance(there, dict) else None


def denial_is_left(context: Context) -> bool:
    """Say whether a package transaction of ours was cut off: since then no service is started by packages."""
    return before(context, DENIAL) == digest(transaction.DENY)
