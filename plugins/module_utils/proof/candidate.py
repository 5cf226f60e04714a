# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else has to be proved for a kernel that is not installed: prebuilt modules, and other DKMS modules."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from ..mok import trust as trusted
from ..state import DIRECTORY, Store, stamp
from . import headers as kernel_headers
from . import others, precompiled, scratch
from .errors import ProofError
from .symbols import Abi

Runner = Callable[..., Any]
BUILD_MB = 1500


@dataclass(frozen=True)
class Candidate:
    """A kernel, the prebuilt module packages that come with it (name -> version), and DKMS modules to build for it."""

    release: str
    driver: str
    prebuilt: Mapping[str, str] = field(default_factory=dict)
    others: tuple[Mapping[str, Any], ...] = ()
    flavour: str | None = None
    signed: bool = False
    scratch_dir: str = "/var/tmp"
    timeout: float = 3600
    lock_timeout: float = 300
    niceness: int = 10


def prove(wish: Candidate, backend: Any, run: Runner, store: Store, root: str = "/",
          beat: Callable[[], None] = lambda: None) -> list[dict[str, Any]]:
    """Prove all of it in a scratch tree; one row each. Raises ProofError, naming what does not fit and why."""
    lock = os.path.join(root, DIRECTORY.lstrip("/"), "proof.lock")
    done: list[dict[str, Any]] = []
    trust = trusted.read(root) if wish.signed else trusted.Trust()
    with scratch.Lock(lock, wish.lock_timeout, "another proof on this host"):
        scratch.remove_left_over(wish.scratch_dir)
        with scratch.directory(wish.scratch_dir) as place:
            for index, (name, version) in enumerate(sorted(wish.prebuilt.items())):
                beat()
                opened = precompiled.open_package(name, version, backend, os.path.join(place, f"package-{index}"))
                found = precompiled.check(opened, f"{name} {version}", release=wish.release, driver=wish.driver,
                                          flavour=wish.flavour, signed=wish.signed, run=run,
                                          abi=Abi(wish.release, backend, run, place, root), trust=trust)
                done.append({"name": name, "how": "opened", "version": version, **found})
            if wish.others:
                done += _others(wish, backend, place, run, root, beat, trust)
    if wish.prebuilt:
        store.prove(wish.release, {"driver": wish.driver, "flavour": wish.flavour, "how": "precompiled",
                                   "sources": dict(wish.prebuilt), "at": stamp(store.clock())})
    return done


def _others(wish: Candidate, backend: Any, place: str, run: Runner, root: str,
            beat: Callable[[], None], trust: trusted.Trust) -> list[dict[str, Any]]:
    notes = others.signed(wish.others, trust, wish.release, root) if wish.signed else {}
    scratch.require_room(wish.scratch_dir, BUILD_MB)
    found = kernel_headers.find(wish.release, backend, root)
    if kernel_headers.compiler_version(found.compiler, run) is None:
        raise ProofError(f"kernel {wish.release} was built with {found.compiler}, which is not installed: install it",
                         wish.release)
    if not found.installed:
        found = kernel_headers.fetch(found, backend, os.path.join(place, "headers"))
    rows = others.build(wish.others, found, arch=platform.machine(), place=place, timeout=wish.timeout,
                        niceness=wish.niceness, run=run, root=root, beat=beat)
    return [{**row, "how": "built", "notes": notes.get(row["name"], [])} for row in rows]
