# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nvidia runtime in Docker's daemon.json and in a drop-in of CRI-O: what a file is to say, from what it says.

Docker's file is merged: whatever else it says stays. CRI-O gets a drop-in of its own that takes over the monitor of the
runtime that is the default there.
"""
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import HostError
from . import toolkit_toml

RUNTIME = "nvidia"
DOCKER_FILE = "/etc/docker/daemon.json"
CRIO_FILE = "/etc/crio/crio.conf.d/99-nvidia.conf"
_MARK = "# Managed by baremetal.nvidia\n"
# What a runtime of CRI-O needs from its neighbour, or it finds no monitor and containers neither start nor stop.
_CRIO_TAKEN_OVER = ("monitor_path", "monitor_cgroup", "allowed_annotations")


class EngineError(HostError):
    """A file that cannot be changed safely; the message says where and why. Nothing was written."""


@dataclass(frozen=True)
class Wish:
    """What Docker or CRI-O is to know. ``default_runtime`` None keeps what is there."""

    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    default_runtime: str | None = None
    cdi: bool | None = None


@dataclass
class Edit:
    """The text a file is to have (None: no file), and what was set: ``[{path, before, there, after}]``."""

    text: str | None
    sets: list[dict[str, Any]] = field(default_factory=list)


def docker(text: str | None, wish: Wish) -> Edit:
    """daemon.json with the runtime. Raises EngineError."""
    data = _docker_data(text)
    wanted: dict[tuple[str, ...], Any] = {("runtimes", RUNTIME, "path"): wish.runtime_path}
    if wish.default_runtime is not None:
        wanted["default-runtime",] = wish.default_runtime
    if wish.cdi is not None:
        wanted["features", "cdi"] = wish.cdi
    sets = []
    for path, value in wanted.items():
        before = _get(data, path)
        if before == value:
            continue
        sets.append({"path": list(path), "before": before, "there": before is not None, "after": value})
        _put(data, path, value)
    if not sets:
        return Edit(text)
    data["runtimes"][RUNTIME].setdefault("args", [])
    return Edit(_dump(data, text), sets)


def without_docker(text: str | None, sets: list[dict[str, Any]]) -> Edit:
    """daemon.json without what we set: what stood there before comes back, unless somebody changed it since."""
    if text is None:
        return Edit(None)
    data = _docker_data(text)
    for one in reversed(sets):
        path = tuple(one["path"])
        if _get(data, path) != one["after"]:
            continue
        if one["there"]:
            _put(data, path, one["before"])
        else:
            _drop(data, path)
    runtimes = data.get("runtimes")
    if isinstance(runtimes, dict) and runtimes.get(RUNTIME) == {"args": []}:
        del runtimes[RUNTIME]
    for key in ("runtimes", "features"):
        if data.get(key) == {}:
            del data[key]
    return Edit(_dump(data, text) if data else None, sets)


def between(text: str) -> str:
    """daemon.json by which a running Docker forgets the runtime: it takes no notice of a key that is gone.

    Runtimes and default are said in so many words; the file without them can follow once the daemon has read this one.
    """
    data = _docker_data(text)
    data.setdefault("runtimes", {})
    data.setdefault("default-runtime", "runc")
    return _dump(data, text)


def _docker_data(text: str | None) -> dict[str, Any]:
    if text is None or not text.strip():
        return {}

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _value in found}) != len(found):
            raise EngineError(f"{DOCKER_FILE} names a key twice; say it once")
        return dict(found)

    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except ValueError as error:
        raise EngineError(f"{DOCKER_FILE} is no JSON ({error}); mend it, or move it away") from error
    if not isinstance(data, dict):
        raise EngineError(f"{DOCKER_FILE} is no JSON object; mend it, or move it away")
    for key in ("runtimes", "features"):
        if not isinstance(data.get(key, {}), dict):
            raise EngineError(f"{DOCKER_FILE}: {key} is no JSON object; mend it, or move the file away")
    if not isinstance(data.get("runtimes", {}).get(RUNTIME, {}), dict):
        raise EngineError(f"{DOCKER_FILE}: runtimes.{RUNTIME} is no JSON object; mend it, or move the file away")
    return data


def _get(data: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    here: Any = data
    for key in path:
        here = here.get(key) if isinstance(here, dict) else None
    return here


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1]] = value


def _drop(data: dict[str, Any], path: tuple[str, ...]) -> None:
    parent = _get(data, path[:-1]) if path[:-1] else data
    if isinstance(parent, dict):
        parent.pop(path[-1], None)


def _dump(data: Mapping[str, Any], before: str | None) -> str:
    """JSON in the indentation that the file has."""
    match = re.search(r"\n([ \t]+)\"", before or "")
    indent: str | int = match[1] if match else 4
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n"


def crio(text: str | None, others: str, wish: Wish) -> Edit:
    """Our drop-in of CRI-O; ``others`` is the text of all its other files, in the order in which they count."""
    if text is not None and not text.startswith(_MARK) and not _only_ours(text):
        raise EngineError(f"{CRIO_FILE} says more than the runtime {RUNTIME}; move the rest to a file of its own")
    there = _joined(others)
    default = there.get("crio.runtime.default_runtime") or "crun"
    lines = [f"[crio.runtime.runtimes.{RUNTIME}]", f'runtime_path = "{wish.runtime_path}"', 'runtime_type = "oci"']
    for key in _CRIO_TAKEN_OVER:
        for neighbour in (default, "crun", "runc"):
            value = there.get(f"crio.runtime.runtimes.{neighbour}.{key}")
            if value is not None:
                lines.append(f"{key} = {json.dumps(value)}")
                break
    if wish.default_runtime is not None:
        lines += ["", "[crio.runtime]", f'default_runtime = "{wish.default_runtime}"']
    new = _MARK + "\n".join(lines) + "\n"
    kept = toolkit_toml.read(text) if text is not None else {}
    if wish.default_runtime is None and "crio.runtime.default_runtime" in kept:
        new += f'\n[crio.runtime]\ndefault_runtime = "{kept["crio.runtime.default_runtime"]}"\n'
    return Edit(text) if kept == toolkit_toml.read(new) else Edit(new)


def _only_ours(text: str) -> bool:
    return all(name.startswith(f"crio.runtime.runtimes.{RUNTIME}.") or name == "crio.runtime.default_runtime"
               for name in toolkit_toml.read(text))


def _joined(texts: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts.split("\0"):
        found.update(toolkit_toml.read(text))
    return found
