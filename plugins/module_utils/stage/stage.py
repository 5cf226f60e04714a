# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing in a kernel, in order: look whether it can be undone, open, (the package transaction), check, close.

Everything that undoing needs is on disk before the first package moves. A transaction that was cut off is finished
where the kernel is whole, and taken back where it is not.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from .. import atomic
from ..managed_files import STAGE_PACKAGES, STAGE_SHIMS
from ..packages import detect, transaction
from ..state import DIRECTORY, Store
from . import complete, snapshot
from .debs import Debs
from .errors import StageError
from .rpms import Rpms

Runner = Callable[..., Any]
ROLE = "gpu_kernel"
SHIMS = STAGE_SHIMS    # not in /run: Debian's and Ubuntu's ramdisks mount it noexec
_SHIM = """#!/bin/sh
# baremetal.nvidia: while packages move, the boot menu stays; it is made anew afterwards and put in place whole.
exit 0
"""
_SHIM_NAMES = ("update-grub", "update-grub2", "grub-mkconfig", "grub2-mkconfig")
_MB = 1024 * 1024
#: What kernel_pin remembers in the state file.
_RECORDS = ("holds", "denied", "locks", "manual")


@dataclass(frozen=True)
class Wish:
    """The kernel that comes in: packages with versions, the kernel that stays the default, and what it must have."""

    release: str
    beside: str
    packages: Mapping[str, str | None] = field(default_factory=dict)
    driver: str = ""
    flavour: str | None = None
    signed: bool = False
    others: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What was done, or would be. ``how``: opened, whole, closed, finished, taken back, or nothing."""

    how: str = "nothing"
    changed: bool = False
    moves: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Stage:
    """One host. ``run`` starts programs; ``root`` is the tree worked on."""

    def __init__(self, run: Runner, store: Store, root: str = "/", run_id: str = "", lock_timeout: float = 300.0,
                 manager: Debs | Rpms | None = None) -> None:
        self.run, self.store, self.root, self.run_id, self.lock_timeout = run, store, root, run_id, lock_timeout
        self.backend = detect.backend(run, root)
        name = self.backend.name
        self.manager: Debs | Rpms = manager or (
            Debs(run, root, SHIMS) if name == "apt" else Rpms(run, "zypper" if name == "zypper" else "dnf", SHIMS))

    # before

    def open(self, wish: Wish, check: bool) -> Outcome:
        """See that the kernel can come in and be taken back, and write down how. Raises StageError."""
        if snapshot.load(self.root) is not None:
            raise StageError(f"a kernel was being brought in when a run was cut off ({snapshot.PATH}): that is "
                             "finished or taken back first (kernel_stage state=recovered)")
        self._room(wish)
        self.backend.wait_for_lock(self.lock_timeout)
        wrong = self.manager.wrong()
        if wrong:
            raise StageError(f"packages are not whole: {', '.join(wrong)}. They are repaired before a kernel comes in "
                             "(dpkg --configure -a)")
        moved = self.manager.moves(wish.packages)
        outcome = Outcome("opened", bool(moved), {name: f"{old or 'absent'} -> {new}" for name, (old, new)
                                                  in sorted(moved.items())})
        if check or not moved:
            return outcome
        data = self._look(list(moved))
        data.update(release=wish.release, beside=wish.beside, wanted=dict(wish.packages), moved=sorted(moved),
                    driver=wish.driver, flavour=wish.flavour, signed=wish.signed, others=list(wish.others))
        self._begin(data)    # first of all: what a cut leaves here is seen by the next run
        try:
            outcome.notes = self._write_down(data, moved)
        except (StageError, OSError):
            self._end()    # nothing has moved
            raise
        self.store.step("packages")
        return outcome

    def _begin(self, data: Mapping[str, Any]) -> None:
        self.store.begin(self.run_id, ROLE, f"bring in kernel {data['release']}")

    def _write_down(self, data: snapshot.Snapshot, moved: Mapping[str, tuple[str | None, str]]) -> list[str]:
        """Put on disk what undoing needs; the journal last, since it says that all the rest is there."""
        place = snapshot.at(self.root, STAGE_PACKAGES)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place, mode=0o700)
        state = self.store.read()
        data["records"] = {name: state[name] for name in _RECORDS if name in state}
        data["former"] = self.manager.keep(moved, place)
        notes = [f"{path} has no second name (this file system has none): it is only watched"
                 for path in snapshot.keep(self.root, data["boot"])]
        self._shims()
        os.sync()
        snapshot.save(self.root, data)
        return notes

    def _room(self, wish: Wish) -> None:
        """Raise StageError unless /boot is writable and has room for one more kernel of the present one's size."""
        boot = snapshot.at(self.root, "/boot")
        info = os.statvfs(boot)
        if info.f_flag & os.ST_RDONLY or not os.access(boot, os.W_OK):
            raise StageError("/boot is read-only: no kernel can come in. Mount it writable")
        names = [name for name in os.listdir(boot) if wish.beside in name and "baremetal-nvidia" not in name]
        need = sum(os.path.getsize(os.path.join(boot, name)) for name in names) * 6 // 5 or 128 * _MB
        initrds = [os.path.getsize(os.path.join(boot, name)) for name in names if name.startswith("init")]
        need += max(initrds, default=64 * _MB)  # it is written beside before it takes its place
        free = info.f_bavail * info.f_frsize
        if free < need:
            raise StageError(f"/boot has {free // _MB} MiB free, one more kernel needs {need // _MB} MiB: remove an "
                             "old kernel (gpu_kernel_keep) or give it room")

    def _look(self, moved: list[str]) -> snapshot.Snapshot:
        packages = self.manager.packages()
        held = sorted(name for name, rows in self.backend.installed().items() if any(row.held for row in rows))
        manual = self.manager.manual([name for name in moved if name in packages])
        return {**snapshot.files(self.root), "packages": packages, "held": held, "manual": manual}

    def _shims(self) -> None:
        """Programs that stand in for those that write the boot menu in place. Raises StageError where none can run."""
        for name in _SHIM_NAMES:
            path = snapshot.at(self.root, f"{SHIMS}/{name}")
            atomic.write(path, _SHIM, mode=0o755)
            if not os.access(path, os.X_OK):
                raise StageError(f"{path} cannot be executed: its file system is mounted noexec. Package scripts would "
                                 f"write the boot menu while packages move: mount {DIRECTORY} without noexec")

    def menu(self, kept: bool) -> Outcome:
        """Keep package scripts from writing the boot menu, or let them again."""
        if kept:
            self._shims()
        else:
            self._unshim()
        return Outcome()

    # after

    def check(self) -> Outcome:
        """Whether what came in is whole; the outcome has the problems, and all stays open. Raises StageError."""
        data = self._open_one()
        self.store.step("check")
        os.sync()
        return Outcome("whole", problems=self._problems(data))

    def _problems(self, data: Mapping[str, Any]) -> list[str]:
        missing = self.manager.installed(data["wanted"])
        found = [f"{', '.join(missing)} did not come in"] if missing else []
        found += [f"{name} is not whole" for name in self.manager.wrong()]
        found += [f"{name} was taken out" for name in self.manager.lost(data["packages"], self.manager.packages())]
        found += complete.problems(self.root, data["release"], data["beside"], driver=data["driver"],
                                   flavour=data["flavour"], signed=data["signed"], others=data["others"])
        return found

    def close(self) -> Outcome:
        """Forget how to undo it: the kernel stays."""
        if snapshot.load(self.root) is None:
            return Outcome("closed")
        self._end()
        return Outcome("closed", True)

    def _end(self) -> None:
        os.sync()
        snapshot.discard(self.root)
        self._unshim()
        opened = self.store.read()["open"]
        if opened is not None and opened["role"] == ROLE:
            self.store.finish()

    def _unshim(self) -> None:
        shutil.rmtree(snapshot.at(self.root, SHIMS), ignore_errors=True)

    def undo(self) -> Outcome:
        """Take back what came in. Raises StageError, naming what is not as it was."""
        data = self._open_one()
        if platform.release() == data["release"]:    # somebody chose it in the boot menu
            raise StageError(f"the host runs kernel {data['release']}, which is to be taken back: restart it into "
                             f"{data['beside']}, which is the default, and run this again")
        self._shims()
        self.store.step("undo")
        self.backend.wait_for_lock(self.lock_timeout)
        outcome = Outcome("taken back", True)
        # kept, since half of it may be out already when a way back that was cut off begins again
        own = self.manager.own(data) | set(data.get("own", ()))
        data["own"] = sorted(own)
        snapshot.save(self.root, data)
        outcome.lines += self.manager.back(data["packages"], data["former"], own)
        outcome.lines += snapshot.restore(self.root, data, data["release"])
        outcome.lines += self.manager.mark(data)
        holds = self._held_by_us(data)
        outcome.lines += self._holds(data, holds)
        left = snapshot.differences(data, self._look(list(data["moved"])), data["release"], own, holds)
        if left:
            raise StageError(f"kernel {data['release']} was taken back, but {'; '.join(left)}. Put that right by hand "
                             f"before this host is restarted; {snapshot.PATH} says how it was")
        self.store.update(lambda state: _forget(state, data))
        self._end()
        return outcome

    def _held_by_us(self, data: Mapping[str, Any]) -> set[str]:
        """Names whose holds are put back: what moved, and what the records say. Others may be a person's, and newer."""
        sets = [*data["records"].get("holds", {}).values(), *self.store.read()["holds"].values()]
        return {*data["moved"], *data["wanted"], *(name for names in sets for name in names)}

    def _holds(self, data: Mapping[str, Any], ours: set[str]) -> list[str]:
        rows = self.backend.installed()
        now = {name for name, found in rows.items() if any(row.held for row in found)} & ours
        was = set(data["held"]) & ours
        if now == was:
            return []
        # whose a hold is stands in the state file: without that ours would look like a person's
        full = {name: [row.full for row in found] for name, found in rows.items()}
        self.backend.set_holds([one for name in was - now for one in full.get(name, [])],
                               [one for name in now - was for one in full.get(name, [])], self.lock_timeout)
        return [f"holds of {', '.join(sorted(now ^ was))} are as they were"]

    def recover(self, check: bool) -> Outcome:
        """Finish or take back what a cut-off run left; nothing where there is nothing. Raises StageError."""
        left = transaction.denied(self.root)    # by a package transaction that was cut off
        if left and not check:
            transaction.allow_services(self.root)
        outcome = self._recover(check)
        if left:
            outcome.how, outcome.changed = outcome.how if outcome.changed else "finished", True
            outcome.lines.append(f"package scripts may start services again (/{transaction.POLICY})")
        return outcome

    def _recover(self, check: bool) -> Outcome:
        data = snapshot.load(self.root)
        opened = self.store.read()["open"]
        if data is None:
            left = snapshot.left(self.root)
            if (opened is None or opened["role"] != ROLE) and not left:
                return Outcome()
            if not check:  # cut off before the first package, or after the last step: nothing is half done
                self._end()
            return Outcome("finished", True, lines=["nothing had moved", *(f"{path} is gone" for path in left)])
        if opened is None and not check:    # releases before wrote the journal first
            self._begin(data)
        self.backend.wait_for_lock(self.lock_timeout)
        problems = self._problems(data)
        if problems:
            return Outcome("taken back", True, problems=problems) if check else _with(self.undo(), problems)
        if not check:
            self._end()
        return Outcome("finished", True, lines=[f"kernel {data['release']} is whole"])

    def _open_one(self) -> snapshot.Snapshot:
        data = snapshot.load(self.root)
        if data is None:
            raise StageError("no kernel is being brought in (kernel_stage state=opened comes first)")
        return data


def _forget(state: dict[str, Any], data: Mapping[str, Any]) -> None:
    """The records of holds as they were, and no proof of a kernel that is not there."""
    state.update(data["records"])
    state["proved_kernels"].pop(data["release"], None)


def _with(outcome: Outcome, problems: list[str]) -> Outcome:
    outcome.problems = problems
    return outcome
