# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the nodes of a cluster share their GPUs: groups of nodes, each with a strategy (the variable gpu_sharing)."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .containers import Fault

STRATEGIES = ("none", "time_slicing", "mps", "mig")
#: The key of the configuration for nodes of no group: whole GPUs.
WHOLE = "whole"
BALANCED = "balanced"
MOST_MPS = 48
PRESETS: Mapping[str, Mapping[str, Any]] = {
    # several jobs take turns on a GPU; a pod asks for a share by its own name, and for one alone
    "batch": {"strategy": "time_slicing", "replicas": 4, "rename": True, "fail_requests_greater_than_one": True},
    # several servers compute at once, each with its part of memory and threads
    "serving": {"strategy": "mps", "replicas": 4},
}
_KEYS = ("name", "hosts", "nodes", "preset", "strategy", "replicas", "rename", "fail_requests_greater_than_one",
         "mig_profile", "mig_strategy")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?\Z")
_PROFILE = re.compile(r"[1-9]g\.[0-9]{1,4}gb(\+me|\+gfx|\+me\.all|-me)?\Z")
_LABEL = re.compile(r"([a-z0-9A-Z.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z")


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that share their GPUs in one way. ``mig`` is a profile, ``balanced``, or counts by profile."""

    name: str
    strategy: str
    hosts: tuple[str, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    replicas: int | None = None
    rename: bool = False
    fail_requests_greater_than_one: bool = False
    mig_profile: str | Mapping[str, int] | None = None
    mig_strategy: str = "auto"

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the profiles that are named."""
        if isinstance(self.mig_profile, Mapping):
            return tuple(self.mig_profile)
        return () if self.mig_profile in (None, BALANCED) else (str(self.mig_profile),)

    @property
    def needs_mixed(self) -> bool:
        """Say whether pods can ask for its parts by profile alone."""
        return self.strategy == "mig" and (self.mig_strategy == "mixed" or len(self.profiles) != 1)

    @property
    def configured(self) -> bool:
        """Say whether the device plugin needs a configuration for it."""
        return self.replicas is not None

    @property
    def key(self) -> str:
        """Return the name of its configuration or layout: it never means two things, so no node changes unasked."""
        said = json.dumps([self.strategy, self.replicas, self.rename, self.fail_requests_greater_than_one,
                           self.as_dict()["mig_profile"]], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(said.encode()).hexdigest()[:8]}"

    def takes(self, host: str, inventory: tuple[str, ...], labels: Mapping[str, str]) -> bool:
        """Say whether a host, with its inventory groups and its node's labels, belongs to it."""
        named = not self.hosts or any(one in inventory or fnmatch.fnmatchcase(host, one) for one in self.hosts)
        return named and all(labels.get(key) == value for key, value in self.nodes.items())

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**found, "hosts": list(self.hosts), "nodes": dict(self.nodes),
                "mig_profile": dict(self.mig_profile) if isinstance(self.mig_profile, Mapping) else self.mig_profile}


def read(given: object) -> tuple[Group, ...]:
    """Return the groups of a value that :func:`checked` returned."""
    return tuple(Group(**{**one, "hosts": tuple(one["hosts"])}) for one in given) if isinstance(given, list) else ()


def checked(name: str, value: Any) -> list[dict[str, Any]]:
    """Return the groups as plain data, presets filled in; raise Fault for what cannot be meant or excludes itself."""
    if not isinstance(value, (list, tuple)):
        raise Fault(name, value, "a list of groups, each with name and strategy (or preset)")
    found = [_group(f"{name}[{index}]", one) for index, one in enumerate(value)]
    for index, one in enumerate(found):
        if one.name in [other.name for other in found[:index]]:
            raise Fault(f"{name}[{index}].name", one.name, "a name that no other group has")
    return [one.as_dict() for one in found]


def _group(where: str, given: Any) -> Group:
    if not isinstance(given, Mapping):
        raise Fault(where, given, "a mapping with name and strategy (or preset)")
    for key in given:
        if key not in _KEYS:
            raise Fault(f"{where}.{key}", given[key], f"one of the keys {', '.join(_KEYS)}")
    name = given.get("name")
    if not isinstance(name, str) or not _NAME.match(name) or name == WHOLE:
        raise Fault(f"{where}.name", name, f"lower case letters, digits and -, at most 48, and not {WHOLE}")
    preset = given.get("preset")
    if preset is not None and preset not in PRESETS:
        raise Fault(f"{where}.preset", preset, f"one of {', '.join(PRESETS)}")
    if preset is not None and given.get("strategy") is not None:
        raise Fault(f"{where}.strategy", given["strategy"], f"preset or strategy; {preset} is "
                                                            f"{PRESETS[preset]['strategy']}")
    wanted = {**PRESETS.get(str(preset), {}), **{key: one for key, one in given.items() if one is not None}}
    strategy = wanted.get("strategy")
    if strategy not in STRATEGIES:
        raise Fault(f"{where}.strategy", strategy, f"one of {', '.join(STRATEGIES)}, or a preset "
                                                   f"({', '.join(PRESETS)})")
    return Group(
        name=str(name), strategy=str(strategy), hosts=_hosts(f"{where}.hosts", wanted.get("hosts")),
        nodes=_labels(f"{where}.nodes", wanted.get("nodes")), replicas=_replicas(where, strategy, wanted),
        rename=_flag(where, "rename", strategy, wanted),
        fail_requests_greater_than_one=_flag(where, "fail_requests_greater_than_one", strategy, wanted),
        mig_profile=_profile(where, strategy, wanted), mig_strategy=_mig_strategy(where, strategy, wanted),
    )


