# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nvidia runtime needs of the CRI plugin's table, as a list of settings that are not there yet."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .generation import HANDLER, RUNTIME_TYPE, Generation
from .toml_text import Path

_GONE = ("runtime_engine", "runtime_root")  # ignored with a warning by 2.x
_FORCED = ("SystemdCgroup",)  # must be that of the runtime it stands beside, or pods do not start


class Refusal(Exception):
    """Why nothing is written. ``kind`` as in ``Note``, the message names thing, reason and way out."""

    def __init__(self, kind: str, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.kind = kind
        self.summary = message
        self.remedy = remedy


@dataclass(frozen=True)
class Wanted:
    """Settings to make (paths relative to the plugin's table) and what they rest on."""

    sets: tuple[tuple[Path, Any], ...]
    default_runtime: str  # in force afterwards
    copied_from: str  # the runtime whose options nvidia got
    low_level: str | None  # its BinaryName, which nvidia-container-runtime should call instead of runc


def wanted(table: Mapping[str, Any], gen: Generation, default_runtime: str | None, runtime_path: str) -> Wanted:
    """Compare the CRI table in force with what is asked for. Raises Refusal where it cannot be had."""
    containerd = _table(table, "containerd")
    runtimes = _table(containerd, "runtimes")
    for name, item in runtimes.items():
        if not isinstance(item, Mapping):
            raise Refusal("unexpected_type", f"the runtime {name!r} is no table", "correct the file by hand")
    in_force, legacy = _default(containerd, gen)
    if legacy is not None and default_runtime is not None:
        raise Refusal("overridden", "the table default_runtime, which is deprecated, decides the default runtime",
                      "remove it and set default_runtime_name, or leave gpu_containerd_default_runtime empty")
    default = default_runtime or in_force
    source_name, source = _source(runtimes, in_force, legacy)
    sets: list[tuple[Path, Any]] = []
    if gen.sets_enable_cdi and "enable_cdi" not in table:
        sets.append((("enable_cdi",), True))
    known = {*runtimes, HANDLER}
    if gen.deep_merge or not runtimes or default == "runc":
        known.add("runc")
        if not gen.deep_merge and "runc" not in runtimes:
            sets.append((("containerd", "runtimes", "runc"), {"runtime_type": RUNTIME_TYPE}))
    placeholder = default.startswith("${")  # MicroK8s' template: it fills it in
    if default not in known and default_runtime is None and legacy is None and not placeholder:
        raise Refusal("default_unknown", f"default_runtime_name is {default!r}, and there is no such runtime (there "
                      f"are: {', '.join(sorted(known))}): containerd does not load its CRI plugin at its next start",
                      "name one of these there, or set gpu_containerd_default_runtime")
    if default_runtime is not None:
        if default_runtime not in known:
            raise Refusal("default_unknown", f"gpu_containerd_default_runtime is {default_runtime!r}, and there is no "
                          f"such runtime (there are: {', '.join(sorted(known))})",
                          "set one of these, or leave it empty")
        if containerd.get("default_runtime_name") != default_runtime and (
                default_runtime != "runc" or containerd.get("default_runtime_name")):
            sets.append((("containerd", "default_runtime_name"), default_runtime))
    sets += _handler(runtimes.get(HANDLER), source, runtime_path)
    low_level = _table(source, "options").get("BinaryName")
    return Wanted(tuple(sets), default, source_name, low_level if isinstance(low_level, str) and low_level else None)


def _handler(present: Mapping[str, Any] | None, source: Mapping[str, Any], binary: str) -> list[tuple[Path, Any]]:
    base: Path = ("containerd", "runtimes", HANDLER)
    options = {name: item for name, item in _table(source, "options").items() if name != "BinaryName"}
    if present is None:
        beside = {name: item for name, item in source.items()
                  if name not in (*_GONE, "options", "runtime_type")}
        return [(base, {"runtime_type": RUNTIME_TYPE, **beside, "options": {"BinaryName": binary, **options}})]
    sets: list[tuple[Path, Any]] = []
    if present.get("runtime_type") != RUNTIME_TYPE:
        sets.append(((*base, "runtime_type"), RUNTIME_TYPE))
    mine = _table(present, "options")
    missing = {name: item for name, item in options.items()
               if name not in mine or (name in _FORCED and mine[name] != item)}
    if mine.get("BinaryName") != binary:
        missing = {"BinaryName": binary, **missing}
    if missing and not mine:
        sets.append(((*base, "options"), missing))
    else:
        sets += [((*base, "options", name), item) for name, item in missing.items()]
    return sets


def _default(containerd: Mapping[str, Any], gen: Generation) -> tuple[str, Mapping[str, Any] | None]:
    """The default runtime in force, and the 1.x table ``default_runtime`` if that is what says so."""
    legacy = containerd.get("default_runtime")
    if not gen.deep_merge and isinstance(legacy, Mapping) and legacy.get("runtime_type"):
        return "default", legacy
    name = containerd.get("default_runtime_name")
    return (name if isinstance(name, str) and name else "runc"), None


def _source(runtimes: Mapping[str, Any], default: str,
            legacy: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any]]:
    """The runtime to copy from: the default one, or runc where that is nvidia's own or no runc-like one."""
    candidates: dict[str, Any] = {"default": legacy} if legacy is not None else {}
    candidates |= {name: runtimes.get(name) for name in (default, "runc")
                   if not name.startswith(HANDLER) and name not in candidates}
    for name, item in candidates.items():
        if isinstance(item, Mapping) and item.get("runtime_type", RUNTIME_TYPE) == RUNTIME_TYPE:
            return name, item
    return "runc", {}


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    item = table.get(name, {})
    if not isinstance(item, Mapping):
        raise Refusal("unexpected_type", f"{name} is no table in the CRI plugin's settings", "correct the file by hand")
    return item
