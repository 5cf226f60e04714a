# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes GRUB start one kernel by default. Logic of module ``boot_default``.

Everything that GRUB reads is replaced in one step (written beside, checked, synced, renamed) and then read back, so
that a power cut leaves either the old menu and default or the new ones.
"""
from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import Any

from . import atomic
from .errors import HostError
from .facts import grub
from .packages.base import Runner

SNIPPET_PATH = "/etc/default/grub.d/zz-baremetal-nvidia.cfg"
_MKCONFIG_TIMEOUT = 300.0
_ENV_SIZE = 1024    # GRUB writes the block in place, so it never changes its size
_UNWRITABLE = ("btrfs", "zfs", "squash4", "iso9660", "f2fs", "cpiofs", "newc", "tarfs")


class BootError(HostError):
    """The boot default cannot be set, or is not what was set."""


def snippet() -> str:
    """The file in /etc/default/grub.d: the default comes from the environment block, and a choice at the console
    does not become the default."""
    return ("# Managed by baremetal.nvidia (module boot_default): changes by hand are undone by its next run.\n"
            "GRUB_DEFAULT=saved\nGRUB_SAVEDEFAULT=false\n")


def entry_of(menu: grub.Menu, release: str) -> grub.Entry | None:
    """The ordinary entry that starts ``release`` and will start no other kernel after an update, or None.

    Not the recovery entry, and not Debian's first entry, which stands for the newest kernel, whatever that is.
    """
    for entry in menu.all():
        name = f"{entry.id or ''} {entry.title}".lower()
        if entry.release == release and "recovery" not in name and "-simple" not in name:
            return entry
    return None


@dataclass
class Outcome:
    """What was (or would be) done. ``boots``: the release that starts next by default, as read back."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    boots: str | None = None
    entry: str | None = None
    once: str | None = None                # next_entry: what boots once before the default
    env_writable: bool | None = None       # whether GRUB itself can write its environment, as a trial boot needs
    env_reason: str | None = None
    skipped_reason: str | None = None


