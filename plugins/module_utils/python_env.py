# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python environment with a framework in it: made by the interpreter's own venv and pip, kept in the state file.

An environment counts as there when the state file says that it was finished with the same requirements, and the
framework's metadata is in it. One that a run was cut off in is made anew: pip takes half an install for a whole one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from .errors import HostError
from .run import environment, run
from .state import State, Store

_MARK = "pyvenv.cfg"


class PythonEnvError(HostError):
    """The environment cannot be made; the message says what stands in the way and the way out."""


@dataclass(frozen=True)
class Wish:
    """What is to be there. ``dist``: the distribution whose version is looked at."""

    path: str
    dist: str
    requirements: Sequence[str]
    index_url: str | None = None
    python: str = "python3"
    timeout: float = 3600
    min_free_mb: int = 0


@dataclass
class Outcome:
    """What was done, and the version that is there now."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    version: str | None = None


def record(wish: Wish, building: bool) -> dict[str, Any]:
    """What the state file keeps of an environment."""
    return {"dist": wish.dist, "requirements": list(wish.requirements), "index_url": wish.index_url,
            "building": building}


def version_in(path: str, dist: str) -> str | None:
    """The version of a distribution in an environment, None when it is not there as a whole."""
    if not os.path.exists(os.path.join(path, "bin/python")):
        return None
    library = os.path.join(path, "lib")
    for name in sorted(os.listdir(library)) if os.path.isdir(library) else []:
        packages = os.path.join(library, name, "site-packages")
        for info in sorted(os.listdir(packages)) if os.path.isdir(packages) else []:
            found = re.fullmatch(rf"{re.escape(dist)}-(.+)\.dist-info", info)
            if found and os.path.isfile(os.path.join(packages, info, "RECORD")):
                return found.group(1)
    return None


def ensure(wish: Wish, store: Store, check: bool = False, runner: Callable[..., Any] = run) -> Outcome:
    """Bring the environment to what is wished. Raises HostError with the reason and the way out."""
    known: Mapping[str, Any] | None = store.read()["environments"].get(wish.path)
    there = version_in(wish.path, wish.dist)
    outcome = Outcome(version=there)
    if known == record(wish, building=False) and there is not None:
        return outcome
    _refuse_strangers(wish, known)
    anew = known is None or bool(known.get("building")) or not os.path.exists(os.path.join(wish.path, "bin/python"))
    outcome.changed = True
    outcome.actions = [*([f"make {wish.path} with {wish.python}"] if anew else []),
                       f"install {' '.join(wish.requirements)} from {wish.index_url or 'the index of pip'}"]
    if check:
        return outcome
    _room(wish)
    _note(store, wish, building=True)
    if anew:
        _make(wish, runner)
    _install(wish, runner)
    outcome.version = version_in(wish.path, wish.dist)
    if outcome.version is None:
        raise PythonEnvError(f"pip installed {' '.join(wish.requirements)}, and {wish.dist} is not in {wish.path}: "
                             "see whether the requirements name it")
    os.sync()
    _note(store, wish, building=False)
    return outcome


def _refuse_strangers(wish: Wish, known: object) -> None:
    if known is None and os.path.isdir(wish.path) and os.listdir(wish.path):
        what = "a Python environment" if os.path.exists(os.path.join(wish.path, _MARK)) else "a folder with files"
        raise PythonEnvError(f"{wish.path} is {what} that was not made here, and is left alone: move it away, or "
                             "name another path")
    if os.path.islink(wish.path) or (os.path.exists(wish.path) and not os.path.isdir(wish.path)):
        raise PythonEnvError(f"{wish.path} is no folder: move it away, or name another path")


def _room(wish: Wish) -> None:
    place = wish.path
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    free = shutil.disk_usage(place).free // (1024 * 1024)
    if free < wish.min_free_mb:
        raise PythonEnvError(f"{place} has {free} MB free and {wish.path} needs {wish.min_free_mb} MB: make room, or "
                             "name a path on another file system")


def _note(store: Store, wish: Wish, building: bool) -> None:
    def change(data: State) -> None:
        data["environments"][wish.path] = record(wish, building)

    store.update(change)


def _make(wish: Wish, runner: Callable[..., Any]) -> None:
    if os.path.isdir(wish.path):
        shutil.rmtree(wish.path)
    os.makedirs(os.path.dirname(wish.path), exist_ok=True)
    done = runner([wish.python, "-m", "venv", wish.path], timeout=300, env=environment())
    if not done.ok:
        raise PythonEnvError(f"{done.why(f'{wish.python} -m venv')}: see that {wish.python} and its venv are "
                             "installed")


def _install(wish: Wish, runner: Callable[..., Any]) -> None:
    command = [os.path.join(wish.path, "bin/python"), "-m", "pip", "install", "--no-input", "--no-cache-dir",
               "--disable-pip-version-check", "--progress-bar=off", "--upgrade"]
    if wish.index_url is not None:
        command += ["--index-url", wish.index_url]
    done = runner([*command, *wish.requirements], timeout=wish.timeout, env=environment({"PIP_NO_COLOR": "1"}))
    if not done.ok:
        lines = [line for line in (done.err + "\n" + done.out).splitlines() if line.startswith(("ERROR", "error"))]
        why = "it took too long" if done.timed_out else "; ".join(lines[:3]) or done.why("pip")
        raise PythonEnvError(f"pip could not install {' '.join(wish.requirements)} into {wish.path} from "
                             f"{wish.index_url or 'the index of pip'}: {why}. What is half there is made anew by "
                             "the next run")
