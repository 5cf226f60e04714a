# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA toolkits, their compiler and the forward compatibility package."""

from __future__ import annotations

import json
import re
from typing import Any

from .. import state as store
from ..managed_files import STATE_FILE
from .context import Context
from .tree import Tree

_COMPAT = re.compile(r"libcuda\.so\.(\d+\.\d[\d.]*)$")


def read(ctx: Context) -> None:
    tree = ctx.tree
    with ctx.attempt("cuda.toolkits"):
        ctx.set("cuda.toolkits", sorted({found["cuda"] for found in toolkits(tree).values()}, key=_key))
    with ctx.attempt("cuda.default"):
        ctx.set("cuda.default", (_versions(tree, "/usr/local/cuda") or {}).get("cuda"))
    with ctx.attempt("cuda.nvcc"):
        nvcc(ctx)
    with ctx.attempt("cuda.environments"):
        ctx.set("cuda.environments", environments(tree))
    with ctx.attempt("cuda.compat"):
        ctx.set("cuda.compat", compat(tree))


def toolkits(tree: Tree) -> dict[str, dict[str, str]]:
    """Directory → ``{cuda: 12.4.1, nvcc: 12.4.131}`` of each toolkit below /usr/local, links left out."""
    found: dict[str, dict[str, str]] = {}
    for directory in [*tree.glob("/usr/local", "cuda-*"), "/usr/local/cuda", "/usr/lib/cuda"]:
        if tree.readlink(directory) is not None and not directory.endswith("/cuda"):
            continue
        resolved = tree.resolve(directory)
        if resolved in found:
            continue
        versions = _versions(tree, directory)
        if versions:
            found[resolved] = versions
    return found


def _versions(tree: Tree, directory: str) -> dict[str, str] | None:
    content = tree.text(f"{directory}/version.json", 65536)
    if content:
        data: Any = json.loads(content)
        rows = {"cuda": data["cuda"]["version"]}
        if "cuda_nvcc" in data:
            rows["nvcc"] = data["cuda_nvcc"]["version"]
        return rows
    old = re.search(r"CUDA Version (\d[\d.]*\d)", tree.text(f"{directory}/version.txt", 4096) or "")
    return {"cuda": old.group(1)} if old else None


def nvcc(ctx: Context) -> None:
    """``major.minor`` of the compiler that is found first, None without one."""
    tree = ctx.tree
    for program in ("/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc", "/usr/local/bin/nvcc"):
        if not tree.isfile(program):
            continue
        versions = _versions(tree, program.rsplit("/bin/", 1)[0]) if "/cuda/" in program else None
        if versions:
            ctx.set("cuda.nvcc", ".".join(versions.get("nvcc", versions["cuda"]).split(".")[:2]))
            return
        if not tree.is_host:
            ctx.cannot("cuda.nvcc", f"another tree is read: {program} is not started")
            return
        answer = ctx.run([program, "--version"])
        found = re.search(r"release (\d+\.\d+)", answer.out)
        if found:
            ctx.set("cuda.nvcc", found.group(1))
        else:
            ctx.cannot("cuda.nvcc", answer.why(program))
        return
    ctx.set("cuda.nvcc", None)


def compat(tree: Tree) -> str | None:
    """The driver version of the newest forward compatibility libraries, None when none are installed."""
    found = set()
    for directory in ["/usr/local/cuda/compat", *(f"{path}/compat" for path in tree.glob("/usr/local", "cuda-*"))]:
        for path in tree.glob(directory, "libcuda.so.*"):
            match = _COMPAT.search(path)
            if match:
                found.add(match.group(1))
    return max(found, key=_key) if found else None


def environments(tree: Tree) -> dict[str, dict[str, Any]]:
    """Path → what was asked for and the version that is there, of each Python environment that the collection made."""
    if not tree.exists(STATE_FILE):
        return {}
    known = (store.read(tree.real(STATE_FILE)) or store.empty())["environments"]
    return {path: {"requirements": row["requirements"], "index_url": row["index_url"],
                   "version": None if row.get("building") else installed(tree, path, row["dist"])}
            for path, row in known.items()}


def installed(tree: Tree, path: str, dist: str) -> str | None:
    """The version of a distribution in an environment by its metadata, None when it is not there, or has no Python."""
    if not tree.exists(f"{path}/bin/python"):
        return None
    for found in tree.glob(f"{path}/lib", "python3*"):
        for info in tree.glob(f"{found}/site-packages", f"{dist}-*.dist-info"):
            if tree.isfile(f"{info}/RECORD"):
                return info.rsplit("/", 1)[1][len(dist) + 1 : -len(".dist-info")]
    return None


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