class BootDefault:
    """GRUB of the tree ``root``."""

    def __init__(self, run: Runner, root: str = "/") -> None:
        self.run = run
        self.root = root
        self.directory = self._path("/boot/grub")
        self.cfg = os.path.realpath(os.path.join(self.directory, "grub.cfg"))
        self.env = os.path.realpath(os.path.join(self.directory, "grubenv"))

    def _path(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def _call(self, *argv: str, timeout: float = 60.0) -> str:
        result = self.run(list(argv), timeout=timeout)
        if result.timed_out or result.rc != 0:
            words = (result.err or result.out).strip() or "no message"
            raise BootError(f"{argv[0]} failed ({'no answer in time' if result.timed_out else result.rc}): {words}")
        return str(result.out)

    def absent(self) -> str | None:
        """Why there is no GRUB to set here, or None when there is one."""
        if os.path.exists(self.cfg):
            return None
        for path in ("/boot/loader/loader.conf", "/boot/efi/loader/loader.conf", "/efi/loader/loader.conf"):
            if os.path.exists(self._path(path)):
                return f"the boot loader is systemd-boot ({path}): its default is not managed"
        return "there is no boot loader here: no /boot/grub/grub.cfg"

    # reading

    def _menu(self) -> grub.Menu:
        return grub.parse_menu(atomic.read_text(self.cfg) or "")

    def _env(self) -> dict[str, str]:
        try:
            with open(self.env, "rb") as handle:
                raw = handle.read()
            if len(raw) != _ENV_SIZE:
                raise ValueError(f"it has {len(raw)} bytes, not {_ENV_SIZE}")
            return grub.parse_env(raw.decode("utf-8", "replace"))
        except FileNotFoundError:
            return {}
        except ValueError as exc:
            raise BootError(f"{self.env} is damaged: {exc}. Remove it and run grub-editenv {self.env} create") from exc

    def _refuse(self, release: str) -> None:
        """Raise BootError where the kernel could not start or GRUB's files cannot be written."""
        for kind, names in (("kernel", ("vmlinuz", "vmlinux")), ("initrd", ("initrd.img",))):
            paths = [self._path(f"/boot/{name}-{release}") for name in names]
            if not any(os.path.exists(p) and os.path.getsize(p) > 0 for p in paths):
                raise BootError(f"kernel {release} has no {kind} in /boot ({paths[0]}): it cannot be the boot default")
        if os.statvfs(self.directory).f_flag & os.ST_RDONLY:
            raise BootError(f"{self.directory} is mounted read-only: the boot default cannot be set. Mount it writable")
        if not os.access(self.directory, os.W_OK):
            raise BootError(f"{self.directory} is not writable: the boot default cannot be set")

    def env_writable(self) -> tuple[bool | None, str | None]:
        """Whether GRUB can write its environment at boot, with the reason where it cannot. (None, why) if unknown."""
        answers = []
        for target in ("abstraction", "fs"):
            result = self.run(["grub-probe", f"--target={target}", self.directory], timeout=30)
            if result.rc != 0:
                return None, f"grub-probe: {(result.err or 'no answer').strip().splitlines()[0]}"
            answers.append(str(result.out).split())
        abstraction, file_system = answers
        if abstraction:
            return False, f"/boot is on {' '.join(abstraction)}, which GRUB only reads"
        if file_system and file_system[0] in _UNWRITABLE:
            return False, f"/boot is on {file_system[0]}, which GRUB only reads"
        return True, None

    # doing

    def set(self, release: str, check: bool) -> Outcome:
        """Make ``release`` the default. Raises BootError (HostError), OSError."""
        reason = self.absent()
        if reason:
            return Outcome(skipped_reason=reason)
        self._refuse(release)
        menu, env = self._menu(), self._env()
        path = self._path(SNIPPET_PATH)
        current = atomic.read_text(path)
        entry = entry_of(menu, release)
        outcome = Outcome(once=env.get("next_entry") or None)
        outcome.env_writable, outcome.env_reason = self.env_writable()
        if current != snippet():
            outcome.actions.append(f"write {SNIPPET_PATH}")
            outcome.diff.append(_diff(SNIPPET_PATH, current or "", snippet()))
        if outcome.actions or not menu.follows_saved or entry is None:
            outcome.actions.append("regenerate grub.cfg")
        saved = env.get("saved_entry") or ""
        if entry is None or saved != entry.path:
            target = entry.path if entry else f"the entry of {release}"
            outcome.actions.append(f"set saved_entry to {target}")
            outcome.diff.append(_diff("grubenv", f"saved_entry={saved}\n", f"saved_entry={target}\n"))
        outcome.changed = bool(outcome.actions)
        outcome.boots, outcome.entry = release, entry.path if entry else None
        if not check:
            if outcome.changed:
                self._apply(release, current, outcome)
            self._read_back(release, outcome)
        return outcome

    def _apply(self, release: str, former: str | None, outcome: Outcome) -> None:
        path = self._path(SNIPPET_PATH)
        if former != snippet():
            atomic.write(path, snippet())
        try:
            if "regenerate grub.cfg" in outcome.actions:
                self._regenerate(release)
        except (HostError, OSError):
            if former is None:
                atomic.remove(path)
            else:
                atomic.write(path, former)
            raise
        entry = entry_of(self._menu(), release)
        if entry is None:
            raise BootError(f"grub.cfg has no entry of its own for kernel {release} after it was regenerated")
        self._save(entry.path)
        os.sync()

    def _regenerate(self, release: str) -> None:
        """Generate the menu beside the present one, look into it, and only then put it in place."""
        new = self.cfg + ".baremetal-nvidia"
        try:
            self._call("grub-mkconfig", "-o", new, timeout=_MKCONFIG_TIMEOUT)
            menu = grub.parse_menu(atomic.read_text(new) or "")
            if not menu.follows_saved:
                raise BootError(f"GRUB_DEFAULT=saved has no effect (the menu says {menu.default!r}): a file that is "
                                f"read after {SNIPPET_PATH}, or one in /etc/grub.d, sets another. Take that out")
            if entry_of(menu, release) is None:
                raise BootError(f"the new menu has no entry for kernel {release}: grub.cfg is left as it was")
            os.chmod(new, atomic.mode_of(self.cfg) or 0o600)
            atomic.publish(new, self.cfg)
        finally:
            atomic.remove(new)

    def _save(self, entry: str) -> None:
        """As grub-set-default does it (next_entry stays), but on a copy that then takes the block's place."""
        new = self.env + ".baremetal-nvidia"
        try:
            if os.path.exists(self.env):
                shutil.copy2(self.env, new)
            else:
                self._call("grub-editenv", new, "create")
            self._call("grub-editenv", new, "unset", "prev_saved_entry")
            self._call("grub-editenv", new, "set", f"saved_entry={entry}")
            atomic.publish(new, self.env)
        finally:
            atomic.remove(new)

    def _read_back(self, release: str, outcome: Outcome) -> None:
        menu, env = self._menu(), self._env()
        saved, default = env.get("saved_entry"), grub.default_entry(menu, env)
        entry = entry_of(menu, release)
        outcome.boots, outcome.entry = default.release if default else None, entry.path if entry else None
        if entry is None or not menu.follows_saved or saved != entry.path or outcome.boots != release:
            raise BootError(f"the boot default was set to kernel {release} and reads back as {outcome.boots} "
                            f"(saved_entry {saved!r}, menu default {menu.default!r}): do not reboot this host before "
                            "that is cleared up")


def _diff(title: str, before: str, after: str) -> dict[str, Any]:
    return {"before_header": title, "after_header": title, "before": before, "after": after}
