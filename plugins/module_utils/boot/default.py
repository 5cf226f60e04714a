# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes GRUB start one kernel by default. Logic of module ``boot_default``.

What is written is read back, by grubby as well where there is one.
"""
from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .. import atomic
from ..errors import HostError
from ..facts import grub
from ..packages.base import Runner
from . import sections, settings
from .loader import BootError, Loader, entry_of

_GRUBBY = ("/usr/sbin/grubby", "/sbin/grubby")


@dataclass
class Outcome:
    """What was (or would be) done. ``boots``: the release that starts next by default, as read back."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    boots: str | None = None
    entry: str | None = None
    entries: dict[str, str | None] = field(default_factory=dict)
    menu: str | None = None                # grub_cfg, or bls (entries are files)
    once: str | None = None                # next_entry: what boots once before the default
    env_writable: bool | None = None       # whether GRUB itself can write its environment, as a trial boot needs
    env_reason: str | None = None
    skipped_reason: str | None = None


class BootDefault:
    """The default of GRUB in the tree ``root``."""

    def __init__(self, run: Runner, root: str = "/") -> None:
        self.loader = Loader(run, root)
        self.run = run

    def set(self, release: str, check: bool, entries: Iterable[str] = ()) -> Outcome:
        """Make ``release`` the default, with an entry for each of ``entries`` too. Raises HostError, OSError."""
        loader = self.loader
        reason = loader.absent()
        if reason:
            return Outcome(skipped_reason=reason)
        menu, env = loader.menu(), loader.environment()
        releases = list(dict.fromkeys([release, *entries]))
        for one in releases:
            loader.refuse(one, menu)
        loader.refuse_read_only()
        outcome = Outcome(once=env.get("next_entry") or None, menu="grub_cfg" if menu.bls_at is None else "bls")
        outcome.env_writable, outcome.env_reason = loader.env_writable()
        edits = self._edits(menu)
        for edit in edits:
            outcome.actions.append(f"write {edit.path}")
            outcome.diff.append(diff(edit.path, edit.before or "", edit.after))
        missing = [one for one in releases if entry_of(menu, one) is None]
        if missing and menu.bls_at is not None:
            raise BootError(f"/boot/loader/entries has no entry for kernel {missing[0]}: kernel-install add "
                            f"{missing[0]} /lib/modules/{missing[0]}/vmlinuz makes one")
        # where entries are files the menu is made once: one that follows the saved entry is right, whatever was set
        anew = menu.bls_at is None and any(_of_menu(edit) for edit in edits)
        generate = bool(missing) or not menu.follows_saved or anew
        if generate:
            outcome.actions.append("regenerate grub.cfg")
        entry = entry_of(menu, release)
        target = entry.path if entry else f"the entry of {release}"
        lost = self._lost(entry.path) if entry else None
        if self._keeps_lost(menu, generate) and (entry is None or menu.lost != entry.path or lost):
            outcome.actions.append(f"start {target} also where grubenv is lost")
            if lost:
                outcome.diff.append(diff(lost.path, lost.before or "", lost.after))
        saved = env.get("saved_entry") or ""
        if entry is None or saved != entry.path:
            outcome.actions.append(f"set saved_entry to {target}")
            outcome.diff.append(diff("grubenv", f"saved_entry={saved}\n", f"saved_entry={target}\n"))
        outcome.changed = bool(outcome.actions)
        outcome.boots, outcome.entry = release, entry.path if entry else None
        outcome.entries = {one: getattr(entry_of(menu, one), "path", None) for one in releases}
        if not check:
            if outcome.changed:
                self._apply(releases, edits, generate)
            self._read_back(releases, outcome)
        return outcome

    def _edits(self, menu: grub.Menu) -> list[settings.Edit]:
        tree, is_bls = self.loader.tree, menu.bls_at is not None
        # where entries are files, a menu that follows the saved one is the distribution's, and so are settings that
        # would make the same again
        needed = not (is_bls and menu.follows_saved) or settings.moves_default(tree)
        return (settings.menu_edits(tree) if needed else []) + settings.update_default_edits(tree, is_bls)

    def _keeps_lost(self, menu: grub.Menu, generated: bool) -> bool:
        """Whether the menu is one of grub-mkconfig, in which a file of /etc/grub.d has its place."""
        ours = generated or sections.has_place(self.loader.text())
        return menu.bls_at is None and ours and self.loader.tree.isdir("/etc/grub.d")

    def _lost(self, entry: str) -> settings.Edit | None:
        before = self.loader.tree.text_exact(sections.LOST_PATH)
        after = sections.script(sections.lost(entry))
        return None if before == after else settings.Edit(sections.LOST_PATH, before, after)

    def _apply(self, releases: list[str], edits: list[settings.Edit], generate: bool) -> None:
        loader = self.loader
        written: list[settings.Edit] = []
        try:
            for edit in edits:
                self._write(edit)
                written.append(edit)
            text = loader.generate() if generate else loader.text()
            menu = loader.menu_of(text)
            if generate:
                self._refuse_menu(releases, menu)
            self._refuse_settings()
            entry = entry_of(menu, releases[0])
            if entry is None:
                raise BootError(f"there is no entry of its own for kernel {releases[0]} in the menu")
            if self._keeps_lost(menu, generate):
                lost = self._lost(entry.path)
                if lost is not None:
                    self._write(lost, 0o755)
                    written.append(lost)
                text = sections.put(text, sections.LOST_PATH, sections.lost(entry.path))
            if text != loader.text():
                loader.publish(text)
        except (HostError, OSError):
            for edit in reversed(written):
                self._take_back(edit)
            raise
        if loader.environment().get("saved_entry") != entry.path:
            loader.save(saved_entry=entry.path, prev_saved_entry=None)
        os.sync()

    def _write(self, edit: settings.Edit, mode: int = 0o644) -> None:
        path = self.loader.tree.real(edit.path)
        atomic.write(path, edit.after, mode=atomic.mode_of(path) or mode)

    def _take_back(self, edit: settings.Edit) -> None:
        path = self.loader.tree.real(edit.path)
        if edit.before is None:
            atomic.remove(path)
        else:
            atomic.write(path, edit.before, mode=atomic.mode_of(path) or 0o644)

    def _refuse_settings(self) -> None:
        """Raise BootError where the next menu would follow something else, though this one follows the saved entry."""
        if settings.moves_default(self.loader.tree):
            raise BootError(f"GRUB_DEFAULT=saved has no effect: a file that is read after {settings.SNIPPET_PATH} sets "
                            "another, which the next menu would follow. Take that out")

    @staticmethod
    def _refuse_menu(releases: list[str], menu: grub.Menu) -> None:
        if not menu.follows_saved:
            raise BootError(f"GRUB_DEFAULT=saved has no effect (the menu says {menu.default!r}): a file that is read "
                            f"after {settings.SNIPPET_PATH}, or one in /etc/grub.d, sets another. Take that out")
        for release in releases:
            if entry_of(menu, release) is None and menu.bls_at is None:
                raise BootError(f"the new menu has no entry for kernel {release}: grub.cfg is left as it was")

    def _read_back(self, releases: list[str], outcome: Outcome) -> None:
        loader, release = self.loader, releases[0]
        menu, env = loader.menu(), loader.environment()
        saved, default = env.get("saved_entry"), grub.default_entry(menu, env)
        entry = entry_of(menu, release)
        outcome.boots, outcome.entry = default.release if default else None, entry.path if entry else None
        outcome.entries = {one: getattr(entry_of(menu, one), "path", None) for one in releases}
        if entry is None or not menu.follows_saved or saved != entry.path or outcome.boots != release:
            raise BootError(f"the boot default was set to kernel {release} and reads back as {outcome.boots} "
                            f"(saved_entry {saved!r}, menu default {menu.default!r}): do not reboot this host before "
                            "that is cleared up")
        self._refuse_settings()
        without = [one for one, path in outcome.entries.items() if path is None]
        if without:
            raise BootError(f"the menu has no entry for kernel {without[0]}")
        if menu.bls_at is not None and any(loader.tree.exists(path) for path in _GRUBBY):
            said = loader.call("grubby", "--default-kernel").strip()
            if grub.release_of(said) != release:
                raise BootError(f"the boot default was set to kernel {release}, and grubby --default-kernel says "
                                f"{said}: do not reboot this host before that is cleared up")


def _of_menu(edit: settings.Edit) -> bool:
    return edit.path != settings.SYSCONFIG_PATH


def diff(title: str, before: str, after: str) -> dict[str, Any]:
    """One file's part of what a module returns as ``diff``."""
    return {"before_header": title, "after_header": title, "before": before, "after": after}
