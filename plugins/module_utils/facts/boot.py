# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel starts next, and whether the boot loader can be steered."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from . import bls, grub, kexec, trial
from .context import Context
from .storage import Mount, mount_of, mounts
from .tree import Tree

GRUB_DIRECTORIES = ("/boot/grub", "/boot/grub2")
_EFI_DIRECTORIES = tuple(
    f"/boot/efi/EFI/{name}" for name in ("redhat", "rocky", "almalinux", "centos", "fedora", "oracle")
)
_UPDATE_DEFAULT = "/etc/sysconfig/kernel"
# grub-core has no way to write these, or to write through these layers (util/grub.d/00_header.in knows the same)
_NO_GRUB_WRITE = frozenset(
    {"btrfs", "zfs", "squashfs", "romfs", "cpiofs", "tarfs", "overlay", "nfs", "nfs4", "tmpfs", "iso9660"}
)
_MOST_ENTRIES = 16


def read(ctx: Context) -> None:
    tree = ctx.tree
    if tree.isdir("/sys/firmware"):
        ctx.set("boot.firmware", "uefi" if tree.isdir("/sys/firmware/efi") else "bios")
    else:
        ctx.cannot("boot.firmware", "/sys/firmware is not there")
    with ctx.attempt("boot.watchdog"):
        ctx.set("boot.watchdog", watchdog(tree))
    with ctx.attempt("boot.kexec"):
        ctx.set("boot.kexec", kexec.read(tree))
    with ctx.attempt("boot.trial"):
        ctx.set("boot.trial", trial.read(tree))
    _layout(ctx)
    directory = grub_directory(tree)
    with ctx.attempt("boot.loader"):
        # a grub.cfg may be left over: who booted this system says so itself
        if directory and (bls.variable(tree, "LoaderInfo") or "").startswith("systemd-boot"):
            directory = None
    if directory:
        ctx.set("boot.loader", "grub")
        _grub(ctx, directory)
        return
    conf = None
    with ctx.attempt("boot.loader"):
        conf = bls.loader_conf(tree)
        if conf is not None:
            ctx.set("boot.loader", "systemd-boot")
            _systemd_boot(ctx, conf)
            return
        if tree.isfile("/boot/extlinux/extlinux.conf"):
            ctx.set("boot.loader", "extlinux")
            _unsupported(ctx, "the entries of extlinux are not read")
            return
        if tree.isfile("/etc/zipl.conf"):
            ctx.set("boot.loader", "zipl")
            _unsupported(ctx, "the entries of zipl are not read")
            return
        tree.names("/boot")  # may not be readable: then nobody knows
        ctx.set("boot.loader", None)
        for key in ("menu", "default_mode", "default_entry", "next_entry"):
            ctx.set(f"boot.{key}", None)
        _not_writable(ctx, "there is no boot loader")
        ctx.set("boot.entries", [])
        ctx.set("kernel.default_boot", None)


def _unsupported(ctx: Context, why: str) -> None:
    for path in ("boot.default_mode", "boot.default_entry", "boot.next_entry", "boot.entries", "kernel.default_boot"):
        ctx.cannot(path, why)
    _not_writable(ctx, "only GRUB starts an entry once")


def _not_writable(ctx: Context, why: str) -> None:
    ctx.set("boot.env_writable", False)
    ctx.set("boot.env_reason", why)


def grub_directory(tree: Tree) -> str | None:
    """The directory of grub.cfg, None without GRUB."""
    # EL 8 on UEFI keeps the menu beside the loader; from EL 9 on there is only a stub that names the real one
    if tree.isdir("/sys/firmware/efi"):
        for directory in _EFI_DIRECTORIES:
            with contextlib.suppress(OSError):
                text = tree.text(f"{directory}/grub.cfg", 4 * 1024 * 1024) or ""
                if re.search(r"^\s*(blscfg|menuentry)\b", text, re.MULTILINE):
                    return directory
    for directory in (*GRUB_DIRECTORIES, *_EFI_DIRECTORIES):
        if tree.lexists(f"{directory}/grub.cfg"):
            return directory
    return None


def snippets_count(tree: Tree) -> bool:
    """Whether grub-mkconfig reads /etc/default/grub.d: Debian's and Ubuntu's do, those of EL and SUSE do not."""
    for name in ("grub-mkconfig", "grub2-mkconfig"):
        for directory in ("/usr/sbin", "/usr/bin", "/sbin"):
            with contextlib.suppress(OSError):
                text = tree.text(f"{directory}/{name}", 262144)
                if text is not None:
                    return "default/grub.d" in text
    return not tree.isdir("/boot/grub2")


def grub_settings(tree: Tree) -> dict[str, str]:
    """/etc/default/grub and its snippets as they work together. Raises OSError."""
    texts = [tree.text("/etc/default/grub") or ""]
    if snippets_count(tree):
        texts += [tree.text(path) or "" for path in tree.glob("/etc/default/grub.d", "*.cfg")]
    return grub.settings(texts)


