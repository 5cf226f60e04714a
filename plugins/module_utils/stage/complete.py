# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kernel that came in is whole: image, initrd with what the present one has, modules, a menu entry."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Callable

from .. import atomic
from ..facts import initrd, kernel, modinfo, modprobe
from ..facts.context import Context
from ..facts.modinfo import stem
from ..facts.tree import Tree
from ..mok import trust
from .snapshot import at

Runner = Callable[..., Any]
_READ_TIMEOUT = 180.0
_DRIVER = "the driver"
# Losing a driver below one of these can leave a host without its root file system.
_NEEDED = ("kernel/drivers/ata/", "kernel/drivers/block/", "kernel/drivers/md/", "kernel/drivers/message/",
           "kernel/drivers/mmc/", "kernel/drivers/nvme/", "kernel/drivers/scsi/", "kernel/drivers/virtio/",
           "kernel/fs/")


def problems(root: str, release: str, beside: str, *, driver: str, flavour: str | None, signed: bool,
             others: Iterable[str]) -> list[str]:
    """Everything that keeps kernel ``release`` from being as good as ``beside``, in sentences; empty: it is whole."""
    tree = Tree(root)
    found = []
    if not kernel.images(tree).get(release):
        return [f"kernel {release} has no image"]
    path = kernel.initrd_path(tree, release)
    if path is None or os.path.getsize(at(root, path)) == 0:
        found.append(f"kernel {release} has no initrd")
    else:
        found += _initrd(root, release, path, kernel.initrd_path(tree, beside))
    ctx = Context(tree)
    settings = modprobe.settings(tree)
    try:
        module = kernel.nvidia_module(ctx, release, settings)
    except (OSError, ValueError) as exc:
        return [*found, f"the nvidia module of {release} cannot be read: {exc}"]
    if module is None:
        found.append(f"kernel {release} has no nvidia module")
    else:
        found += _module(release, module, driver, flavour, signed)
    if signed:
        wanted = {*others, *([_DRIVER] if module is not None and module.get("signed") else [])}
        found += _signatures(ctx, release, beside, wanted, trust.read(root))
    there = kernel.extra_modules(tree, release)
    lacking = [name for name in others if name not in there]
    if lacking:
        found.append(f"kernel {release} has no {', '.join(lacking)}, which {beside} has")
    return found


def _module(release: str, module: dict[str, Any], driver: str, flavour: str | None, signed: bool) -> list[str]:
    found = []
    if module.get("version") != driver:
        found.append(f"the nvidia module of {release} is {module.get('version')}, not {driver}")
    if flavour is not None and module.get("flavour") not in (None, flavour):
        found.append(f"the nvidia module of {release} is {module['flavour']}, not {flavour}")
    if module.get("vermagic_ok") is False:
        found.append(f"the nvidia module of {release} was built for another kernel")
    if signed and not module.get("signed"):
        found.append(f"Secure Boot is on and the nvidia module of {release} is not signed")
    return found


def _signatures(ctx: Context, release: str, beside: str, wanted: set[str], known: trust.Trust) -> list[str]:
    """What Secure Boot would refuse of these sets of modules, each by its first file.

    A signer that vouches for the same module of the present kernel is taken, and another module that is unsigned there
    too is nothing that the host lives on.
    """
    found: dict[str, str] = {}
    former = _first_of_each(ctx, beside)
    for module, path in _first_of_each(ctx, release).items():
        name = _DRIVER if kernel.is_driver(path) else kernel.set_of(path)
        if name is None or name in found or name not in wanted:
            continue
        what = f"{module} of {release}" if name in (_DRIVER, module) else f"{module} ({name}) of {release}"
        try:
            signer, is_signed = _signer(ctx, path)
            if is_signed and known.takes(signer) is not False:
                continue
            present = _signer(ctx, former[module]) if module in former else None
        except (OSError, ValueError) as exc:
            found[name] = f"the signature of {what} cannot be read: {exc}"
            continue
        if is_signed:
            fine = present is not None and present[1] and present[0] == signer
        else:
            fine = present is not None and not present[1] and name != _DRIVER
        if not fine:
            found[name] = known.refusal(what, signer) if is_signed else f"Secure Boot is on and {what} is not signed"
    return list(found.values())


def _first_of_each(ctx: Context, release: str) -> dict[str | None, str]:
    """Module → the file that depmod prefers."""
    return {stem(os.path.basename(path)): path for path in reversed(kernel.own_modules(ctx.tree, release))}


def _signer(ctx: Context, path: str) -> tuple[str | None, bool]:
    info = modinfo.inspect(ctx, path)
    return info.get("signer") or None, info["signed"] == "yes"


def _initrd(root: str, release: str, path: str, beside: str | None) -> list[str]:
    """The initrd can be read, has modules of its own kernel, and every disk and file system driver of the other's."""
    try:
        content = initrd.inspect(at(root, path), _READ_TIMEOUT)
    except (OSError, ValueError) as exc:
        return [f"the initrd of {release} cannot be read: {exc}"]
    known = _modules(root, release)
    if known and not content.modules:
        return [f"the initrd of {release} has no kernel module in it"]
    strange = content.modules - set(known)
    if known and len(strange) * 2 > len(content.modules):
        return [f"the initrd of {release} holds modules of another kernel ({sorted(strange)[0]}, …)"]
    if beside is None:
        return []
    try:
        former = initrd.inspect(at(root, beside), _READ_TIMEOUT)
    except (OSError, ValueError):
        return []  # what the present kernel has cannot be read; it boots
    lost = sorted(name for name in former.modules - content.modules if known.get(name, "").startswith(_NEEDED))
    if lost:
        return [f"the initrd of {release} lacks {', '.join(lost[:5])}, which that of the present kernel has: it may "
                "not find its root file system"]
    return []


def _modules(root: str, release: str) -> dict[str, str]:
    """Module name → path below the kernel's directory, from modules.dep."""
    text = atomic.read_text(at(root, f"/lib/modules/{release}/modules.dep")) or ""
    paths = (line.split(":", 1)[0] for line in text.splitlines())
    return {name: path for path in paths if (name := stem(os.path.basename(path))) is not None}
