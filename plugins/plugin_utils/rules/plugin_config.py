# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device plugin's configuration (version v1) as a text: what it refuses, and where a misplaced key belongs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import yaml

from ..model.plan import Severity

_LONGEST = 65536
_SHARED = frozenset(("renameByDefault", "failRequestsGreaterThanOne", "resources"))
_KEYS: Mapping[str, frozenset[str]] = {
    "": frozenset(("version", "flags", "resources", "sharing", "imex", "health")),
    "flags": frozenset((
        "migStrategy", "failOnInitError", "mpsRoot", "nvidiaDriverRoot", "nvidiaDevRoot", "gdrcopyEnabled",
        "gdsEnabled", "mofedEnabled", "useNodeFeatureAPI", "deviceDiscoveryStrategy", "plugin", "gfd",
    )),
    "flags.plugin": frozenset((
        "passDeviceSpecs", "deviceListStrategy", "deviceIDStrategy", "cdiAnnotationPrefix", "nvidiaCTKPath",
        "containerDriverRoot", "cdiFeatureFlags", "sharedDevicesAllocationPolicy",
    )),
    "flags.gfd": frozenset(("oneshot", "noTimestamp", "sleepInterval", "outputFile", "machineTypeFile",
                            "imexNodesConfigFile")),
    "sharing": frozenset(("timeSlicing", "mps")),
    "sharing.timeSlicing": _SHARED,
    "sharing.mps": _SHARED,
}
_ENTRY = frozenset(("name", "replicas", "rename", "devices"))


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration as it was read: the tree, or why there is none."""

    tree: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What the plugin has against a configuration."""

    summary: str
    remedy: str | None = None
    severity: Severity | None = None


@lru_cache(maxsize=256)
def parse(text: str) -> Config:
    """Return the tree of a configuration; it is shared, so not to be changed."""
    if len(text) > _LONGEST:
        return Config(error="it is too long")
    try:
        return Config(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        return Config(error=f"it is no YAML{where}")


def resources(strategy: object) -> list[Mapping[str, Any]]:
    """Return the resources of timeSlicing or mps that are mappings."""
    listed = strategy.get("resources") if isinstance(strategy, Mapping) else None
    return [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []


def problems(config: Config) -> Iterator[Problem]:
    """Yield what the plugin refuses or ignores."""
    tree = config.tree
    if config.error is not None or not isinstance(tree, Mapping):
        yield Problem(config.error or "it is no mapping")
        return
    if tree.get("version") != "v1":
        yield Problem(f"version is {tree.get('version')!r}, and has to be v1", "begin it with version: v1")
    for path in _KEYS:
        yield from _keys(tree, path)
    sharing = tree.get("sharing")
    if not isinstance(sharing, Mapping):
        return
    if sharing.get("timeSlicing") is not None and sharing.get("mps") is not None:
        yield Problem("sharing.timeSlicing and sharing.mps exclude each other", "choose one of the two")
    for name in ("timeSlicing", "mps"):
        if sharing.get(name) is not None:
            yield from _strategy(f"sharing.{name}", sharing[name])


def _at(tree: Any, path: str) -> Any:
    for key in path.split(".") if path else ():
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def _keys(tree: Mapping[str, Any], path: str) -> Iterator[Problem]:
    here = _at(tree, path)
    if not isinstance(here, Mapping):
        return
    for key in here:
        if key in _KEYS[path]:
            continue
        place = path or "the top"
        belongs = _belongs(tree, str(key))
        if belongs is not None:
            yield Problem(f"{key} stands under {place}, where it does nothing; it belongs under {belongs}",
                          f"move {key} under {belongs}")
        else:
            near = get_close_matches(str(key), sorted(_KEYS[path]), n=1)
            yield Problem(f"{key} under {place} is no key" + (f"; {near[0]} is near" if near else ""),
                          f"write {near[0]}" if near else f"take {key} out")


def _belongs(tree: Mapping[str, Any], key: str) -> str | None:
    """Return where a key belongs, what is there already going first."""
    places = [path for path, names in _KEYS.items() if path and key in names]
    there = [path for path in places if isinstance(_at(tree, path), Mapping)]
    return next(iter(there or places), None)


def _strategy(path: str, strategy: object) -> Iterator[Problem]:
    entries = resources(strategy)
    if not entries:
        yield Problem(f"{path} has no resources", f"name a resource, such as nvidia.com/gpu, under {path}.resources")
    for entry in entries:
        name, replicas = entry.get("name"), entry.get("replicas")
        if not isinstance(name, str) or not name or len(name) > 63:
            yield Problem(f"a resource of {path} has the name {name!r}", "name a resource, such as nvidia.com/gpu")
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 2:
            yield Problem(f"{name} of {path} has {replicas!r} replicas; it takes a whole number from 2 on",
                          "set replicas to 2 or more")
        if path.endswith("mps") and isinstance(name, str) and "/mig-" in name:
            yield Problem(f"{name} of {path} is a MIG device; MPS works on whole GPUs alone", "use timeSlicing for it")
        for key in entry:
            if key not in _ENTRY:
                near = get_close_matches(str(key), sorted(_ENTRY), n=1)
                yield Problem(f"{key} of {name} in {path} is no key" + (f"; {near[0]} is near" if near else ""))
            elif key in ("rename", "devices"):
                yield Problem(f"{key} of {name} in {path} is ignored", f"take {key} out", severity="warning")
