# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a restart goes past the boot loader: what it would start once, and its default, are not looked at then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import grub
from .tree import Tree

SETTINGS = "/etc/default/kexec"
_LOADED = "/sys/kernel/kexec_loaded"
_PROGRAMS = ("/sbin/kexec", "/usr/sbin/kexec")
_RUN_PARTS = re.compile(r"[A-Za-z0-9_-]+")    # the names that run-parts takes, by which kexec-load finds its snippets


class Detour(NamedTuple):
    """Why a restart would go past the boot loader, and how to end that."""

    why: str
    way_out: str


def read(tree: Tree) -> dict[str, Any]:
    """``{loaded, load_at_restart}``: a kernel is loaded now; the file by which one is loaded at each restart, or None.

    Debian's kexec-tools do the latter where LOAD_KEXEC is true (init script kexec-load). The kexec-tools of EL and SUSE
    do not: theirs are for crashes, and a kernel for those is loaded apart. Raises OSError.
    """
    return {"loaded": (tree.text(_LOADED, 16) or "").strip() == "1", "load_at_restart": _load_at_restart(tree)}


def _load_at_restart(tree: Tree) -> str | None:
    if not any(tree.exists(path) for path in _PROGRAMS):
        return None    # settings that a removed package left
    snippets = [path for path in tree.glob(f"{SETTINGS}.d", "*") if _RUN_PARTS.fullmatch(path.rsplit("/", 1)[-1])]
    found: str | None = None
    for path in (SETTINGS, *snippets):
        value = grub.settings([tree.text(path) or ""]).get("LOAD_KEXEC")
        if value is not None:    # the last one counts
            found = path if value == "true" else None
    return found


def detour(found: Mapping[str, Any]) -> Detour | None:
    """What these facts (as ``read`` gives them) mean for a restart; None where it goes by the boot loader."""
    if found.get("loaded") is True:    # a newer systemd takes it, and so does kexec-tools' own init script
        return Detour("a kernel is loaded for kexec, and a restart would start that one past GRUB",
                      "take it out: kexec --unload")
    path = found.get("load_at_restart")
    if isinstance(path, str):
        return Detour(f"LOAD_KEXEC=true in {path} makes a restart go past GRUB: kexec-tools load a kernel themselves, "
                      "the newest where nothing else is set, whatever the boot default is",
                      f"set it to false there ({path}; dpkg-reconfigure kexec-tools), or remove kexec-tools")
    return None
