# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each installed kernel came in, as dpkg and rpm themselves know it, whatever started them.

The package managers' own logs (``history``) know nothing of ``dpkg -i`` and ``rpm -i``.

Source: dpkg(1), lib/dpkg/log.c (``DATE TIME install PACKAGE OLD NEW``); rpm(8), INSTALLTIME.
"""

from __future__ import annotations

import re
import time
from typing import Any

from . import history, rpmdb
from .context import Context
from .tree import Tree

_DPKG_LOG = "dpkg.log"
_QUERY = "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}\\t%{INSTALLTIME}\\n"
Row = dict[str, Any]


def read(ctx: Context, manager: str) -> None:
    """``kernel_arrivals``: release → ``{when, record}``, null where nothing tells; the collector takes it apart."""
    owners: dict[str, dict[str, Any]] | None = ctx.facts.get("kernel_packages")
    if owners is None:
        ctx.cannot("kernel.installed[].arrived", "the installed packages were not read")
        return
    wanted = {row["image"]: release for release, row in owners.items() if row["image"]}
    with ctx.attempt("kernel.installed[].arrived"):
        found = dpkg(ctx.tree, set(wanted)) if manager == "apt" else rpm(ctx, set(wanted))
        ctx.set("kernel_arrivals", {release: found.get(name) for name, release in wanted.items()})


def dpkg(tree: Tree, names: set[str]) -> dict[str, Row]:
    """Package → the newest line that installed it, rotated logs included. Raises OSError, ValueError."""
    found: dict[str, Row] = {}
    left = set(names)
    for text in history.logs(tree, "/var/log", _DPKG_LOG) if left else ():
        words = "|".join(map(re.escape, sorted(left)))
        for match in re.finditer(rf"^(\S+ \S+) (install ({words})(?::\S+)? .*)$", text, re.M):
            try:
                when = history.local(match.group(1))
            except ValueError:
                continue
            found[match.group(3)] = _row(when, f"{_DPKG_LOG} has: {match.group(2).strip()}")
        left -= set(found)
        if not left:
            break
    return found


def rpm(ctx: Context, names: set[str]) -> dict[str, Row]:
    """Package (NAME-VERSION-RELEASE.ARCH) → when rpm installed it. Raises ValueError when rpm gives no answer."""
    if not names:
        return {}
    answer = ctx.run(["rpm", "-q", "--queryformat", _QUERY, *rpmdb.database(ctx.tree), *sorted(names)])
    if not answer.ok:
        raise ValueError(answer.why("rpm"))
    rows = (line.split("\t") for line in answer.out.splitlines())
    return {row[0]: _row(int(row[1]), f"rpm has {row[0]}") for row in rows
            if len(row) == 2 and row[0] in names and row[1].isdigit()}  # fmt: skip


def _row(when: float, record: str) -> Row:
    return {"when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)), "record": record[:160]}
