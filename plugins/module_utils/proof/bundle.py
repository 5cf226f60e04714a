# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proved build as a directory: uncompressed, unsigned module files, their checksums and a manifest.

.. code-block:: text

    manifest.json            shape, modules (file, sha256, modinfo), when, how long
    files/nvidia.ko          laid out as make leaves them in DKMS's build directory
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from ..checksum import sha256_of
from . import modinfo
from .dkms import Built
from .errors import ProofError
from .shape import Shape

Runner = Callable[..., Any]
MANIFEST = "manifest.json"
FORMAT = 1


def plain_copy(source: str, target: str, run: Runner) -> None:
    """Copy a module file uncompressed. Raises ProofError when it cannot be uncompressed."""
    if source.endswith(".zst"):
        result = run(["zstd", "-q", "-d", "-f", "-o", target, source], timeout=120)
        if result.rc != 0:
            raise ProofError(f"cannot uncompress {source}: {result.err.strip() or 'zstd is not installed'}")
        return
    openers: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
    opener = openers.get(os.path.splitext(source)[1], open)
    try:
        with opener(source, "rb") as reader, open(target, "wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
    except (OSError, lzma.LZMAError, EOFError) as exc:
        raise ProofError(f"cannot uncompress {source}: {exc}") from exc


def check(directory: str, built: Iterable[Built], shape: Shape, run: Runner) -> list[modinfo.Module]:
    """Read a bundle's module files and see that they are what ``shape`` says. Raises ProofError naming each fault."""
    expected = {item.name: item.name for item in built}
    found = [modinfo.read(path, run) for path in sorted(files(directory))]
    wrong = modinfo.problems(
        found, expected=expected, version=shape.driver, flavour=shape.flavour, release=shape.kernel
    )
    if wrong:
        raise ProofError(
            f"{shape.dkms_name} {shape.driver} for kernel {shape.kernel} is not what was asked for: {'; '.join(wrong)}",
            shape.kernel,
        )
    return found


def files(directory: str) -> list[str]:
    """The module files of a bundle."""
    top = os.path.join(directory, "files")
    return [os.path.join(where, name) for where, _dirs, names in os.walk(top) for name in names if name.endswith(".ko")]


def create(
    directory: str,
    modules: Iterable[str],
    built: Iterable[Built],
    shape: Shape,
    seconds: float,
    when: str,
    run: Runner,
    symvers: str | None = None,
) -> dict[str, Any]:
    """Make a bundle in the empty ``directory`` from what DKMS built and check it; its manifest. Raises ProofError."""
    items = list(built)
    by_file = {item.installed_as: item for item in items}
    for path in modules:
        item = by_file.get(modinfo.stem_of(path))
        if item is None:
            raise ProofError(f"DKMS built {os.path.basename(path)}, which dkms.conf does not name", shape.kernel)
        where = os.path.join(directory, "files", item.location)
        os.makedirs(where, exist_ok=True)
        plain_copy(path, os.path.join(where, item.name + ".ko"), run)
    found = check(directory, items, shape, run)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "shape": shape.as_dict(),
        "at": when,
        "seconds": round(seconds, 1),
        "symvers": symvers,
        "built": [{"name": item.name, "installed_as": item.installed_as, "location": item.location} for item in items],
        "modules": {
            os.path.relpath(module.path, directory): {
                "sha256": sha256_of(module.path),
                "version": module.version,
                "license": module.license,
                "vermagic": module.vermagic,
                "srcversion": module.srcversion,
            }
            for module in found
        },
    }
    with open(os.path.join(directory, MANIFEST), "w", encoding="utf-8") as handle:
        json.dump(manifest, handle, indent=1, sort_keys=True)
        handle.write("\n")
    return manifest


def load(directory: str, shape: Shape, run: Runner) -> dict[str, Any]:
    """The manifest of an existing bundle after every file in it was checked again. Raises ProofError."""
    path = os.path.join(directory, MANIFEST)
    try:
        with open(path, encoding="utf-8") as handle:
            manifest = json.load(handle)
        names: Mapping[str, Mapping[str, Any]] = manifest["modules"]
        built = [Built(**row) for row in manifest["built"]]
        same = manifest["format"] == FORMAT and manifest["shape"] == shape.as_dict()
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ProofError(f"{path} cannot be used: {exc}", shape.kernel) from exc
    if not same:
        raise ProofError(f"{path} is for another kernel, driver, headers or compiler", shape.kernel)
    there = {os.path.relpath(item, directory) for item in files(directory)}
    if there != set(names):
        raise ProofError(
            f"{directory} does not hold the files its manifest names: {sorted(there ^ set(names))}", shape.kernel
        )
    for name, row in names.items():
        if sha256_of(os.path.join(directory, name)) != row["sha256"]:
            raise ProofError(f"{name} in {directory} was changed after it was proved", shape.kernel)
    check(directory, built, shape, run)
    return dict(manifest)