def _hosts(where: str, given: Any) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str) else given or []
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, str) and one for one in listed):
        raise Fault(where, given, "a list of inventory groups or patterns of host names, such as gpu-a*")
    return tuple(str(one) for one in listed)


def _labels(where: str, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise Fault(where, given, "a mapping of node labels, such as {pool: inference}")
    found = {}
    for key, value in given.items():
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        if not isinstance(key, str) or not _LABEL.match(key) or isinstance(value, (Mapping, list, tuple)) or (
                not _VALUE.match(text)):
            raise Fault(f"{where}.{key}", value, "a node label and its value as text")
        found[str(key)] = text
    return found


def _replicas(where: str, strategy: str, wanted: Mapping[str, Any]) -> int | None:
    given = wanted.get("replicas")
    if given is None and strategy in ("none", "mig"):
        return None
    if strategy == "none":
        raise Fault(f"{where}.replicas", given, "nothing: with strategy none a GPU goes to one pod alone")
    if strategy == "mig" and wanted.get("mig_profile") == BALANCED:
        raise Fault(f"{where}.replicas", given, "replicas of profiles that are named, not of balanced")
    if isinstance(given, bool) or not isinstance(given, int) or given < 2:
        raise Fault(f"{where}.replicas", given, "a whole number from 2 on: how many pods share a GPU")
    if strategy == "mps" and given > MOST_MPS:
        raise Fault(f"{where}.replicas", given, f"at most {MOST_MPS} (16 below compute capability 7.5): what an MPS "
                                                "server takes")
    return int(given)


def _flag(where: str, key: str, strategy: str, wanted: Mapping[str, Any]) -> bool:
    given = wanted.get(key)
    if given is None:
        return False
    if not isinstance(given, bool):
        raise Fault(f"{where}.{key}", given, "true or false")
    if given and (wanted.get("replicas") is None or (strategy == "mps" and key != "rename")):
        why = "MPS refuses more than one share anyway" if strategy == "mps" else "it is about shares (replicas)"
        raise Fault(f"{where}.{key}", given, f"nothing here: {why}")
    return bool(given)


def _profile(where: str, strategy: str, wanted: Mapping[str, Any]) -> str | dict[str, int] | None:
    given = wanted.get("mig_profile")
    if strategy != "mig":
        if given is not None:
            what = "MPS works on whole GPUs alone, not on MIG devices" if strategy == "mps" else (
                f"{strategy} leaves GPUs whole; strategy mig takes replicas, too")
            raise Fault(f"{where}.mig_profile", given, f"nothing: {what}")
        return None
    if given == BALANCED or (isinstance(given, str) and _PROFILE.match(given)):
        return str(given)
    if isinstance(given, Mapping) and given and all(
        isinstance(key, str) and _PROFILE.match(key) and isinstance(count, int) and not isinstance(count, bool)
        and 1 <= count <= 7 for key, count in given.items()
    ):
        return {str(key): int(count) for key, count in given.items()}
    raise Fault(f"{where}.mig_profile", given, f"a profile such as 1g.10gb, {BALANCED}, or how many of each a GPU "
                                               "gets, such as {1g.10gb: 2, 2g.20gb: 1}")


def _mig_strategy(where: str, strategy: str, wanted: Mapping[str, Any]) -> str:
    given = wanted.get("mig_strategy", "auto")
    if strategy != "mig" and given != "auto":
        raise Fault(f"{where}.mig_strategy", given, "nothing: it goes with strategy mig")
    if given not in ("auto", "single", "mixed"):
        raise Fault(f"{where}.mig_strategy", given, "auto, single or mixed")
    profile = wanted.get("mig_profile")
    if given == "single" and (profile == BALANCED or (isinstance(profile, Mapping) and len(profile) > 1)):
        raise Fault(f"{where}.mig_strategy", given, "mixed: single takes one profile for all GPUs of a node")
    return str(given)
