# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving away from a runfile: its own uninstaller is run, what it leaves is set aside and named.

The state file has it open from before the first file goes until packages are in its place: a run that was cut off is
finished by the next one. What is there is written down first, since afterwards nothing on the host would tell which
files were the runfile's.
"""
from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Callable

from .. import atomic
from ..errors import HostError
from ..facts import processes
from ..facts.tree import Tree
from ..state import DIRECTORY, Store
from . import traces

Runner = Callable[..., Any]
ROLE = "gpu_driver"
WHAT = "move away from the runfile"
INVENTORY = f"{DIRECTORY}/runfile.json"
VARIABLE = "gpu_processes_may_stop"
# what the driver's own daemons are called in /proc: they hold the devices and are no reason to wait
_DAEMONS = frozenset({"nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nvlsm", "nvidia-powerd"})


class RunfileError(HostError):
    """The runfile cannot be taken out; the message names the thing, the reason and the way out."""


@dataclass
class Outcome:
    """What was done, or would be."""

    version: str | None = None
    actions: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)  # set aside: the uninstaller had left them
    left: list[str] = field(default_factory=list)  # still there
    backup: str | None = None
    resumed: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.actions)


class Remover:
    """Takes a runfile out, below ``root``."""

    def __init__(self, run: Runner, manager: str, store: Store | None = None, root: str = "/") -> None:
        self.run, self.manager, self.root = run, manager, root
        self.store = store or Store(root)
        self.tree = Tree(root)

    def _real(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def remove(self, run_id: str, allowed: bool, check: bool = False, timeout: float = 1800) -> Outcome:
        """Take the runfile out. Raises RunfileError; nothing was touched where it says so."""
        opened = self._opened()
        before = self._inventory() if opened else None
        found = traces.find(self.tree, self.run, self.manager, before["version"] if before else None)
        outcome = Outcome(version=found.version, resumed=bool(before))
        if found.uninstaller is None and before is None:
            if found.logged or found.modules or found.libraries:
                raise RunfileError(
                    f"the runfile {found.version or 'of unknown version'} left no uninstaller (nvidia-uninstall), and "
                    "nothing else knows its files. Nothing was touched. Run the .run file of that version with "
                    "--uninstall, then run this again")
            return outcome
        if before is not None and not self._present(before, found):
            return outcome
        outcome.actions = self._steps(found, before)
        if check:
            outcome.left = sorted({*found.paths, *((before or {}).get("paths", ()))})
            return outcome
        self._refuse_under_processes(allowed)
        if before is None:
            flavour = traces.flavour(self.tree, self.run, found)
            self.store.begin(run_id, ROLE, f"{WHAT} {found.version or 'of unknown version'}", {"flavour": flavour})
            before = {"version": found.version, "paths": list(found.paths), "dkms": found.dkms}
            atomic.write(self._real(INVENTORY), json.dumps(before, indent=1) + "\n", mode=0o600, dir_mode=0o700)
        if found.uninstaller is not None:
            self.store.step("uninstall")
            self._uninstall(found.uninstaller, timeout)
        self.store.step("leftovers")
        self._leftovers(before, outcome)
        self.store.step("packages")
        return outcome

    def finish(self, check: bool = False) -> Outcome:
        """Close the journal once packages are in the place of the runfile."""
        if not self._opened():
            return Outcome()
        before = self._inventory()
        outcome = Outcome(version=before["version"] if before else None, actions=["the move to packages is finished"])
        if not check:
            self.store.finish()
            atomic.remove(self._real(INVENTORY))
        return outcome

    def _opened(self) -> bool:
        opened = self.store.read()["open"]
        if not opened:
            return False
        if opened["role"] != ROLE or not str(opened["what"]).startswith(WHAT):
            raise RunfileError(f"a run of {opened['role']} ({opened['what']}) was cut off and is open since "
                               f"{opened['at']}. Nothing was touched. Run site.yml, which finishes it, then this again")
        return True

    def _inventory(self) -> dict[str, Any]:
        text = atomic.read_text(self._real(INVENTORY))
        data = json.loads(text) if text else {}
        return {"version": data.get("version"), "paths": data.get("paths", []), "dkms": data.get("dkms")}

    def _present(self, before: dict[str, Any], found: traces.Traces) -> bool:
        return found.uninstaller is not None or bool(self._ours(before)) or self._dkms_left(before)

    def _steps(self, found: traces.Traces, before: dict[str, Any] | None) -> list[str]:
        version = found.version or "a runfile"
        steps = [f"finish what a cut-off run began with the runfile {version}"] if before is not None else []
        if found.uninstaller is not None:
            words = " ".join((found.uninstaller, *traces.UNINSTALLERS[found.uninstaller]))
            steps.append(f"take out {version} by {words}")
        return steps or [f"set aside what is left of {version}"]

    def _refuse_under_processes(self, allowed: bool) -> None:
        if allowed or not processes.has_devices(self.tree):
            return
        held, denied = processes.holders(self.tree)
        busy = [f"{command} ({pid})" for pid, command in held if command not in _DAEMONS]
        if denied:
            raise RunfileError(f"whether processes use the GPUs cannot be told: {denied} cannot be looked at. Nothing "
                               "was touched. Run this as root")
        if busy:
            more = f" and {len(busy) - 10} more" if len(busy) > 10 else ""
            raise RunfileError(f"{', '.join(busy[:10])}{more} use the GPUs, and lose their driver's libraries when the "
                               f"runfile goes. Nothing was touched. Drain the host, or set {VARIABLE}: true")

    def _uninstall(self, program: str, timeout: float) -> None:
        result = self.run([program, *traces.UNINSTALLERS[program]], timeout=timeout)
        if result.rc != 0 or result.timed_out:
            said = [line.strip() for line in f"{result.out}\n{result.err}".splitlines() if line.strip()]
            why = "it did not end in time" if result.timed_out else "; ".join(said[-3:]) or f"status {result.rc}"
            raise RunfileError(f"{program} did not take the runfile out: {why}. See /var/log/nvidia-uninstall.log; run "
                               "this again to go on")

    def _ours(self, before: dict[str, Any]) -> list[str]:
        """Files of the inventory that are still there and belong to no package: what packages brought is theirs."""
        there = [path for path in before["paths"] if os.path.lexists(self._real(path))]
        owned = traces.owners(there, self.run, self.manager)
        return [path for path in there if path not in owned]

    def _dkms_left(self, before: dict[str, Any]) -> bool:
        version = before["dkms"]
        return bool(version) and os.path.isdir(self._real(f"/var/lib/dkms/nvidia/{version}")) and not traces.owners(
            [f"/usr/src/nvidia-{version}/dkms.conf"], self.run, self.manager)

    def _leftovers(self, before: dict[str, Any], outcome: Outcome) -> None:
        version = before["version"] or "unknown"
        folder = f"{DIRECTORY}/backups/runfile-{version}"
        if self._dkms_left(before):
            outcome.actions.append(f"take nvidia/{before['dkms']} out of DKMS")
            result = self.run(["dkms", "remove", "-m", "nvidia", "-v", str(before["dkms"]), "--all"], timeout=600)
            if result.rc != 0:
                outcome.left.append(f"/var/lib/dkms/nvidia/{before['dkms']}")
        for path in self._ours(before):
            self._set_aside(path, folder)
            outcome.moved.append(path)
        if outcome.moved:
            outcome.backup = folder
            outcome.actions.append(f"set {len(outcome.moved)} files aside that the uninstaller left, to {folder}")
        for path in traces.kept_of_others(self.tree):  # a cut-off uninstaller did not bring them back
            outcome.left.append(path)
        for release in _releases([*before["paths"], *outcome.moved]):
            if os.path.isdir(self._real(f"/lib/modules/{release}")):
                self.run(["depmod", "-a", release], timeout=300)
        self.run(["ldconfig"], timeout=300)

    def _set_aside(self, path: str, folder: str) -> None:
        """Move a file to where it can be taken back from, for root alone; the copy is on disk before it goes."""
        target = self._real(folder + path)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        if os.path.isdir(self._real(path)) and not os.path.islink(self._real(path)):
            return
        shutil.copy2(self._real(path), target, follow_symlinks=False)
        if not os.path.islink(target):
            atomic.sync_file(target)
        atomic.sync_dir(os.path.dirname(target))
        atomic.remove(self._real(path))


def _releases(paths: Iterable[str]) -> list[str]:
    """The kernels below whose directory some of the files lay."""
    parts = [path.removeprefix("/usr").split("/") for path in paths]
    return sorted({one[3] for one in parts if one[1:3] == ["lib", "modules"] and len(one) > 4})
