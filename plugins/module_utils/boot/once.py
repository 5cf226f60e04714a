# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a kernel once, for trial: the default stays where it is. Logic of module ``boot_once``.

Arming ends with next_entry and disarming begins with it, so that wherever either is cut off, no trial boots that is
not watched.
The state file knows about a trial before anything of it is on the host, and until everything of it is gone.
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import atomic
from ..errors import HostError
from ..facts import boot, grub, kexec, trial
from ..managed_files import TRIAL_CONF, TRIAL_RESULT
from ..packages.base import Runner
from ..state import Store, stamp
from . import bls_entry, host, sections, trial_files
from .default import diff
from .loader import TRIAL_ID, BootError, Loader, entry_of, is_trial


@dataclass
class Request:
    """What is to be tried, and how."""

    release: str
    panic: int = 30
    timeout: int = 600
    fallback_reboot: bool = False
    watchdog: str = "auto"
    module: str = "nvidia"
    version: str | None = None


@dataclass
class Outcome:
    """What was (or would be) done, and what the trial does not cover."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, Any]] = field(default_factory=list)
    entry: str | None = None               # the trial's own menu entry
    boots: str | None = None               # what starts by default: after the trial, or instead of it
    arguments: str | None = None
    watchdog: dict[str, str] | None = None
    not_covered: list[str] = field(default_factory=list)
    trial: dict[str, Any] | None = None


class BootOnce:
    """Trial boots on the host in the tree ``root``."""

    def __init__(self, run: Runner, root: str = "/", store: Store | None = None) -> None:
        self.loader = Loader(run, root)
        self.tree = self.loader.tree
        self.store = store or Store(root)

    # arming

    def arm(self, request: Request, check: bool) -> Outcome:
        """Let ``request.release`` start once at the next boot. Raises BootError (HostError), OSError."""
        loader = self.loader
        menu, env, entry, default = self._fit(request)
        state = self.store.read()["trial"]
        self._refuse_running(request.release, state)
        dog = boot.watchdog(self.tree) if request.watchdog == "auto" else None
        wanted = {"release": request.release, "former": default.release, "panic": request.panic,
                  "timeout": request.timeout, "fallback_reboot": request.fallback_reboot, "module": request.module,
                  "version": request.version, "watchdog": bool(dog) and not host.feeds_watchdog(self.tree),
                  "arguments": host.arguments(request.panic, host.has_dracut(self.tree)),
                  "boot_id": host.boot_id(self.tree), "route": host.has_route(self.tree)}
        same = state is not None and all(state.get(key) == value for key, value in wanted.items())
        arming: dict[str, Any] = dict(state) if same and state else {**wanted, "at": stamp(self.store.clock())}
        parts = self._entry_parts(menu, entry, request.release, str(arming["arguments"]))
        arming["entry"] = parts.entry_id
        outcome = Outcome(entry=parts.entry_id, boots=default.release, arguments=str(arming["arguments"]), watchdog=dog)
        outcome.not_covered = host.not_covered(dog, request.fallback_reboot)
        # the file itself: the program replaces it, and a link to the EFI partition has to stay one
        block = self.tree.resolve(loader.env_path)
        files = trial_files.wanted(arming, block, loader.tool("editenv")) + parts.files
        todo = [one for one in files if not self._is_there(one)]
        for one in todo:
            outcome.actions.append(f"write {one.path}")
            if one.link is None:
                former = "" if one.path == trial_files.PROGRAM_PATH else self._read(one.path)
                shown = one.content if one.path != trial_files.PROGRAM_PATH else ""
                outcome.diff.append(diff(one.path, former, shown))
        if parts.text is not None and parts.text != loader.text():
            outcome.actions.append("add the trial's entry to grub.cfg")
        if env.get("next_entry") != parts.entry_id:
            outcome.actions.append(f"set next_entry to {parts.entry_id}")
            former_next = env.get("next_entry", "")
            outcome.diff.append(diff("grubenv", f"next_entry={former_next}\n", f"next_entry={parts.entry_id}\n"))
        outcome.changed = bool(outcome.actions) or state != arming
        outcome.trial = {"release": request.release, "phase": "armed", "since": arming["at"], "reason": None}
        if not check and outcome.changed:
            try:
                self._write(arming, todo, parts)
                self._read_back(request.release, str(default.release), parts.entry_id)
            except (HostError, OSError) as exc:
                self._take_back(exc)
                raise
        return outcome

    def _take_back(self, why: Exception) -> None:
        """After a failure: half a trial is none. Raises BootError when that fails as well."""
        try:
            self.end(False)
        except (HostError, OSError) as again:
            raise BootError(f"{why}. What was written of the trial could not be taken back ({again}): end it (state: "
                            "absent) before this host is rebooted") from why

    def _fit(self, request: Request) -> tuple[grub.Menu, dict[str, str], grub.Entry, grub.Entry]:
        """Menu, environment, the kernel's own entry and the default one, if a trial is possible. Raises BootError."""
        loader, release = self.loader, request.release
        reason = loader.absent()
        if reason:
            raise BootError(f"kernel {release} cannot be started once: {reason}")
        loader.refuse_read_only()
        menu, env = loader.menu(), loader.environment()
        loader.refuse(release, menu)
        self._refuse_environment()
        detour = kexec.detour(kexec.read(self.tree))
        if detour is not None:
            raise BootError(f"no trial boot: {detour.why}. To end that, {detour.way_out}")
        entry, default = entry_of(menu, release), grub.default_entry(menu, env)
        if entry is None:
            raise BootError(f"the menu has no entry of its own for kernel {release}: set the boot default (module "
                            "boot_default) with it among its entries first")
        if default is None or default.release is None or not menu.follows_saved or not env.get("saved_entry"):
            raise BootError("the host has no saved boot default to come back to: set it with module boot_default first")
        if default.release == release:
            raise BootError(f"kernel {release} is the boot default already: there is nothing to come back to")
        if default.path != env["saved_entry"]:
            raise BootError(f"saved_entry {env['saved_entry']!r} is not the default's own id ({default.path!r}): set "
                            "it with module boot_default first")
        loader.refuse(default.release, menu)
        return menu, env, entry, default

    def _refuse_environment(self) -> None:
        """Raise BootError where GRUB could not clear next_entry: it would start the trial again and again."""
        loader = self.loader
        able, why = loader.env_writable()
        seen = boot.why_not_writable(self.tree, loader.directory, os.path.exists(loader.env))
        reason = why if not able else seen
        if able and reason is None and not loader.in_one_sector():
            reason = f"{loader.env} has variables beyond its first 512 bytes, and a power cut could tear them apart"
        if reason or not able:
            raise BootError(f"no trial boot: GRUB cannot write its environment here ({reason or 'unknown'}), so it "
                            "would start the kernel on trial again and again")

    def _refuse_running(self, release: str, state: Mapping[str, Any] | None) -> None:
        if state is None:
            return
        if state["release"] != release:
            raise BootError(f"a trial of kernel {state['release']} is open since {state['at']}: end it first (state: "
                            "absent)")
        now = trial.read(self.tree)
        if now is not None and now["phase"] in ("booted", "healthy"):
            raise BootError(f"the trial of kernel {release} is running ({now['phase']}): make it the boot default and "
                            "end the trial, or only end it (state: absent)")

    def _entry_parts(self, menu: grub.Menu, entry: grub.Entry, release: str, arguments: str) -> Parts:
        if menu.bls_at is not None:
            name, text = bls_entry.trial(self.tree, entry, arguments)
            return Parts(name, None, [trial_files.TrialFile(bls_entry.path(name), text)])
        text, name = self.loader.text(), f"{TRIAL_ID}-{release}"
        body = sections.trial(text, entry, name, arguments)
        return Parts(name, sections.put(text, sections.TRIAL_PATH, body),
                     [trial_files.TrialFile(sections.TRIAL_PATH, sections.script(body), 0o755)])

    def _write(self, arming: dict[str, Any], todo: list[trial_files.TrialFile], parts: Parts) -> None:
        loader = self.loader
        if loader.environment().get("next_entry"):
            loader.save(next_entry=None)
        self.store.arm_trial(arming)
        atomic.remove(self._path(TRIAL_RESULT))
        for one in todo:
            self._put(one)
        if parts.text is not None and parts.text != loader.text():
            loader.publish(parts.text)
        menu = loader.menu()
        default = grub.default_entry(menu, loader.environment())
        if default is None or is_trial(default) or default.release != arming["former"]:
            raise BootError(f"with the trial's entry in the menu, {default.path if default else 'nothing'} would be "
                            "the default: next_entry is not set")
        loader.save(next_entry=parts.entry_id)
        os.sync()

    def _read_back(self, release: str, former: str, entry_id: str) -> None:
        menu, env = self.loader.menu(), self.loader.environment()
        default, once = grub.default_entry(menu, env), grub.find(menu.entries, env.get("next_entry", ""))
        starts = (once.path, once.release) if once else (None, None)
        falls_back = default.release if default else None
        if starts != (entry_id, release) or falls_back != former:
            raise BootError(f"the trial of kernel {release} was armed and reads back as next_entry "
                            f"{env.get('next_entry')!r} ({starts[1]}), default {falls_back}")

    # ending

    def end(self, check: bool, release: str | None = None) -> Outcome:
        """Take everything of a trial out, whether it is over or was never started. Raises HostError, OSError.

        With ``release`` only a trial of that kernel.
        """
        state = self.store.read()["trial"]
        if state is not None and release is not None and state["release"] != release:
            raise BootError(f"the open trial is that of kernel {state['release']}, not of {release}")
        outcome = Outcome()
        grub_is_there = self.loader.absent() is None
        menu = self.loader.menu() if grub_is_there else None
        if menu is not None:
            env = self.loader.environment()
            default = grub.default_entry(menu, env)
            outcome.boots = default.release if default else None
            if default is not None and is_trial(default):
                raise BootError(f"the trial's entry {default.path} is the boot default: set the default with module "
                                "boot_default first")
            if _is_trial_name(env.get("next_entry", "")):
                outcome.actions.append("clear next_entry")
                outcome.diff.append(diff("grubenv", f"next_entry={env['next_entry']}\n", ""))
            if any(is_trial(one) for one in menu.all()) and menu.bls_at is None:
                outcome.actions.append("take the trial's entry out of grub.cfg")
        paths = [*bls_entry.left(self.tree), sections.TRIAL_PATH, *trial_files.all_paths()]
        there = [path for path in paths if os.path.lexists(self._path(path))]
        outcome.actions += [f"remove {path}" for path in there]
        if state is not None:
            outcome.actions.append(f"forget the trial of {state['release']}")
        outcome.changed = bool(outcome.actions)
        if not check and outcome.changed:
            self._take_out(there, outcome.actions)
        return outcome

    def _take_out(self, there: list[str], actions: list[str]) -> None:
        loader = self.loader
        if "clear next_entry" in actions:
            loader.save(next_entry=None)
            if loader.environment().get("next_entry"):
                raise BootError("next_entry was cleared and is still there: do not reboot this host before that is "
                                "cleared up")
        for path in there:    # the file of /etc/grub.d before the menu: a menu made meanwhile has no trial either
            if path == sections.TRIAL_PATH or bls_entry.is_one(path):
                atomic.remove(self._path(path))
        if "take the trial's entry out of grub.cfg" in actions:
            loader.publish(sections.put(loader.text(), sections.TRIAL_PATH, None))
            if any(is_trial(one) for one in loader.menu().all()):
                raise BootError("the trial's entry is still in grub.cfg: run grub-mkconfig, or take it out by hand")
        for path in there:
            atomic.remove(self._path(path))
        self.store.end_trial()
        os.sync()

    # files

    def _path(self, path: str) -> str:
        """Where a file of ours lies on this machine; its own name is not followed if it is a link."""
        head, tail = os.path.split(path)
        return os.path.join(self.loader.real(head), tail)

    def _is_there(self, one: trial_files.TrialFile) -> bool:
        path = self._path(one.path)
        if one.link is not None:
            return os.path.islink(path) and os.readlink(path) == one.link
        return atomic.read_text(path) == one.content and atomic.mode_of(path) == one.mode

    def _read(self, path: str) -> str:
        return "" if path == TRIAL_CONF else atomic.read_text(self._path(path)) or ""

    def _put(self, one: trial_files.TrialFile) -> None:
        path = self._path(one.path)
        if one.link is None:
            atomic.write(path, one.content, mode=one.mode)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        atomic.remove(path)
        os.symlink(one.link, path)
        atomic.sync_dir(os.path.dirname(path))


@dataclass(frozen=True)
class Parts:
    """The trial's menu entry: its id, the grub.cfg that has it (None with BLS), and the files it comes from."""

    entry_id: str
    text: str | None
    files: list[trial_files.TrialFile]


def _is_trial_name(name: str) -> bool:
    return is_trial(grub.Entry(title="", id=name))
