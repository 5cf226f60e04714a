# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about package sources that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model.facts import each
from .context import Context
from .registry import Hit, plan_rule

_NVIDIA = ("developer.download.nvidia.com/", "nvidia.github.io/", "/compute/cuda/repos/", "/libnvidia-container/")


def address(url: str) -> str:
    """Return an address in the form in which two of them are compared, as the module that takes files out does."""
    # zypper has the proxy behind the address
    text = url.strip().lower().partition("?")[0].rstrip("/").removeprefix("mirror+").replace("https:", "http:", 1)
    for arch in ("$(arch)", "amd64", "arm64", "ppc64el"):
        text = text.removesuffix(f"/{arch}")
    scheme, _colon, rest = text.partition(":")
    return f"{scheme}:/{rest.lstrip('/')}"


def is_nvidia(context: Context, url: str) -> bool:
    """Say whether an address is one of NVIDIA's repositories, or the mirror of one that is asked for."""
    wishes = context.wishes
    mirrors = (wishes.driver_repository, wishes.toolkit_repository, wishes.fabricmanager_repository)
    return any(word in url for word in _NVIDIA) or any(
        wish is not None and address(wish["url"]) == address(url) for wish in mirrors)


def groups(context: Context) -> list[list[Any]]:
    """Return the enabled sources that name one suite of one repository, where several files do."""
    found: dict[tuple[str, str], list[Any]] = {}
    for one in each(context.host.packages.repositories):
        for suite in (one.suites or ("",)) if one.enabled and one.url else ():
            rows = found.setdefault((address(one.url), suite.rstrip("/")), [])
            if one.file not in [row.file for row in rows]:
                rows.append(one)
    seen: list[list[Any]] = []
    for rows in found.values():
        if len(rows) > 1 and [row.file for row in rows] not in [[row.file for row in other] for other in seen]:
            seen.append(rows)
    return seen


def ours_to_mend(context: Context) -> bool:
    """Say whether one of NVIDIA's repositories is named twice: the plan leaves one."""
    return context.wants_driver and any(is_nvidia(context, rows[0].url) for rows in groups(context))


@plan_rule(
    "PKG015", "error", "Package files of another kind",
    why="dpkg takes .deb files and rpm takes .rpm files.",
    remedy="fill the directory for this host's system, and name its files in gpu_driver_offline",
    sources=["docs/design.md, section 10"],
)
def other_kind(context: Context) -> Iterator[Hit]:
    """Fires when the files of the directory are not for the package manager of the host."""
    wish, manager = context.wishes.driver_offline, context.host.packages.manager
    if wish is None or not context.wants_driver or not isinstance(manager, str):
        return
    kind = "deb" if manager == "apt" else "rpm"
    if not any(file.endswith(f".{kind}") for file in wish["sha256"]):
        yield Hit(wish["path"], f"the directory {wish['path']} holds {min(wish['sha256'])}, and {manager} takes "
                                f".{kind} files")


@plan_rule(
    "PKG014", "warning", "Two sources name one repository",
    why="Where they name different keys, apt reads no source at all: nothing can be installed any more, and nothing "
        "says why on the day on which it begins.",
    remedy="keep one of the files; the plan takes the other one out with a backup where the repository is NVIDIA's",
    sources=["https://github.com/NVIDIA/nvidia-docker/issues/1625",
             "https://manpages.debian.org/bookworm/apt/sources.list.5.en.html"],
)
def named_twice(context: Context) -> Iterator[Hit]:
    """Fires where keys differ, and where the repository is NVIDIA's; an error where apt is stuck and we do not mend."""
    apt = context.host.packages.manager == "apt"
    for rows in groups(context):
        theirs = is_nvidia(context, rows[0].url)
        keys = {row.signed_by for row in rows if isinstance(row.signed_by, str) or row.signed_by is None}
        stuck = apt and len(keys) > 1
        files = ", ".join(row.file for row in rows)
        if not (stuck or theirs):
            continue
        keyed = f", with different keys ({', '.join(sorted(str(key or 'none') for key in keys))})" if stuck else ""
        mended = theirs and context.wants_driver
        yield Hit(rows[0].url, f"{files} name the repository {rows[0].url}{keyed}"
                               f"{': apt reads no source at all' if stuck else ''}",
                  None if mended else f"remove {rows[-1].file}, or have both name the same key",
                  severity="error" if stuck and not mended and context.needs_space else None)