def environment(tree: Tree, directory: str) -> dict[str, str] | None:
    """GRUB's environment block, None when there is none. Raises OSError, or ValueError when it is damaged."""
    try:
        raw = tree.read_bytes(f"{directory}/grubenv", 65536)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return grub.parse_block(raw)


def _grub(ctx: Context, directory: str) -> None:
    tree = ctx.tree
    env: dict[str, str] | None = None
    env_read = False
    with ctx.attempt("boot.next_entry"):
        env = environment(tree, directory)
        env_read = True
        ctx.set("boot.next_entry", (env or {}).get("next_entry") or None)
        ctx.set("boot.saved_entry", (env or {}).get("saved_entry") or None)
    _writable(ctx, directory, env_read and env is not None)
    configured: dict[str, str] = {}
    with ctx.attempt("boot.configured_default"):
        configured = grub_settings(tree)
        ctx.set("boot.configured_default", configured.get("GRUB_DEFAULT") or None)
    with ctx.attempt("boot.update_default"):
        update = update_default(tree)
        if update is not None:
            ctx.set("boot.update_default", update)
    try:
        menu = load_menu(tree, directory)
    except (OSError, ValueError) as error:
        for path in ("boot.default_mode", "boot.default_entry", "boot.entries", "kernel.default_boot"):
            ctx.cannot(path, error)
        return
    ctx.set("boot.menu", "grub_cfg" if menu.bls_at is None else "bls")
    ctx.set("boot.default_mode", mode_of(menu))
    ctx.set("boot.entries", _rows(ctx, menu.all()))
    if menu.follows_saved and not env_read:
        for path in ("boot.default_entry", "kernel.default_boot"):
            ctx.cannot(path, "the default is the saved entry, and grubenv cannot be read")
        return
    entry = grub.default_entry(menu, env or {})
    ctx.set("boot.default_entry", entry.path if entry else None)
    if entry is None:
        ctx.set("kernel.default_boot", None)
    else:
        _default_boot(ctx, entry.release, entry.title)


def update_default(tree: Tree) -> bool | None:
    """Whether a new kernel makes itself the default (UPDATEDEFAULT of EL); None where there is no such setting."""
    text = tree.text(_UPDATE_DEFAULT, 65536)
    value = grub.settings([text]).get("UPDATEDEFAULT") if text else None
    return None if value is None else value.lower() == "yes"


def load_menu(tree: Tree, directory: str) -> grub.Menu:
    """grub.cfg with the BLS entries where blscfg puts them. Raises OSError."""
    return menu_of(tree, tree.read(f"{directory}/grub.cfg", 4 * 1024 * 1024))


def menu_of(tree: Tree, text: str) -> grub.Menu:
    """The menu that a grub.cfg makes, with the BLS entries where blscfg puts them. Raises OSError."""
    menu = grub.parse_menu(text)
    if menu.bls_at is not None:
        menu.entries[menu.bls_at : menu.bls_at] = [item.entry() for item in bls.grub_items(tree)]
    return menu


def mode_of(menu: grub.Menu) -> str:
    """What decides in grub.cfg: ``saved``, ``index`` (a position, which moves with every kernel) or ``entry``."""
    if menu.follows_saved:
        return "saved"
    return "index" if re.fullmatch(r"[\d>]+", menu.default or "0") else "entry"


def _default_boot(ctx: Context, release: str | None, title: str) -> None:
    tree = ctx.tree
    if release is None:  # /vmlinuz is a link to the newest image
        for link in ("/vmlinuz", "/boot/vmlinuz"):
            target = tree.readlink(link)
            if target:
                release = grub.release_of(target)
                break
    if release is None:
        ctx.cannot("kernel.default_boot", f"the image of the default entry ({title}) names no kernel release")
    else:
        ctx.set("kernel.default_boot", release)


def _rows(ctx: Context, entries: list[grub.Entry]) -> list[dict[str, Any]]:
    if len(entries) > _MOST_ENTRIES:
        ctx.cannot("boot.entries[]", f"{len(entries)} entries, only the first {_MOST_ENTRIES} are given")
    return [{"id": one.path, "title": one.title, "release": one.release} for one in entries[:_MOST_ENTRIES]]


