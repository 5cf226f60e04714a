# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DKMS' own tree: what is added, built, installed or broken, without starting dkms (a slow shell script).

Layout: ``NAME/VERSION/source`` (link), ``NAME/VERSION/KERNEL/ARCH/module/*.ko`` (built),
``NAME/kernel-KERNEL-ARCH`` (link: installed), ``NAME/VERSION/build/make.log`` (left by a failed build).
Source: dkms(8).
"""

from __future__ import annotations

import re
from typing import Any

from .context import Context
from .modinfo import stem
from .tree import Tree

TREE = "/var/lib/dkms"
_NOT_A_KERNEL = ("build", "source")
_LOG_KERNEL = re.compile(r"for kernel:? (\S+)")
_LOG_ERROR = re.compile(r"^make(?:\[\d+\])?: \*\*\* |exit code: [1-9]", re.M)
_LOG_LIMIT = 16 * 1024 * 1024
_STILL_RUNNING = 300  # seconds since the log was written to
_MOST = 60


def read(ctx: Context) -> None:
    """``driver.dkms``: ``[{name, version, kernel, state}]``; kernel is null for what is only added."""
    with ctx.attempt("driver.dkms"):
        rows = entries(ctx)
        ctx.set("driver.dkms", rows[:_MOST])
        if len(rows) > _MOST:
            ctx.cannot("driver.dkms[]", f"{len(rows)} entries, only the first {_MOST} are given")


def entries(ctx: Context) -> list[dict[str, Any]]:
    tree = ctx.tree
    rows: list[dict[str, Any]] = []
    for name in tree.names(TREE):
        home = f"{TREE}/{name}"
        if not tree.isdir(home) or name.startswith("."):
            continue
        for version in tree.names(home):
            if not tree.isdir(f"{home}/{version}") or tree.readlink(f"{home}/{version}") is not None:
                continue
            rows += _version(ctx, name, version)
    return rows


def _version(ctx: Context, name: str, version: str) -> list[dict[str, Any]]:
    tree, home = ctx.tree, f"{TREE}/{name}/{version}"
    rows: list[dict[str, Any]] = []
    source_gone = not tree.isdir(f"{home}/source")
    for kernel in tree.names(home):
        if kernel in _NOT_A_KERNEL or not tree.isdir(f"{home}/{kernel}"):
            continue
        for arch in tree.names(f"{home}/{kernel}"):
            modules = [path for path in tree.glob(f"{home}/{kernel}/{arch}/module") if stem(path)]
            if not modules:
                continue
            state = _state(tree, name, version, kernel, arch, modules)
            rows.append({"name": name, "version": version, "kernel": kernel, "state": state})
    failed = _failed(ctx, home)
    if failed and failed not in [row["kernel"] for row in rows]:
        rows.append({"name": name, "version": version, "kernel": failed, "state": "broken"})
    if source_gone:
        rows.append({"name": name, "version": version, "kernel": None, "state": "broken"})
    elif not rows:
        rows.append({"name": name, "version": version, "kernel": None, "state": "added"})
    return rows


def _state(tree: Tree, name: str, version: str, kernel: str, arch: str, modules: list[str]) -> str:
    link = tree.readlink(f"{TREE}/{name}/kernel-{kernel}-{arch}")
    if link is None or link.split("/")[0] != version:
        return "built"
    wanted = {stem(path.rsplit("/", 1)[-1]) for path in modules}
    return "installed" if wanted <= _present(tree, kernel) else "broken"


def _present(tree: Tree, kernel: str) -> set[str | None]:
    """Names of the modules in the places where dkms puts them."""
    base = f"/lib/modules/{kernel}"
    found: set[str | None] = set()
    for directory in ("updates/dkms", "extra", "updates", "extramodules", "kernel/drivers/video", "weak-updates"):
        found |= {stem(path.rsplit("/", 1)[-1]) for path in tree.glob(f"{base}/{directory}")}
    for path in tree.expand(f"{base}/extra/*/*.ko*") + tree.expand(f"{base}/updates/*/*.ko*"):
        found.add(stem(path.rsplit("/", 1)[-1]))
    return found


def _failed(ctx: Context, home: str) -> str | None:
    """The kernel of a build that failed and left its log, None when there is none.

    A log without an error that was written to a moment ago is that of a build which still runs.
    """
    path = f"{home}/build/make.log"
    try:
        log = ctx.tree.text(path, _LOG_LIMIT)
        age = ctx.now - ctx.tree.stat(path).st_mtime
    except OSError:
        return None
    match = _LOG_KERNEL.search((log or "")[:4096])
    if match is None or (age < _STILL_RUNNING and not _LOG_ERROR.search(log or "")):
        return None
    return match.group(1)


def built(tree: Tree, module: str, kernel: str) -> bool:
    """Whether dkms has a build of a module (file name without suffix) for a kernel."""
    for name in tree.names(TREE):
        for path in tree.expand(f"{TREE}/{name}/*/{kernel}/*/module/{module}.ko*"):
            if stem(path):
                return True
    return False
