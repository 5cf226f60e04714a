# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GRUB on the host as it is read and written: menu, environment block, kernels in /boot.

Everything that GRUB reads is replaced in one step (written beside, checked, synced, renamed), so that a power cut
leaves either the old menu and environment or the new ones.
"""
from __future__ import annotations

import os
import shutil

from .. import atomic
from ..errors import HostError
from ..facts import bls, boot, grub
from ..facts.tree import Tree
from ..packages.base import Runner
from . import settle

_MKCONFIG_TIMEOUT = 900.0    # os-prober looks at every disk
_UNWRITABLE = ("btrfs", "zfs", "squash4", "iso9660", "f2fs", "cpiofs", "newc", "tarfs")
_SECTOR = 512
_SYSTEMD_BOOT = ("/boot/loader/loader.conf", "/efi/loader/loader.conf", "/boot/efi/loader/loader.conf")
_BESIDE = ".baremetal-nvidia"
TRIAL_ID = "baremetal-nvidia-trial"           # in a menu of grub.cfg
TRIAL_BLS = "0-baremetal_nvidia_trial"        # version and release of a file name, below every kernel's


class BootError(HostError):
    """The boot loader cannot be set, or is not what it was set to."""


def is_trial(entry: grub.Entry) -> bool:
    """Whether an entry is the one of a trial boot, which is nobody's default."""
    name = entry.id or ""
    return name.startswith(TRIAL_ID) or name.endswith(TRIAL_BLS)


def entry_of(menu: grub.Menu, release: str) -> grub.Entry | None:
    """The ordinary entry that starts ``release`` and will start no other kernel after an update, or None.

    Not the recovery or rescue entry, not a trial's, and not Debian's first entry, which stands for the newest kernel,
    whatever that is.
    """
    for entry in menu.all():
        name = f"{entry.id or ''} {entry.title}".lower()
        special = any(word in name for word in ("recovery", "rescue", "-simple", "single-user"))
        if entry.release == release and not special and not is_trial(entry):
            return entry
    return None


def _one_sector(raw: bytes) -> bool:
    return len(raw) == grub.ENV_SIZE and set(raw[_SECTOR:]) <= {ord("#"), ord("\n")}


