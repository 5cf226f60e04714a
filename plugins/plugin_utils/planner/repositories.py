# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repository files that the decisions need, with the key that each is trusted by."""

from __future__ import annotations

from typing import Any

from ..model.facts import each
from ..rules.context import Candidate, Context
from . import candidates, family


def for_driver(context: Context, chosen: Candidate) -> list[dict[str, Any]]:
    """Return the repository files for the source of a driver; empty where the system's own sources serve."""
    if context.packaging is None or chosen.series is None or context.wishes.driver_source == "custom":
        return []
    if chosen.source == "nvidia":
        if candidates.cuda_repository(context) and not _ours(context, "cuda"):
            return []
        row = context.packaging.driver_repository("nvidia", chosen.branch)
    else:
        if not candidates.missing_components(context, chosen.series) and not _ours(context, "driver"):
            return []
        row = context.packaging.driver_repository("distro", chosen.branch)
    return [describe(context, row)] if row is not None else []


def for_toolkit(context: Context) -> list[dict[str, Any]]:
    """Return the repository file of the container toolkit, if no source of the host has it yet."""
    if context.packaging is None:
        return []
    row = context.packaging.toolkit_repository
    if row is None or (_toolkit_is_offered(context) and not _is_there(context, str(row.path))):
        return []
    return [describe(context, row)]


def _toolkit_is_offered(context: Context) -> bool:
    host = context.host.packages
    return bool(host.offers("nvidia-container-toolkit")) or isinstance(host.version("nvidia-container-toolkit"), str)


def _ours(context: Context, word: str) -> bool:
    """Say whether a source file of this collection is there: then its content is ours to keep."""
    for repository in each(context.host.packages.repositories):
        named = word in repository.file or family.is_cuda_url(repository.url)
        if named and "baremetal-nvidia" in repository.file:
            return True
    return False


def _is_there(context: Context, path: str) -> bool:
    files = context.host.files
    if isinstance(files, dict) and files.get(path) is not None:
        return True
    return any(repository.file == path for repository in each(context.host.packages.repositories))


def describe(context: Context, row: Any) -> dict[str, Any]:
    """Return a repository row of the matrix as the roles write it; ``missing`` says that it is not on the host."""
    key = row.signing_key
    return {
        "name": row.name,
        "path": row.path,
        "content": row.content,
        "key": None if key is None else {"url": key.url, "path": key.path, "fingerprint": key.fingerprint},
        "missing": not _is_there(context, str(row.path)),
    }
