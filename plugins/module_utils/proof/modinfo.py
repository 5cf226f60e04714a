# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module file says of itself, and whether that is what was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from .errors import ProofError

Runner = Callable[..., Any]

#: What nvidia.ko declares, by flavour. The helper modules are under the same open licences in both flavours.
LICENSES = {"proprietary": ("NVIDIA",), "open": ("Dual MIT/GPL",)}
SUFFIXES = (".ko", ".ko.xz", ".ko.gz", ".ko.zst")
_FIELDS = ("name", "version", "license", "vermagic", "srcversion", "signer", "sig_key")


@dataclass(frozen=True)
class Module:
    """One module file: its name on disk without suffix, and the fields of its modinfo section (None = not given)."""

    stem: str
    path: str
    version: str | None
    license: str | None
    vermagic: str | None
    srcversion: str | None = None
    signer: str | None = None

    @property
    def release(self) -> str | None:
        """The kernel release it was built for."""
        return self.vermagic.split(" ")[0] if self.vermagic else None


def stem_of(path: str) -> str:
    """File name without directory and module suffix."""
    base = os.path.basename(path)
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if base.endswith(suffix):
            return base[: -len(suffix)]
    return base


def read(path: str, run: Runner) -> Module:
    """Read one module file with modinfo. Raises ProofError when modinfo cannot."""
    result = run(["modinfo", path], timeout=60)
    if result.rc != 0:
        text = (result.err or result.out).strip().splitlines()
        raise ProofError(f"modinfo cannot read {path}: {text[0] if text else f'status {result.rc}'}")
    found: dict[str, str] = {}
    for line in result.out.splitlines():
        key, separator, value = line.partition(":")
        if separator and key.strip() in _FIELDS:
            found.setdefault(key.strip(), value.strip())
    return Module(
        stem=stem_of(path),
        path=path,
        version=found.get("version"),
        license=found.get("license"),
        vermagic=found.get("vermagic"),
        srcversion=found.get("srcversion"),
        signer=found.get("signer") or None,
    )


def problems(
    modules: Iterable[Module], *, expected: Mapping[str, str], version: str, flavour: str, release: str
) -> list[str]:
    """Everything that is wrong with ``modules``, as sentences; empty = proved.

    ``expected``: file stem -> the module's own name (``nvidia-current-drm`` -> ``nvidia-drm``), as dkms.conf has them.
    """
    by_stem = {module.stem: module for module in modules}
    wrong = [f"{stem}.ko is missing" for stem in sorted(expected) if stem not in by_stem]
    for stem in sorted(by_stem):
        module = by_stem[stem]
        if module.release != release:
            wrong.append(f"{stem}.ko is for kernel {module.release}, not {release}")
        if module.version != version:
            wrong.append(f"{stem}.ko has version {module.version}, not {version}")
    main = [stem for stem, name in expected.items() if name == "nvidia" and stem in by_stem]
    for stem in main:
        if by_stem[stem].license not in LICENSES[flavour]:
            wrong.append(
                f"{stem}.ko has licence {by_stem[stem].license!r}, the {flavour} flavour has "
                f"{' or '.join(map(repr, LICENSES[flavour]))}"
            )
    if not any(name == "nvidia" for name in expected.values()):
        wrong.append("dkms.conf builds no module named nvidia")
    return wrong
