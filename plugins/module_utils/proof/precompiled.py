# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that come ready in a package: fetched, opened beside the system, and read, before the package is installed.

A package is opened with none of its scripts run. What has to agree is what ``modinfo`` says: release, driver version,
flavour, and a signature where the kernel asks for one. Modules that are linked for several kernels agree with another
release by their symbols.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from ..facts.kmps import Symbols
from ..facts.secure_boot import common_name
from ..mok.trust import Trust
from . import modinfo
from .errors import ProofError
from .symbols import Abi

Runner = Callable[..., Any]
_OBJECTS = ".o"
_PART = ".mod.o"  # one for each module, beside the objects that it is linked from
_SIGNATURE = ".sig"
_ARCH = re.compile(r"\.(x86_64|aarch64)\Z")
_LINKED_ON_HOST = re.compile(r"^linux-modules-nvidia-(?P<rest>\d{3}(?:-server)?-\d\S*)$")


class Opened(NamedTuple):
    """An opened package: the directory that stands for /, and what it asks of the kernel's symbols."""

    tree: str
    asked: Symbols


def open_package(name: str, version: str, backend: Any, place: str) -> Opened:
    """Fetch and open one package below ``place``. Raises ProofError."""
    into, tree = os.path.join(place, "packages"), os.path.join(place, "tree")
    os.makedirs(into, exist_ok=True)
    os.makedirs(tree, exist_ok=True)
    wanted = {name: version}
    objects = objects_of(name)
    if objects is not None:
        wanted[objects] = version
    asked: Symbols = {}
    for package in backend.download(wanted, into):
        backend.unpack(package, tree)
        asked.update(backend.required_symbols(package))
        os.unlink(package)
    return Opened(tree, asked)


def objects_of(name: str) -> str | None:
    """The package that has what Ubuntu's proprietary modules are linked from on the host; None for other packages."""
    match = _LINKED_ON_HOST.match(name)
    return f"linux-objects-nvidia-{match.group('rest')}" if match else None


def module_files(tree: str) -> list[str]:
    """The module files in an opened package, compressed ones included."""
    found = glob.glob(os.path.join(glob.escape(tree), "**", "*.ko*"), recursive=True)
    return sorted(path for path in found if path.endswith(modinfo.SUFFIXES) and os.path.isfile(path))


def check(opened: Opened, what: str, *, release: str, driver: str, flavour: str | None, signed: bool,
          run: Runner, abi: Abi, trust: Trust) -> dict[str, Any]:
    """What the nvidia modules of a package say of themselves, as far as it agrees. Raises ProofError naming each fault.

    Modules that come as objects are linked on the host: of those only the path tells what they are for.
    """
    tree = opened.tree
    files = [path for path in module_files(tree) if modinfo.stem_of(path).replace("-", "_").startswith("nvidia")]
    if not files:
        return _objects(tree, what, release, driver, signed, trust)
    modules = [modinfo.read(path, run) for path in files]
    wrong = []
    linked = [module for module in modules if module.release != release and _linked(module.path)]
    wrong += abi.problems(linked, opened.asked) if linked else []
    for module in modules:
        elsewhere = module.release != release and module not in linked
        wrong += [f"{module.stem}.ko is for kernel {module.release}, not {release}"] if elsewhere else []
        wrong += [f"{module.stem}.ko has version {module.version}, not {driver}"] if module.version != driver else []
        wrong += [f"{module.stem}.ko is not signed"] if signed and not module.signer else []
    main = [module for module in modules if module.stem == "nvidia"]
    wrong += ["there is no nvidia.ko in it"] if not main else []
    for module in main:
        if flavour is not None and module.license not in modinfo.LICENSES[flavour]:
            wrong.append(f"nvidia.ko has licence {module.license!r}: it is not the {flavour} flavour")
    notes = _signers({f"{module.stem}.ko": module.signer for module in modules if module.signer}, trust, wrong, signed)
    if wrong:
        raise ProofError(f"{what} is not what kernel {release} needs: {'; '.join(wrong)}", release)
    return {"modules": sorted(module.stem for module in modules), "signer": modules[0].signer, "notes": notes}


def _signers(found: Mapping[str, str | None], trust: Trust, wrong: list[str], signed: bool) -> list[str]:
    """Add to ``wrong`` what is signed with a key that no kernel has; what cannot be told, in sentences."""
    notes: dict[str | None, str] = {}
    for name, signer in found.items() if signed else ():
        takes = trust.takes(signer)
        wrong += [trust.refusal(name, signer)] if takes is False else []
        if takes is None:
            notes.setdefault(signer, trust.doubt(name, signer))  # once for each key
    return list(notes.values())


def _linked(path: str) -> bool:
    """Whether a module may serve other kernels: it lies where weak-modules takes it from (extra, updates, a KMP)."""
    return any(part in path for part in ("/extra/", "/updates/", "/weak-updates/"))


def _objects(tree: str, what: str, release: str, driver: str, signed: bool, trust: Trust) -> dict[str, Any]:
    """What is linked on the host: Ubuntu's proprietary modules, and those of NVIDIA's repositories for RHEL.

    Ubuntu's lie below /lib/modules/RELEASE. NVIDIA's lie below /usr/lib64/nvidia/TARGET/DRIVER/RELEASE, the release
    without its architecture, each beside the signature that is put behind it once it is linked.

    Source: kmod-nvidia.spec of https://github.com/NVIDIA/yum-packaging-precompiled-kmod (branch rhel9, 1bdb2d6).
    """
    paths = [os.path.join(where, name) for where, _dirs, names in os.walk(tree) for name in names
             if name.endswith(_OBJECTS)]
    own = [path for path in paths if f"/{release}/" in path]
    parts = [path for path in paths if f"/{driver}/{_ARCH.sub('', release)}/" in path and path.endswith(_PART)]
    if own:
        return {"modules": sorted(os.path.basename(path)[: -len(_OBJECTS)] for path in own), "signer": None,
                "notes": [trust.doubt(what, None)] if signed else []}
    names = sorted(os.path.basename(path)[: -len(_PART)] for path in parts)
    if "nvidia" not in names:
        raise ProofError(f"{what} holds no module for kernel {release} and driver {driver}", release)
    bare = sorted(os.path.basename(path)[: -len(_PART)] for path in parts
                  if not os.path.isfile(f"{path[: -len(_PART)]}{_SIGNATURE}"))
    if signed and bare:
        raise ProofError(f"{what} is not what kernel {release} needs: it has no signature for {', '.join(bare)}",
                         release)
    wrong: list[str] = []
    notes = _signers({f"{name}.ko": _signer(parts, name) for name in names}, trust, wrong, signed)
    if wrong:
        raise ProofError(f"{what} is not what kernel {release} needs: {'; '.join(wrong)}", release)
    return {"modules": names, "signer": _signer(parts, "nvidia"), "notes": notes}


def _signer(parts: list[str], name: str) -> str | None:
    """Who made the signature that lies beside the objects of a module; None where none tells."""
    path = next(f"{part[: -len(_PART)]}{_SIGNATURE}" for part in parts if os.path.basename(part) == f"{name}{_PART}")
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as handle:
        return common_name(handle.read())
