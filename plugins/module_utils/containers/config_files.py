# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration files on the host: read them all, try new ones, put them in place.

What the files mean is worked out on the controller. Here they are bytes; the only thing that is looked for is the list
of imports, to know which files to hand over.
"""
from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..errors import HostError
from ..run import Result
from ..state import Store, stamp
from . import keepers

Runner = Callable[..., Result]

_IMPORTS = re.compile(rb"^[ \t]*imports[ \t]*=[ \t]*\[(?P<list>[^\]]*)\]", re.MULTILINE)
_COMMENT = re.compile(rb"(?m)#.*$")
_QUOTED = re.compile(rb"\"([^\"]*)\"|'([^']*)'")
_BESIDE = ("conf.d/*.toml", "config.d/*.toml", "config.toml.d/*.toml", "config-v3.toml.d/*.toml",
           "containerd.d/*.toml", "*.toml.tmpl", "containerd-template.toml")
_MOST_FILES = 100
_MOST_BYTES = 1024 * 1024
ROLE = "gpu_containerd"
PLACEHOLDER = b"@FOLDER@"  # stands for the folder in which a trial lies
DUMP_TIMEOUT = 30


class ConfigError(HostError):
    """Files cannot be read, tried or put in place."""


@dataclass
class Read:
    """What is on the host."""

    files: dict[str, bytes] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)  # every path and pattern that was looked for
    version: str | None = None  # as `containerd --version` prints it


@dataclass(frozen=True)
class Placed:
    """A file that was written, and where what was there before is kept (None: there was none)."""

    path: str
    backup: str | None


def checksum(content: bytes | None) -> str | None:
    """SHA-256 of a content; None stands for no file."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def read(main: str, extra: Iterable[str], program: str, run: Runner) -> Read:
    """The main file, what it imports, what lies beside it in folders meant for imports, and ``extra`` paths."""
    found = Read()
    folder = os.path.dirname(main)
    imported = [main, *extra]
    todo = [os.path.join(folder, pattern) for pattern in _BESIDE]
    while imported or todo:
        counts = bool(imported)  # containerd reads it; what only lies beside may be anything
        pattern = imported.pop(0) if imported else todo.pop(0)
        if pattern in found.looked:
            continue
        found.looked.append(pattern)
        for path in _matches(pattern) if "*" in pattern else [pattern]:
            if path in found.files:
                continue
            content = _content(path)
            if content is None:
                if counts and path != main and os.path.lexists(path):
                    raise ConfigError(f"{path} is no file that can be read ({_what(path)}), and {pattern} names it: "
                                      "containerd does not start with it; take it away")
                continue
            if len(found.files) >= _MOST_FILES:
                raise ConfigError(f"more than {_MOST_FILES} files belong to {main}: that is no configuration")
            found.files[path] = content
            (imported if counts else todo).extend(_imports(path, content))
    result = run([program, "--version"], timeout=10)
    match = re.search(r"\sv?(\d+\.\d+\.\d+\S*)", result.out) if result.ok else None
    found.version = match[1] if match else None
    return found


def _matches(pattern: str) -> list[str]:
    """What a pattern of ``imports`` names. To containerd ``*`` is also a name that begins with a dot."""
    folder, name = os.path.split(pattern)
    hidden = os.path.join(folder, "." + name) if name.startswith("*") else None
    return sorted({*glob.glob(pattern), *(glob.glob(hidden) if hidden else ())})


def _what(path: str) -> str:
    return "a link to nothing" if os.path.islink(path) and not os.path.exists(path) else "a folder"


def _content(path: str) -> bytes | None:
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            raise ConfigError(f"{path} is larger than {_MOST_BYTES} bytes: that is no configuration")
    except FileNotFoundError:
        return None
    if os.path.isdir(path):
        return None
    return keepers.read(path)


def _imports(path: str, content: bytes) -> list[str]:
    match = _IMPORTS.search(content)
    if match is None:
        return []
    names = [one or two for one, two in _QUOTED.findall(_COMMENT.sub(b"", match["list"]))]
    return [os.path.normpath(os.path.join(os.path.dirname(path), os.fsdecode(name))) for name in names if name]


