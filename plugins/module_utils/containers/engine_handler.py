# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give Docker or CRI-O the nvidia runtime so that the daemon never stays without a file that works.

Docker reads its runtimes anew at SIGHUP: nothing that runs is touched. CRI-O has to be restarted, which leaves
containers running; under GPU containers that still needs leave. A daemon that does not know the runtime afterwards gets
its former file back, and the reason is told.
"""
from __future__ import annotations

import glob
import http.client
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import atomic
from ..facts import masking
from ..run import Result
from ..state import Store
from . import engine_files, keepers
from .engine_files import CRIO_FILE, DOCKER_FILE, RUNTIME, Edit, EngineError, Wish

Runner = Callable[..., Result]
ROLE = "gpu_toolkit"
_SOCKETS = {"docker": "/run/docker.sock", "crio": "/run/crio/crio.sock"}
_UNITS = {"docker": "docker.service", "crio": "crio.service"}


@dataclass
class Outcome:
    """What was done, or would be."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""
    backup: str | None = None
    skipped_reason: str | None = None

    @property
    def shown_before(self) -> str:
        """What the diff shows: proxies in daemon.json can hold credentials."""
        return masking.text(self.before)

    @property
    def shown_after(self) -> str:
        """The same afterwards."""
        return masking.text(self.after)


