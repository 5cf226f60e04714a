# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pin: a set of packages that does not move. Logic of module ``kernel_pin``, for any package manager.

What is installed is held, what is not installed is blocked; both or neither. Holds that people made stay theirs.
"""
from __future__ import annotations

import dataclasses
import fnmatch
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from . import atomic
from .errors import HostError
from .packages import families
from .packages.base import BlockFile, PackageManager, Wanted
from .pin_model import Outcome, Request, Steps, actions, diff
from .state import State, Store, stamp

BACKUPS = "/var/lib/baremetal-nvidia/backups"
_MARK = "Managed by baremetal.nvidia"
_NOTHING = "Nothing is half pinned: holds and files are as they were"


class PinError(HostError):
    """The pin was refused, or could not be made and was undone."""


def _is_glob(name: str) -> bool:
    return "*" in name or "?" in name


def _expand(names: Iterable[str], installed: Mapping[str, Any]) -> set[str]:
    """The installed names that ``names`` and its globs name."""
    found: set[str] = set()
    for name in names:
        if _is_glob(name):
            found.update(fnmatch.filter(installed, name))
        elif name in installed:
            found.add(name)
    return found


class Pin:
    """One run of the module: reads the host once, then plans, applies, checks."""

    def __init__(self, manager: PackageManager, store: Store, root: str = "/") -> None:
        self.manager = manager
        self.store = store
        self.root = root
        self.data: State = store.read()
        self.installed = manager.installed()
        self._change: tuple[list[str], list[str]] = ([], [])     # full names that were held and released

    def _path(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    @property
    def held_now(self) -> set[str]:
        """Names of which at least one architecture is held."""
        return {name for name, packages in self.installed.items() if any(p.held for p in packages)}

    def _ours(self, pin_set: str) -> dict[str, Any]:
        return dict(self.data["holds"].get(pin_set, {}))

    def _other_sets(self, pin_set: str) -> set[str]:
        return {name for other, names in self.data["holds"].items() if other != pin_set for name in names}

    def _recorded(self, *sets: str) -> dict[str, list[str]]:
        """The entries of these sets in files that people write too, by path."""
        found: dict[str, list[str]] = {}
        for name in sets:
            for path, entries in self.data["locks"].get(name, {}).items():
                found.setdefault(path, []).extend(entries)
        return found

    # what is asked for

    def _matching(self, patterns: Iterable[str]) -> set[str]:
        """Installed names that a pattern matches as a whole. Raises PinError for one that is no regular expression."""
        found: set[str] = set()
        for pattern in patterns:
            try:
                found.update(filter(re.compile(pattern).fullmatch, self.installed))
            except re.error as exc:
                raise PinError(f"patterns has {pattern!r}, which is no regular expression: {exc}") from exc
        return found

    def _scope(self, request: Request) -> tuple[set[str], set[str], set[str]]:
        """(names to hold if installed, names to block if not, the same without taking out what is lifted)."""
        if request.present:
            return set(request.packages), set(request.deny), set(request.packages) | set(request.deny)
        if not request.packages and not request.deny:
            return set(), set(), set()
        gone = set(request.packages) | set(request.deny)
        packages = {n for n in self._ours(request.pin_set) if not any(fnmatch.fnmatchcase(n, g) for g in gone)}
        deny = set(self.data["denied"].get(request.pin_set, [])) - gone
        return packages, deny, packages | deny

    def _refuse_half(self, request: Request, wanted: set[str], deny: set[str], names: set[str]) -> None:
        """Raise PinError where the request would pin a part of what has to stay together."""
        stray = sorted(n for n in request.lifted if n not in names and n not in wanted)
        if stray:
            raise PinError(f"lifted names {', '.join(stray)}, which the set {request.pin_set!r} does not have: "
                           "lift only names of packages or deny")
        stays = (self.held_now - set(self._ours(request.pin_set))) | self._other_sets(request.pin_set)
        covered = wanted | stays | set(request.lifted)
        pinned = wanted | {n for n in deny if not _is_glob(n)}
        missing = [n for n in families.missing_from_pin(pinned, self.installed) if n not in covered]
        if missing:
            raise PinError("half a pin: installed and of the same kernel family, but free to move: "
                           f"{', '.join(missing)}. Add to packages, or pin none of the family")
        globs = [name for name in deny if _is_glob(name)]
        free = sorted(_expand(globs, self.installed) - covered)
        if free:
            raise PinError(f"half a pin: deny ({', '.join(globs)}) matches {', '.join(free)}, installed and not in "
                           "packages: neither held nor upgradable. Add to packages")

    def _steps(self, request: Request) -> Steps:
        packages, deny, names = self._scope(request)
        wanted = _expand(packages, self.installed) | {n for n in deny if n in self.installed}
        wanted |= self._matching(request.patterns) if request.present else set()
        self._refuse_half(request, wanted, deny, names)
        lifted = set(request.lifted)
        blocked = {n for n in packages if not _is_glob(n) and n not in self.installed}
        blocked |= {n for n in deny if _is_glob(n) or n not in self.installed}
        wanted, blocked = wanted - lifted, blocked - lifted
        ours, others = set(self._ours(request.pin_set)), self._other_sets(request.pin_set)
        held = self.held_now
        hold = {n for n in wanted if not all(p.held for p in self.installed[n])}
        release = (held & ours) - wanted - others
        foreign = held - ours - others
        manual = _expand(request.manual, self.installed) if request.present else set()
        marked_by_us = set(self.data["manual"].get(request.pin_set, []))
        mark = manual - self.manager.manual(manual) if manual else set()
        wish = Wanted(request.pin_set, frozenset(wanted), frozenset(blocked), frozenset([*packages, *deny]),
                      request.patterns if request.present else (), self._recorded(request.pin_set),
                      self._recorded(*(set(self.data["locks"]) - {request.pin_set})))
        plan = self.manager.files(wish)
        files = []
        for file in plan.files:
            current = atomic.read_text(self._path(file.path))
            file = self._person_file(file, current)
            if current != file.content or (_ours(file) and atomic.mode_of(self._path(file.path)) != file.mode):
                files.append((file, current))
        unmark = (marked_by_us - manual) & set(self.installed)
        return Steps(wanted, blocked, hold, release, foreign, mark, unmark, files, plan.entries)

    def _person_file(self, file: BlockFile, current: str | None) -> BlockFile:
        """Where ours goes: the file that stood there before comes back, and one that is not ours stays."""
        if file.content is not None or file.shared:
            return file
        if current is not None and _MARK not in current:
            return dataclasses.replace(file, content=current)
        kept = [entry["backup"] for entry in self.data["backups"] if entry["path"] == file.path]
        return dataclasses.replace(file, content=atomic.read_text(self._path(kept[-1]))) if kept else file

    # what is done

    def run(self, request: Request, check: bool) -> Outcome:
        """Make the host as asked, or with ``check`` only say what that would do.

        Raises PinError (refused, or undone after a failure), PackageError, StateError, OSError.
        """
        steps = self._steps(request)
        outcome = Outcome(actions=actions(steps), diff=diff(self.held_now, steps))
        outcome.changed = bool(outcome.actions)
        if not check:
            before = self.store.read()
            if outcome.changed:
                outcome.waited = self._apply(request, steps, before)
            else:
                self.store.update(lambda data: self._record(data, request, steps))
            self._verify(request, steps, before)
        outcome.held = self._report(request, steps)
        return outcome

    def _full(self, names: Iterable[str], held: bool) -> list[str]:
        """The manager's own names of those architectures whose hold is not already as it shall be."""
        return [p.full for name in names for p in self.installed[name] if p.held != held]

    def _apply(self, request: Request, steps: Steps, before: State) -> float:
        """Files, holds, marks. What we intend is recorded first: a hold without a record would look like a person's."""
        waited = self.manager.wait_for_lock(request.lock_timeout)
        self.store.update(lambda data: self._intend(data, request, steps))
        self._change = (self._full(steps.hold, True), self._full(steps.release, False))
        done: list[Any] = []
        try:
            for file, current in steps.files:
                self._backup(file, current)
                done.append((file, current))
                self._write(file.path, file.content, file.mode)
            waited += self.manager.set_holds(*self._change, max(request.lock_timeout - waited, 0.0))
            done.append("holds")
            self.manager.mark(steps.mark, steps.unmark)
        except (HostError, OSError) as exc:
            self._undo(request, steps, before, done)
            raise PinError(f"{exc}. {_NOTHING}") from exc
        self.store.update(lambda data: self._record(data, request, steps))
        return waited

    def _undo(self, request: Request, steps: Steps, before: State, done: Iterable[Any]) -> None:
        """Take back what of the steps was done: files as (file, text before), "holds", "marks"."""
        done = list(done)
        for file, current in reversed([step for step in done if isinstance(step, tuple)]):
            self._write(file.path, current, file.mode)
        if "holds" in done:
            hold, release = self._change
            self.manager.set_holds(release, hold, request.lock_timeout)
        if "marks" in done:
            self.manager.mark(steps.unmark, steps.mark)
        self.store.update(lambda data: _restore(data, before))

    def _write(self, path: str, content: str | None, mode: int) -> None:
        if content is None:
            atomic.remove(self._path(path))
        else:
            atomic.write(self._path(path), content, mode)

    def _backup(self, file: BlockFile, current: str | None) -> None:
        """Keep a file that stands in the place of ours and is not ours."""
        if current is None or file.shared or _MARK in current:
            return
        name = f"{BACKUPS}/{os.path.basename(file.path)}.{stamp(self.store.clock()).replace(':', '')}"
        atomic.write(self._path(name), current, 0o600, dir_mode=0o700)
        entry = {"path": file.path, "backup": name, "at": stamp(self.store.clock())}
        self.store.update(lambda data: data["backups"].append(entry))

    def _intend(self, data: State, request: Request, steps: Steps) -> None:
        """Record what will be ours beside what is: a cut in between must not make ours a person's."""
        ours = data["holds"].setdefault(request.pin_set, {})
        for name in steps.wanted - steps.foreign:
            ours.setdefault(name, {"why": request.why, "at": stamp(self.store.clock())})["why"] = request.why
        marks = set(data["manual"].get(request.pin_set, [])) | steps.mark
        data["manual"][request.pin_set] = sorted(marks)
        locks = data["locks"].setdefault(request.pin_set, {})
        for path, entries in steps.entries.items():
            locks[path] = sorted({*locks.get(path, []), *entries})

    def _record(self, data: State, request: Request, steps: Steps) -> None:
        self._intend(data, request, steps)
        ours = {name: entry for name, entry in data["holds"][request.pin_set].items() if name in steps.wanted}
        marks = set(data["manual"][request.pin_set]) - steps.unmark
        for section, value in (("holds", ours), ("denied", sorted(steps.blocked)), ("manual", sorted(marks)),
                               ("locks", steps.entries)):
            if value:
                data[section][request.pin_set] = value
            else:
                data[section].pop(request.pin_set, None)
        gone = {file.path for file, _current in steps.files if not _ours(file)}
        data["backups"] = [entry for entry in data["backups"] if entry["path"] not in gone]

    def _verify(self, request: Request, steps: Steps, before: State) -> None:
        """Read back what the host now does, as other files may outweigh ours.

        A set that is new is taken back whole then. One that was there stays as far as it goes: to open all of it for
        one leak would be worse.
        """
        self.installed = self.manager.installed()
        self.data = self.store.read()
        leaks = self.manager.leaks(sorted(steps.wanted), sorted(steps.blocked))
        if not leaks:
            return
        said = "; ".join(leaks)
        if any(request.pin_set in before[section] for section in ("holds", "denied", "locks")):
            raise PinError(f"{said}. The rest of the set is pinned")
        self._undo(request, steps, before, [*steps.files, "holds", "marks"])
        raise PinError(f"{said}. {_NOTHING}")

    # what is reported

    def _report(self, request: Request, steps: Steps) -> list[dict[str, Any]]:
        """Each held or blocked name, how, by whom, and why; other sets and people's holds included."""
        why = {name: entry["why"] for names in self.data["holds"].values() for name, entry in names.items()}
        why.update(dict.fromkeys(steps.wanted - steps.foreign, request.why))
        rows = []
        for name in sorted((self.held_now | steps.wanted) - steps.release):
            person = name in steps.foreign
            rows.append({"package": name, "how": self.manager.hold_word, "owner": "person" if person else "ours",
                         "why": "held before this collection came, and left alone" if person else why.get(name, "")})
        for name in sorted(steps.blocked):
            rows.append({"package": name, "how": self.manager.block_word, "owner": "ours", "why": request.why})
        return rows


def _ours(file: BlockFile) -> bool:
    return file.content is not None and _MARK in file.content


def _restore(data: State, before: State) -> None:
    for section in ("holds", "denied", "manual", "locks"):
        data[section] = before[section]
