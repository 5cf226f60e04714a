# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a runfile (NVIDIA-Linux-….run) put on a host: its own log, modules and libraries that no package owns, DKMS.

The installer keeps a log of what it installed, ``/var/lib/nvidia/log``: the version, a description, then for each file
``NUMBER: PATH`` and a line of detail. Numbers 0 and 1 are files and links of its own; higher ones are files of others
that it set aside and brings back when it is uninstalled.

Source: github.com/NVIDIA/nvidia-installer, backup.c.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Callable

from ..facts.driver import loaded
from ..facts.kernel import flavour_of
from ..facts.tree import Tree

Runner = Callable[..., Any]
LOG = "/var/lib/nvidia/log"
# As the installer names itself; the second is the same program, told to uninstall.
UNINSTALLERS = {
    "/usr/bin/nvidia-uninstall": ("--silent",),
    "/usr/sbin/nvidia-uninstall": ("--silent",),
    "/usr/bin/nvidia-installer": ("--uninstall", "--silent"),
}
_VERSION = re.compile(r"^\d{3}\.\d{2,3}(\.\d{2})?$")
_ENTRY = re.compile(r"^(\d+): (/\S.*)$")
_OWN = 2  # numbers below it are files and links that the installer made
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib32")
_MODULE = re.compile(r"^nvidia[a-z-]*\.ko(\.(xz|gz|zst))?$")
_DKMS = "/var/lib/dkms/nvidia"
_BATCH = 200


@dataclass(frozen=True)
class Traces:
    """What tells of a runfile. ``files``: what lies there by its log; ``modules``, ``libraries``: by their place."""

    version: str | None = None
    uninstaller: str | None = None
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    dkms: str | None = None  # version in DKMS' tree, whose source no package owns
    logged: bool = field(default=False, compare=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, each once."""
        return tuple(dict.fromkeys((*self.files, *self.modules, *self.libraries)))


def uninstaller(tree: Tree) -> str | None:
    """The program that takes the runfile out, None when it is gone."""
    return next((path for path in UNINSTALLERS if tree.isfile(path)), None)


def logged(tree: Tree) -> tuple[str | None, list[str]]:
    """(version, files and links of its own) by the installer's log; (None, []) without one."""
    lines = (tree.text(LOG, 4 * 1024 * 1024) or "").splitlines()
    version = lines[0].strip() if lines and _VERSION.match(lines[0].strip()) else None
    found = [match.group(2) for line in lines[2:] if (match := _ENTRY.match(line)) and int(match.group(1)) < _OWN]
    return version, found if version else []


def kept_of_others(tree: Tree) -> list[str]:
    """Files of others that the installer set aside and nobody brought back, where it keeps them."""
    lines = (tree.text(LOG, 4 * 1024 * 1024) or "").splitlines()
    rows = [(int(match.group(1)), match.group(2)) for line in lines[2:] if (match := _ENTRY.match(line))]
    return [f"/var/lib/nvidia/{number} (was {path})" for number, path in rows
            if number > _OWN and tree.lexists(f"/var/lib/nvidia/{number}")]


def find(tree: Tree, run: Runner, manager: str, known: str | None = None) -> Traces:
    """The traces of a runfile; ``known`` is its version where nothing on the host tells it any more.

    Of what lies where drivers lie only files that no package owns are named.
    """
    version, listed = logged(tree)
    version = version or known
    there = [path for path in listed if tree.lexists(path)]
    modules = [path for path in tree.expand("/lib/modules/*/kernel/drivers/video/nvidia*.ko*")
               if _MODULE.match(path.rpartition("/")[2])]
    modules += [path for path in tree.expand("/lib/modules/*/kernel/drivers/video/nvidia/nvidia*.ko*")
                if _MODULE.match(path.rpartition("/")[2])]
    libraries = [path for folder in _LIBRARIES for path in tree.glob(folder, f"*.so.{version}")] if version else []
    source = f"/usr/src/nvidia-{version}"
    asked = [*there, *modules, *libraries, *([f"{source}/dkms.conf"] if version else ())]
    owned = owners(asked, run, manager)
    dkms = version if version and tree.isdir(f"{_DKMS}/{version}") and f"{source}/dkms.conf" not in owned else None
    return Traces(
        version=version,
        uninstaller=uninstaller(tree),
        files=tuple(path for path in there if path not in owned),
        modules=tuple(path for path in modules if path not in owned),
        libraries=tuple(path for path in libraries if path not in owned),
        dkms=dkms,
        logged=bool(listed),
    )


def flavour(tree: Tree, run: Runner, found: Traces) -> str | None:
    """open or proprietary, by the licence of its modules, else by the one that is loaded; None where nothing tells."""
    built = tree.expand("/lib/modules/*/updates/dkms/nvidia.ko*") if found.dkms else []
    for path in (*found.modules, *built):
        if path.rpartition("/")[2].startswith("nvidia.ko"):
            said = run(["modinfo", "-F", "license", tree.real(path)], timeout=60)
            told = flavour_of({"license": said.out.strip()}) if said.rc == 0 else None
            if told is not None:
                return told
    try:
        return (loaded(tree) or {}).get("flavour")
    except ValueError:
        return None


def owners(paths: Iterable[str], run: Runner, manager: str) -> set[str]:
    """Those of ``paths`` that belong to a package."""
    asked = list(dict.fromkeys(paths))
    found: set[str] = set()
    for start in range(0, len(asked), _BATCH):
        batch = asked[start:start + _BATCH]
        found |= _dpkg(batch, run) if manager == "apt" else _rpm(batch, run)
    return found


def _dpkg(paths: list[str], run: Runner) -> set[str]:
    """dpkg knows a path as the package has it: with /usr or without, where the two are one."""
    spelled = {other: path for path in paths for other in (path, _other(path))}
    result = run(["dpkg-query", "--search", "--", *spelled], timeout=120)
    known = {line.partition(": ")[2].strip() for line in result.out.splitlines() if ": " in line
             and not line.startswith("diversion by")}
    return {spelled[one] for one in known if one in spelled}


def _rpm(paths: list[str], run: Runner) -> set[str]:
    result = run(["rpm", "-qf", "--queryformat", "%{NAME}\\n", "--", *paths], timeout=120)
    lines = [line for line in f"{result.out}".splitlines() if line.strip()]
    if len(lines) == len(paths):  # one line for each, in their order
        return {path for path, line in zip(paths, lines) if " " not in line.strip()}
    return {path for path in paths if run(["rpm", "-qf", "--", path], timeout=60).rc == 0}


def _other(path: str) -> str:
    return path[4:] if path.startswith("/usr/lib") else f"/usr{path}" if path.startswith("/lib") else path