class Loader:
    """GRUB of the tree ``root``."""

    def __init__(self, run: Runner, root: str = "/") -> None:
        self.run = run
        self.tree = Tree(root)
        self.directory = boot.grub_directory(self.tree) or "/boot/grub"
        self.prefix = "grub" if self.directory == "/boot/grub" else "grub2"
        self.cfg = self.real(f"{self.directory}/grub.cfg")
        self.env_path = f"{self.directory}/grubenv"
        self.env = self.real(self.env_path)

    def real(self, path: str) -> str:
        """Where ``path`` of the tree lies on this machine, links followed."""
        return os.path.realpath(self.tree.real(path))

    def tool(self, name: str) -> str:
        """A program of GRUB as it is called here: ``grub-editenv`` or ``grub2-editenv``."""
        return f"{self.prefix}-{name}"

    def call(self, *argv: str, timeout: float = 60.0) -> str:
        """What a program prints. Raises BootError with its own words when it fails."""
        result = self.run(list(argv), timeout=timeout)
        if result.timed_out or result.rc != 0:
            words = (result.err or result.out).strip() or "no message"
            raise BootError(f"{argv[0]} failed ({'no answer in time' if result.timed_out else result.rc}): {words}")
        return str(result.out)

    def absent(self) -> str | None:
        """Why there is no GRUB to set here, or None when there is one."""
        started = bls.variable(self.tree, "LoaderInfo") or ""
        for path in _SYSTEMD_BOOT:
            ours = started.startswith("systemd-boot") or not os.path.exists(self.cfg)
            if ours and self.tree.exists(path):
                return f"the boot loader is systemd-boot ({path}): its default is not managed"
        if os.path.exists(self.cfg):
            return None
        return f"there is no boot loader here: no {self.directory}/grub.cfg"

    # reading

    def menu(self) -> grub.Menu:
        """The menu, BLS entries included. Raises OSError."""
        return self.menu_of(self.text())

    def menu_of(self, text: str) -> grub.Menu:
        """The menu that a grub.cfg makes here. Raises OSError."""
        return boot.menu_of(self.tree, text)

    def text(self) -> str:
        """grub.cfg as it is."""
        return atomic.read_text(self.cfg) or ""

    def environment(self) -> dict[str, str]:
        """The variables of the environment block, none when there is no block. Raises BootError for a damaged one."""
        try:
            with open(self.env, "rb") as handle:
                return grub.parse_block(handle.read())
        except FileNotFoundError:
            return {}
        except ValueError as exc:
            raise BootError(f"{self.env} is damaged: {exc}. Remove it and run {self.tool('editenv')} {self.env} "
                            "create") from exc

    def in_one_sector(self) -> bool:
        """Whether all variables stand in the first sector of the block, so that GRUB changes them by one write."""
        with open(self.env, "rb") as handle:
            return _one_sector(handle.read())

    def refuse(self, release: str, menu: grub.Menu) -> None:
        """Raise BootError where the kernel could not start."""
        files = {"kernel": (f"vmlinuz-{release}", f"vmlinux-{release}", f"Image-{release}"),
                 "initrd": (f"initrd.img-{release}", f"initramfs-{release}.img", f"initrd-{release}")}
        for kind, names in files.items():
            paths = [self.tree.real(f"/boot/{name}") for name in names] + self._named(release, kind, menu)
            if not any(os.path.exists(path) and os.path.getsize(path) > 0 for path in paths):
                raise BootError(f"kernel {release} has no {kind} in /boot ({paths[0]}): it cannot be started")

    def _named(self, release: str, kind: str, menu: grub.Menu) -> list[str]:
        """The files that the BLS entry of a kernel names, as seen from the root and from /boot."""
        if menu.bls_at is None:
            return []
        entry = entry_of(menu, release)
        for item in bls.grub_items(self.tree):
            if entry is not None and item.name == entry.id:
                path = item.fields.get({"kernel": "linux"}.get(kind, kind), "").split(" ")[0]
                return [self.tree.real(f"{top}{path}") for top in ("/boot", "")] if path else []
        return []

    def refuse_read_only(self) -> None:
        """Raise BootError where menu or environment cannot be written."""
        for directory in dict.fromkeys((os.path.dirname(self.cfg), os.path.dirname(self.env))):
            if os.statvfs(directory).f_flag & os.ST_RDONLY:
                raise BootError(f"{directory} is mounted read-only: the boot loader cannot be set. Mount it writable")
            if not os.access(directory, os.W_OK):
                raise BootError(f"{directory} is not writable: the boot loader cannot be set")

    def env_writable(self) -> tuple[bool | None, str | None]:
        """Whether GRUB can write its environment at boot, with the reason where it cannot. (None, why) if unknown."""
        answers = []
        for target in ("abstraction", "fs"):
            result = self.run([self.tool("probe"), f"--target={target}", os.path.dirname(self.env)], timeout=30)
            if result.rc != 0:
                return None, f"{self.tool('probe')}: {(result.err or 'no answer').strip().splitlines()[0]}"
            answers.append(str(result.out).split())
        abstraction, file_system = answers
        if abstraction:
            return False, f"/boot is on {' '.join(abstraction)}, which GRUB only reads"
        if file_system and file_system[0] in _UNWRITABLE:
            return False, f"/boot is on {file_system[0]}, which GRUB only reads"
        return True, None

    # writing

    def generate(self) -> str:
        """What grub-mkconfig makes of the present settings; grub.cfg itself is not touched."""
        new = self.cfg + _BESIDE
        try:
            self.call(self.tool("mkconfig"), "-o", new, timeout=_MKCONFIG_TIMEOUT)
            return atomic.read_text(new) or ""
        finally:
            for left in (new, new + ".new"):
                atomic.remove(left)

    def publish(self, text: str) -> None:
        """Put ``text`` in the place of grub.cfg, once GRUB's own parser accepts it."""
        new = self.cfg + _BESIDE
        try:
            atomic.write(new, text, mode=atomic.mode_of(self.cfg) or 0o600)
            self.call(self.tool("script-check"), new)
            settle.replace(new, self.cfg, self.tree.is_host)
        finally:
            atomic.remove(new)

    def save(self, **variables: str | None) -> None:
        """Set variables of the environment (None takes one out) on a copy, whose content then takes the block's place.

        next_entry goes last, so that clearing it moves nothing that stands behind it.
        """
        new = self.env + _BESIDE
        editenv = self.tool("editenv")
        try:
            if os.path.exists(self.env):
                shutil.copy2(self.env, new)
            else:
                self.call(editenv, new, "create")
            for name in ("next_entry", *variables):
                if name in variables:
                    self.call(editenv, new, "unset", name)
            for name, value in sorted(variables.items(), key=lambda pair: pair[0] == "next_entry"):
                if value is not None:
                    self.call(editenv, new, "set", f"{name}={value}")
            with open(new, "rb") as handle:
                raw = handle.read()
            grub.parse_block(raw)
            if _one_sector(raw) and os.path.exists(self.env) and self.in_one_sector():
                settle.overwrite(self.env, raw)    # one sector changes: it is the former or the new one
            else:
                settle.replace(new, self.env, self.tree.is_host)
        except ValueError as exc:
            raise BootError(f"{editenv} wrote a block that GRUB cannot read: {exc}. {self.env} is as it was") from exc
        finally:
            atomic.remove(new)
