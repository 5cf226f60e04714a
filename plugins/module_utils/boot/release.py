# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives the boot default back to the distribution. Logic of module ``boot_default`` with ``state: absent``.

It never moves the host to another kernel: where the distribution's own choice is another one, the default stays saved,
and that is said.
"""
from __future__ import annotations

import os
from dataclasses import replace

from .. import atomic
from ..errors import HostError
from ..facts import boot, grub
from ..packages.base import Runner
from . import sections, settings
from .default import Outcome, diff
from .loader import BootError, Loader

_FILES = (settings.SNIPPET_PATH, sections.LOST_PATH)


class BootRelease:
    """The default of GRUB in the tree ``root``, as it is to be without us."""

    def __init__(self, run: Runner, root: str = "/") -> None:
        self.loader = Loader(run, root)
        self.tree = self.loader.tree

    def release(self, check: bool) -> Outcome:
        """Take out what ``BootDefault`` put in. Raises HostError, OSError."""
        loader = self.loader
        reason = loader.absent()
        if reason:
            return Outcome(skipped_reason=reason)
        loader.refuse_read_only()
        menu, env = loader.menu(), loader.environment()
        now = grub.default_entry(menu, env)
        outcome = Outcome(menu="grub_cfg" if menu.bls_at is None else "bls", boots=now.release if now else None,
                          entry=now.path if now else None)
        edits = settings.own_edits(self.tree)
        files = {path: text for path in _FILES if (text := self.tree.text_exact(path)) is not None}
        of_menu = [edit for edit in edits if edit.path == settings.DEFAULTS_PATH]
        in_menu = sections.put(loader.text(), sections.LOST_PATH, None) != loader.text()
        if files or of_menu or in_menu:
            then = grub.default_entry(self._foreseen(menu, of_menu), env)
            if then is None or then.release != outcome.boots:
                outcome.skipped_reason = (
                    f"kernel {outcome.boots} starts by default, and without the saved default it would be "
                    f"{then.release if then else 'none'}: the default stays saved. Take that kernel out, or make it "
                    "the default first")
                files, of_menu, in_menu = {}, [], False
                edits = [edit for edit in edits if edit.path != settings.DEFAULTS_PATH]
        for path, text in files.items():
            outcome.actions.append(f"remove {path}")
            outcome.diff.append(diff(path, text, ""))
        for edit in edits:
            outcome.actions.append(f"restore {edit.path}")
            outcome.diff.append(diff(edit.path, edit.before or "", edit.after))
        if files or of_menu or in_menu:
            outcome.actions.append("regenerate grub.cfg")
        outcome.changed = bool(outcome.actions)
        if outcome.changed and not check:
            self._apply(files, edits, bool(files or of_menu or in_menu), outcome)
        return outcome

    def _foreseen(self, menu: grub.Menu, edits: list[settings.Edit]) -> grub.Menu:
        """The present menu with the default that it will have without our settings. Raises OSError."""
        texts = [edits[0].after if edits else self.tree.text(settings.DEFAULTS_PATH) or ""]
        if boot.snippets_count(self.tree):
            paths = self.tree.glob("/etc/default/grub.d", "*.cfg")
            texts += [self.tree.text(path) or "" for path in paths if path != settings.SNIPPET_PATH]
        wanted = grub.settings(texts).get("GRUB_DEFAULT") or "0"
        saved = wanted == "saved"
        return replace(menu, default=None if saved else wanted, follows_saved=saved, lost=None)

    def _apply(self, files: dict[str, str], edits: list[settings.Edit], generate: bool, outcome: Outcome) -> None:
        loader = self.loader
        modes = {path: atomic.mode_of(self.tree.real(path)) for path in files}
        try:
            for edit in edits:
                self._write(edit.path, edit.after)
            for path in files:
                atomic.remove(self.tree.real(path))
            if generate:
                text = loader.generate()
                menu = loader.menu_of(text)
                then = grub.default_entry(menu, loader.environment())
                if then is None or then.release != outcome.boots:
                    raise BootError(f"the new menu would start {then.release if then else 'nothing'} by default and "
                                    f"not {outcome.boots}: all was left as it was")
                loader.publish(text)
                outcome.entry = then.path
        except (HostError, OSError):
            for path, text in files.items():
                atomic.write(self.tree.real(path), text, mode=modes[path] or 0o644)
            for edit in edits:
                self._write(edit.path, edit.before or "")
            raise
        if generate and not loader.menu().follows_saved and loader.environment().get("saved_entry"):
            loader.save(saved_entry=None)
        os.sync()

    def _write(self, path: str, text: str) -> None:
        where = self.tree.real(path)
        if text:
            atomic.write(where, text, mode=atomic.mode_of(where) or 0o644)
        else:
            atomic.remove(where)
