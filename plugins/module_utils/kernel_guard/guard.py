# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the guard stands on a host, and putting it there. Logic of module ``kernel_guard``."""
from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import atomic
from ..errors import HostError
from ..packages.base import Runner
from ..packages.dnf import Dnf
from . import dnf_plugin, script

RELEASE = re.compile(r"[0-9][A-Za-z0-9._+~-]*\Z")
_PLUGIN_DIRS = ("usr/lib/python3*/site-packages", "usr/lib/python3*/dist-packages")
_ACTIONS = ("usr/lib64/libdnf5/plugins/actions.so", "usr/lib/*/libdnf5/plugins/actions.so",
            "usr/lib/libdnf5/plugins/actions.so")
_LEAST_ACTIONS = (1, 4, 0)
NO_ZYPPER = "a zypper plugin cannot stop a transaction: with zypper the locks of kernel_pin are all there is"


class GuardError(HostError):
    """The guard was refused, or could not be put in place and was taken back."""


@dataclass(frozen=True)
class File:
    """A file of the guard; ``content`` None = not there."""

    path: str
    content: str | None
    mode: int = 0o644


@dataclass
class Outcome:
    """What was done (in check mode: would be), and by what the guard now looks at transactions."""

    changed: bool = False
    via: list[str] = field(default_factory=list)       # hook (apt), plugin (dnf 4), actions (dnf 5)
    skipped_reason: str | None = None
    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)


def plugin_path(root: str = "/") -> str | None:
    """Where dnf 4 looks for plugins: beside its own package. None without dnf 4."""
    for pattern in _PLUGIN_DIRS:
        for directory in sorted(glob.glob(os.path.join(root, pattern)), reverse=True):
            if os.path.isfile(os.path.join(directory, "dnf/plugin.py")):
                return "/" + os.path.relpath(os.path.join(directory, "dnf-plugins", dnf_plugin.NAME), root)
    return None


def actions_version(text: str) -> tuple[int, ...] | None:
    """The version of the actions plugin in what ``dnf5 --version`` prints, None without one."""
    match = re.search(r"name:\s*actions\s+version:\s*(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


def hooks(manager: str, run: Runner, root: str = "/") -> tuple[dict[str, File], str | None]:
    """What can call the guard here, by kind, and why nothing can, or why a part of it cannot."""
    if manager == "apt":
        return {"hook": File(script.APT_HOOK_PATH, script.APT_HOOK)}, None
    if manager == "zypper":
        return {}, NO_ZYPPER
    if manager != "dnf":
        return {}, f"there is no guard for {manager}"
    found: dict[str, File] = {}
    reason = None
    dnf = Dnf(run, root)
    path = plugin_path(root)
    if path is not None and dnf.has4():
        found["plugin"] = File(path, dnf_plugin.PLUGIN)
    if dnf.has5():
        reason = _no_actions(run, root)
        if reason is None:
            found["actions"] = File(script.ACTIONS_PATH, script.actions())
    if not found and reason is None:
        reason = "dnf's place for plugins was not found"
    return found, reason


def _no_actions(run: Runner, root: str) -> str | None:
    """Why dnf 5 cannot call the guard, None when it can."""
    if not any(glob.glob(os.path.join(root, pattern)) for pattern in _ACTIONS):
        return "dnf 5 has no actions plugin: install libdnf5-plugin-actions"
    result = run(["dnf5", "--version"], timeout=30.0)
    version = actions_version(result.out) if result.rc == 0 else None
    if version is None:
        return "dnf 5's actions plugin is not loaded: see /etc/dnf/libdnf5-plugins/actions.conf"
    if version < _LEAST_ACTIONS:
        text = ".".join(map(str, version))
        return f"dnf 5's actions plugin {text} cannot stop a transaction: that came with 1.4.0"
    return None


def all_files(present: dict[str, File], allowed: Sequence[str], proved: Sequence[str]) -> list[File]:
    """The guard's files in the order in which they are written; what calls the script comes last."""
    return [File(script.LIST, script.allowed_list(list(allowed), list(proved)), 0o600),
            File(script.PATH, script.SCRIPT, 0o755), *present.values()]


class Guard:
    """One run of the module."""

    def __init__(self, manager: str, run: Runner, root: str = "/") -> None:
        self.manager = manager
        self.root = root
        self.hooks, self.reason = hooks(manager, run, root)

    def _path(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def _wanted(self, present: bool, allowed: Sequence[str], proved: Sequence[str]) -> list[File]:
        if present and self.hooks:
            return all_files(self.hooks, allowed, proved)
        gone = [File(script.APT_HOOK_PATH, None), File(script.ACTIONS_PATH, None)]
        gone += [File("/" + os.path.relpath(path, self.root), None) for pattern in _PLUGIN_DIRS
                 for path in glob.glob(self._path(f"/{pattern}/dnf-plugins/{dnf_plugin.NAME}"))]
        return [*gone, File(script.PATH, None), File(script.LIST, None)]

    def run(self, present: bool, allowed: Sequence[str], proved: Sequence[str], check: bool) -> Outcome:
        """Put the guard in place, or take it away; with ``check`` only say what that would do.

        Raises GuardError for bad input, and after a failure, when all is as it was.
        """
        if present:
            self._refuse(allowed, proved)
        outcome = Outcome(via=sorted(self.hooks) if present else [], skipped_reason=self.reason if present else None)
        steps: list[tuple[File, str | None, int | None]] = []
        for file in self._wanted(present, allowed, proved):
            current, mode = atomic.read_text(self._path(file.path)), atomic.mode_of(self._path(file.path))
            if current != file.content or (file.content is not None and mode != file.mode):
                steps.append((file, current, mode))
        for file, current, _mode in steps:
            outcome.actions.append(f"{'remove' if file.content is None else 'write'} {file.path}")
            if current != file.content:
                outcome.diff.append({"before_header": file.path, "after_header": file.path, "before": current or "",
                                     "after": file.content or ""})
        outcome.changed = bool(steps)
        if not check:
            self._apply(steps)
        return outcome

    def _refuse(self, allowed: Sequence[str], proved: Sequence[str]) -> None:
        for option, releases in (("allowed", allowed), ("proved", proved)):
            for release in releases:
                if not RELEASE.match(release):
                    raise GuardError(f"{option} has {release!r}, which is no kernel release as uname -r prints it")
        if not allowed and not proved:
            raise GuardError("allowed and proved are both empty: a guard that allows no kernel at all would refuse the "
                             "one that runs. Name at least one release")

    def _apply(self, steps: list[tuple[File, str | None, int | None]]) -> None:
        done: list[tuple[File, str | None, int | None]] = []
        try:
            for step in steps:
                done.append(step)
                self._write(step[0].path, step[0].content, step[0].mode)
        except OSError as exc:
            for file, current, mode in reversed(done):
                self._write(file.path, current, mode or file.mode)
            raise GuardError(f"{exc}. The guard is as it was") from exc

    def _write(self, path: str, content: str | None, mode: int) -> None:
        if content is None:
            atomic.remove(self._path(path))
        else:
            private = path.startswith("/var/lib/baremetal-nvidia/")
            atomic.write(self._path(path), content, mode, dir_mode=0o700 if private else 0o755)
