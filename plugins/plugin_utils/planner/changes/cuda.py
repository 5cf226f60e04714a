# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the role gpu_cuda."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...model import version as versions
from ...model.facts import UNKNOWN, or_none
from ...model.plan import Change
from ...rules.context import Context
from . import files

CUDA = "gpu_cuda"


def changes(context: Context) -> Iterator[Change]:
    """Yield the changes in the order in which the role makes them; none where nothing was asked for."""
    if context.cuda.toolkit is not None:
        yield from _toolkit(context, context.cuda.toolkit)
    if context.cuda.environment is not None:
        yield from _environment(context, context.cuda.environment)


def _toolkit(context: Context, decision: dict[str, Any]) -> Iterator[Change]:
    host, moves = context.host.packages, []
    for name, version in decision["packages"].items():
        there = or_none(host.version(name))
        if there is None or (version is not None and there != version):
            moves.append(Change(CUDA, "install", name, there, version, "daemon_reload"))
    if decision["pin"] is not None:
        yield from _file(context, "repository", decision["pin"], "no driver comes from NVIDIA's repository")
    for repository in decision["repositories"]:
        there = files.before(context, repository["path"])
        if (repository["missing"] and moves) or there not in (None, files.digest(repository["content"])):
            yield Change(CUDA, "repository", repository["name"], there, repository["path"])
    yield from moves
    home, now = decision["home"], context.host.cuda_default
    if decision["source"] == "nvidia" and (moves or now is not UNKNOWN) and not _is(now, decision["default"]):
        yield Change(CUDA, "default", "/usr/local/cuda", or_none(now), home)
    for key in ("profile", "environment"):
        yield from _file(context, "environment", decision[key], f"CUDA {decision['default']}")


def _file(context: Context, action: str, wanted: dict[str, str], after: str) -> Iterator[Change]:
    if files.differs(context, wanted["path"], wanted["content"]):
        yield Change(CUDA, action, wanted["path"], files.before(context, wanted["path"]), after)


def _is(there: object, wish: str) -> bool:
    return isinstance(there, str) and there.split(".")[: wish.count(".") + 1] == wish.split(".")


def _environment(context: Context, decision: dict[str, Any]) -> Iterator[Change]:
    known = context.host.cuda_environments
    there = known.get(decision["path"]) if isinstance(known, dict) else None
    now = there.get("version") if isinstance(there, dict) else None
    recorded = isinstance(there, dict) and all(there.get(key) == decision[key] for key in ("requirements", "index_url"))
    if not recorded or not _is(versions.upstream(now or "") or now, decision["version"]):
        yield Change(CUDA, "python_env", decision["path"], now, f"{decision['dist']} {decision['version']}"
                     + (f" ({decision['index']})" if decision["index"] else ""))