def _systemd_boot(ctx: Context, conf: dict[str, str]) -> None:
    tree = ctx.tree
    _not_writable(ctx, "the boot loader is systemd-boot, which is only read here")
    ctx.set("boot.menu", "bls")
    with ctx.attempt("boot.next_entry"):
        ctx.set("boot.next_entry", bls.variable(tree, "LoaderEntryOneShot"))
    with ctx.attempt("kernel.default_boot"):
        items = bls.items(tree)
        ctx.set("boot.entries", _rows(ctx, [item.entry() for item in items]))
        wanted = bls.variable(tree, "LoaderEntryDefault") or conf.get("default")
        ctx.set("boot.default_mode", "saved" if wanted == "@saved" else ("entry" if wanted else "index"))
        if wanted == "@saved":
            wanted = bls.variable(tree, "LoaderEntryLastBooted")
        chosen = bls.choose(items, wanted)
        entry = chosen.entry() if chosen else None
        ctx.set("boot.default_entry", entry.path if entry else None)
        if entry is None or entry.release is None:
            ctx.cannot("kernel.default_boot", "no boot entry of type 1 tells a kernel release")
        else:
            ctx.set("kernel.default_boot", entry.release)


def _layout(ctx: Context) -> None:
    tree = ctx.tree
    with ctx.attempt("boot.boot_layout"):
        mount = mount_of(mounts(tree), "/boot")
        ctx.set("boot.boot_fs", mount.fstype if mount else None)
        ctx.set("boot.boot_layout", layout_of(tree, mount))
        return
    ctx.cannot("boot.boot_fs", ctx.unknown["boot.boot_layout"])


def _writable(ctx: Context, directory: str, has_env: bool) -> None:
    with ctx.attempt("boot.env_writable"):
        if not has_env and "boot.next_entry" in ctx.unknown:
            ctx.cannot("boot.env_writable", ctx.unknown["boot.next_entry"])
            return
        reason = why_not_writable(ctx.tree, directory, has_env)
        ctx.set("boot.env_writable", reason is None)
        ctx.set("boot.env_reason", reason)


def why_not_writable(tree: Tree, directory: str, has_env: bool = True) -> str | None:
    """Why GRUB cannot write its environment while booting, None when it can.

    The file, the file system and the layers below it decide. Raises OSError, ValueError.
    """
    if not has_env:
        return f"there is no environment block ({directory}/grubenv)"
    mount = mount_of(mounts(tree), tree.resolve(f"{directory}/grubenv"))
    if mount is None:
        return f"the file system of {directory}/grubenv is not known"
    layout = layout_of(tree, mount)
    if mount.fstype in _NO_GRUB_WRITE:
        return f"{mount.point} is {mount.fstype}, which GRUB only reads"
    if layout != "partition":
        return f"{mount.point} is on {layout or mount.source}, which GRUB only reads"
    return None


def layout_of(tree: Tree, mount: Mount | None) -> str | None:
    """partition, disk, mdraid, lvm, crypt, multipath, dm, zfs, btrfs; None where no block device is below (containers).

    Raises ValueError when the device is a block device and /sys does not say what kind.
    """
    if mount is None:
        return None
    if mount.fstype == "zfs":
        return "zfs"
    name = block_name(tree, mount)
    if name is None:
        return None
    where = f"/sys/class/block/{name}"
    if not tree.exists(where):
        raise ValueError(f"/boot lies on {name}, of which /sys/class/block says nothing")
    if tree.exists(f"{where}/dm"):
        uuid = tree.text(f"{where}/dm/uuid", 256) or ""
        for mark, word in (("LVM-", "lvm"), ("CRYPT-", "crypt"), ("mpath-", "multipath")):
            if uuid.startswith(mark) or re.match(rf"part\d+-{mark}", uuid):
                return word
        return "dm"
    if tree.exists(f"{where}/md") or re.match(r"md[\d_]", name):
        return "mdraid"
    resolved = tree.resolve(where)
    if re.search(r"/md[\d_][^/]*/", resolved):
        return "mdraid"
    if mount.fstype == "btrfs":
        return "btrfs"
    return "partition" if tree.exists(f"{where}/partition") else "disk"


def block_name(tree: Tree, mount: Mount) -> str | None:
    """The kernel's name of the mounted block device (``sda1``, ``dm-0``), None when it is none."""
    if mount.device and not mount.device.startswith("0:"):
        link = tree.readlink(f"/sys/dev/block/{mount.device}")
        if link:
            return link.rsplit("/", 1)[-1]
    if not mount.source.startswith("/dev/"):
        return None
    if mount.source == "/dev/root":
        raise ValueError("the root device is only known as /dev/root")
    return tree.resolve(mount.source).rsplit("/", 1)[-1]


def watchdog(tree: Tree) -> dict[str, str] | None:
    """The first hardware watchdog as its device and what it calls itself, None without one."""
    for path in tree.glob("/sys/class/watchdog"):
        name = path.rsplit("/", 1)[-1]
        return {"device": f"/dev/{name}", "identity": tree.text(f"{path}/identity", 128) or name}
    for device in ("/dev/watchdog0", "/dev/watchdog"):
        if tree.exists(device):
            return {"device": device, "identity": "unnamed"}
    return None