class EngineHandler:
    """One engine (docker or crio). ``count`` tells how many GPU containers run."""

    def __init__(self, name: str, run: Runner, count: Callable[[], int], store: Store, *, root: str = "/",
                 keep: int = 5, timeout: float = 30, run_id: str | None = None,
                 pause: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
                 which: Callable[[str], str | None] = shutil.which) -> None:
        self.name, self.run, self.count, self.store = name, run, count, store
        self.root, self.keep, self.timeout, self.pause, self.clock = root, keep, timeout, pause, clock
        self.which = which
        self.run_id = run_id or "by hand"
        self.path = DOCKER_FILE if name == "docker" else CRIO_FILE

    def _real(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def set(self, wish: Wish | None, check: bool, allowed: bool = False) -> Outcome:
        """Bring file and daemon to what is wished; None takes out what we put in. Raises EngineError, OSError."""
        content = keepers.read(self._real(self.path))
        text = None if content is None else content.decode("utf-8", "surrogateescape")
        edit = self._edit(text, wish)
        left = self.store.read()["open"]
        cut_off = bool(left and left["role"] == ROLE and left["what"] == self.name)
        outcome = Outcome(before=text or "", after=edit.text or "")
        if edit.text == text and not cut_off:
            return outcome
        outcome.changed = True
        if edit.text != text:
            outcome.actions.append(f"write {self.path}" if edit.text is not None else f"remove {self.path}")
        active = self._active()
        if active and self.name == "crio" and not allowed:
            outcome.skipped_reason = self._refusal()
            if outcome.skipped_reason:
                outcome.changed, outcome.actions = False, []
                return outcome
        if active:
            outcome.actions.append(f"{'reload' if self.name == 'docker' else 'restart'} {_UNITS[self.name]}")
        if check:
            return outcome
        self._flags(wish)
        self._try(edit.text)
        forgets = active and wish is None and self.name == "docker"
        self._place(text, Edit(engine_files.between(edit.text or "")) if forgets else edit, outcome)
        if active:
            self._take_in(wish, text)
        if forgets:
            self._write(edit.text)
        self.store.update(lambda data: _record(data, self.path, edit, wish is None))
        self.store.finish()
        return outcome

    def _edit(self, text: str | None, wish: Wish | None) -> Edit:
        if self.name == "docker":
            if wish is None:
                known = self.store.read()["configured"].get(self.path, {})
                return engine_files.without_docker(text, list(known.get("sets", [])))
            return engine_files.docker(text, wish)
        return Edit(None) if wish is None else engine_files.crio(text, self._others(), wish)

    def _others(self) -> str:
        texts = []
        for path in [self._real("/etc/crio/crio.conf"), *sorted(glob.glob(self._real("/etc/crio/crio.conf.d/*")))]:
            if path != self._real(CRIO_FILE):
                texts.append((keepers.read(path) or b"").decode("utf-8", "replace"))
        return "\0".join(texts)

    def _refusal(self) -> str | None:
        """Why CRI-O is not restarted now; None if it may be."""
        try:
            count = self.count()
        except (OSError, ValueError) as error:
            return f"whether GPU containers run cannot be told ({error}), and gpu_containerd_restart_allowed is false"
        return (f"{count} GPU containers run here and gpu_containerd_restart_allowed is false; nothing was written"
                if count else None)

    def _active(self) -> bool:
        if not os.path.isdir(self._real("/run/systemd/system")):
            return False
        return self.run(["systemctl", "is-active", _UNITS[self.name]], timeout=10).out.strip() == "active"

    def _flags(self, wish: Wish | None) -> None:
        """Docker does not start when an option is both a flag of its unit and in its file."""
        if self.name != "docker" or wish is None:
            return
        shown = self.run(["systemctl", "show", "--property=ExecStart", _UNITS["docker"]], timeout=10).out
        flags = ["--add-runtime"] + (["--default-runtime"] if wish.default_runtime else [])
        found = [flag for flag in flags if flag in shown]
        if found:
            raise EngineError(f"docker.service has {' and '.join(found)} on its command line, and dockerd refuses to "
                              f"start with the same option in {DOCKER_FILE}; take it out of the unit first. Nothing "
                              "was written")

    def _try(self, text: str | None) -> None:
        """Let the program itself look at the file before it is put in place; old ones cannot, which is no refusal."""
        program = self.which("dockerd" if self.name == "docker" else "crio")
        if program is None or text is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            if self.name == "docker":
                target, argv = os.path.join(folder, "daemon.json"), [program, "--validate", "--config-file"]
                argv.append(target)
            else:
                for path in glob.glob(self._real("/etc/crio/crio.conf.d/*")):
                    shutil.copy(path, folder)
                target, argv = os.path.join(folder, "99-nvidia.conf"), [program, "--config-dir", folder, "config"]
            with open(target, "w", encoding="utf-8", errors="surrogateescape") as handle:
                handle.write(text)
            told = self.run(argv, timeout=30)
        if not told.ok and not told.missing and "unknown flag" not in told.err + told.out:
            raise EngineError(f"{self.name} refuses the new {self.path}: {told.why(argv[0])}. Nothing was written")

    def _place(self, text: str | None, edit: Edit, outcome: Outcome) -> None:
        self.store.begin(self.run_id, ROLE, self.name)
        if edit.text == text:
            return
        real = self._real(self.path)
        self.store.step(f"write {self.path}")
        outcome.backup = keepers.backup(real, self.keep, self._real(keepers.BACKUPS))
        self._write(edit.text)

    def _write(self, text: str | None) -> None:
        if text is None:
            atomic.remove(self._real(self.path))
        else:
            keepers.replace(self._real(self.path), text.encode("utf-8", "surrogateescape"), 0o644)

    def _take_in(self, wish: Wish | None, text: str | None) -> None:
        problem = self._again() or self._answers(wish)
        if problem is None:
            return
        self._write(text)
        again = self._again()
        self.store.finish()
        state = f"and it does not work with it either: {again}" if again else "and it works with it"
        raise EngineError(f"{self.name} does not work with the new {self.path}: {problem}. The former one was put "
                          f"back, {state}")

    def _again(self) -> str | None:
        verb = "reload" if self.name == "docker" else "restart"
        told = self.run(["systemctl", verb, _UNITS[self.name]], timeout=max(self.timeout, 30))
        return None if told.ok else told.why(f"{verb} of {_UNITS[self.name]}")

    def _answers(self, wish: Wish | None) -> str | None:
        """Wait until the daemon says what it is to say; what is wrong, else None."""
        end = self.clock() + self.timeout
        while True:
            problem = self._docker_says(wish) if self.name == "docker" else self._crio_says(wish)
            if problem is None or self.clock() >= end:
                return problem
            self.pause(0.5)

    def _docker_says(self, wish: Wish | None) -> str | None:
        try:
            info = ask(self._real(_SOCKETS["docker"]), "/info")
        except (OSError, ValueError, http.client.HTTPException) as error:
            return f"its socket does not answer: {error}"
        known = info.get("Runtimes") or {}
        if wish is None:
            left = RUNTIME in known or info.get("DefaultRuntime") == RUNTIME
            return f"it still knows the runtime {RUNTIME}" if left else None
        if (known.get(RUNTIME) or {}).get("path") != wish.runtime_path:
            return f"it does not know the runtime {RUNTIME} (known: {', '.join(sorted(known)) or 'none'})"
        if wish.default_runtime not in (None, info.get("DefaultRuntime")):
            return f"its default runtime is {info.get('DefaultRuntime')}"
        return None

    def _crio_says(self, wish: Wish | None) -> str | None:
        active = self.run(["systemctl", "is-active", _UNITS["crio"]], timeout=10).out.strip()
        if active != "active":
            return f"{_UNITS['crio']} is {active or 'not active'}"
        told = self.run(["crio", "status", "config"], timeout=15)
        if not told.ok:
            return told.why("crio status config")
        known = f"crio.runtime.runtimes.{RUNTIME}]" in told.out
        if known is (wish is None):
            return f"it {'still knows' if known else 'does not know'} the runtime {RUNTIME}"
        return None


class _Local(http.client.HTTPConnection):
    """HTTP over a socket file."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(self.path)


def ask(path: str, what: str) -> dict[str, Any]:
    """What the API behind a socket file answers. Raises OSError, ValueError, HTTPException."""
    connection = _Local(path)
    try:
        connection.request("GET", what)
        answer = connection.getresponse()
        data = json.loads(answer.read(4 * 1024 * 1024))
    finally:
        connection.close()
    if answer.status != 200 or not isinstance(data, dict):
        raise ValueError(f"{what} was answered with status {answer.status}")
    return data


def _record(data: dict[str, Any], path: str, edit: Edit, gone: bool) -> None:
    """Keep what was set, with what stood there before the first time, for the way back."""
    if gone:
        data["configured"].pop(path, None)
        return
    known = data["configured"].setdefault(path, {"sets": [], "imports": [], "version": False})
    for one in edit.sets:
        former = next((old for old in known["sets"] if old["path"] == one["path"]), None)
        if former is None:
            known["sets"].append(one)
        else:
            former["after"] = one["after"]