def trial(trees: Mapping[str, Mapping[str, bytes]], program: str, run: Runner) -> dict[str, dict[str, Any]]:
    """What ``containerd config dump`` prints for each tree (name of a file: content; the main one is config.toml).

    The trees lie in a folder that only root can read and that is gone afterwards.
    """
    outcome: dict[str, dict[str, Any]] = {}
    base = tempfile.mkdtemp(prefix="baremetal-nvidia-")
    try:
        for name, files in trees.items():
            folder = os.path.join(base, name)
            os.mkdir(folder, 0o700)
            for file, content in files.items():
                with open(os.path.join(folder, os.path.basename(file)), "wb") as handle:
                    handle.write(content.replace(PLACEHOLDER, os.fsencode(folder)))
            result = run([program, "--config", os.path.join(folder, "config.toml"), "config", "dump"],
                         timeout=DUMP_TIMEOUT)
            outcome[name] = {"rc": result.rc, "out": result.out.replace(folder, "@FOLDER@"),
                             "why": "" if result.ok else result.why("containerd config dump").replace(base, "")}
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return outcome


def place(files: list[tuple[str, bytes | None, str | None]], main: str, program: str, run: Runner, store: Store, *,
          run_id: str | None, keep: int, backups: str = keepers.BACKUPS, records: Mapping[str, Any] | None = None,
          dump: bool = True) -> list[Placed]:
    """Write (path, content, checksum of what was read) in order, None taking the file away; all of them or none.

    ``records`` is what the state keeps of each file, so that it can be taken back.

    Raises ConfigError if a file is not what it was when it was read, or if containerd cannot read the outcome; the
    former files are back then.
    """
    for path, _new, expected in files:
        if checksum(keepers.read(path)) != expected:
            raise ConfigError(f"{path} was changed by somebody else since it was read; nothing was written, run again")
    store.begin(run_id or "containerd_config", ROLE, "containerd's configuration")
    store.step("config")
    done: list[Placed] = []
    try:
        for path, content, _expected in files:
            saved = keepers.backup(path, keep, backups)
            done.append(Placed(path, saved))
            # noted before it is written, so that what a cut-off run wrote can be taken back
            store.update(partial(_remember, done[-1], stamp(store.clock()), keep))
            if records and path in records:
                store.update(partial(_record, path, records[path]))
            if content is None:
                keepers.remove(path)
            else:
                keepers.replace(path, content)
        result = run([program, "--config", main, "config", "dump"], timeout=DUMP_TIMEOUT) if dump else None
        if result is not None and not result.ok:
            raise ConfigError(f"{result.why('containerd config dump')}; the former files are back")
        store.step("restart")
    except BaseException:
        put_back(done)
        store.finish()
        raise
    return done


def _record(path: str, fresh: dict[str, Any], data: dict[str, Any]) -> None:
    """Note what is set in a file. What stood there at first counts, unless somebody changed the setting since."""
    known = data["configured"].setdefault(path, {"sets": [], "imports": [], "version": False})
    by_path = {tuple(entry["path"]): entry for entry in known["sets"]}
    for entry in fresh["sets"]:
        there = by_path.get(tuple(entry["path"]))
        if there is not None and entry["there"] and entry["before"] == there["after"]:
            there["after"] = entry["after"]  # ours, moved on: what stood there at first is still what comes back
        else:
            by_path[tuple(entry["path"])] = entry
    known["sets"] = list(by_path.values())
    known["imports"] += [entry for entry in fresh["imports"] if entry not in known["imports"]]
    if fresh["imports"]:
        known["imports_there"] = fresh.get("imports_there", False)
    known["version"] = known["version"] or fresh["version"]


def _remember(item: Placed, when: str, keep: int, data: dict[str, Any]) -> None:
    """Add a file to the state's list of backups, which knows the newest ``keep`` of each file."""
    backups: list[dict[str, Any]] = data["backups"]
    backups.append({"path": item.path, "backup": item.backup, "at": when})
    mine = [entry for entry in backups if entry["path"] == item.path]
    for entry in mine[: -max(keep, 1)]:
        backups.remove(entry)


def left_open(store: Store) -> list[Placed]:
    """The files of a run that was cut off before its restart, as they can be taken back."""
    data = store.read()
    if not data["open"] or data["open"]["role"] != ROLE:
        return []
    first: dict[str, Placed] = {}
    for entry in data["backups"]:
        if entry["at"] >= data["open"]["at"]:
            first.setdefault(entry["path"], Placed(entry["path"], entry["backup"]))
    return list(first.values())


def put_back(placed: Iterable[Placed]) -> None:
    """Bring back what was there before, the last file first."""
    for item in reversed(list(placed)):
        with contextlib.suppress(FileNotFoundError):
            keepers.restore(item.path, item.backup)
