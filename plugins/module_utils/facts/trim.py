# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At most 32 KB a host: facts are sent, stored and planned for thousands of hosts.

What is left out is named in ``unknown``, so that no rule takes it for absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .context import Facts
from .names import KERNEL_OR_DRIVER

LIMIT = 32 * 1024
Step = Callable[[Facts], None]
_RESERVE = 256


def size(facts: Any) -> int:
    """Bytes as JSON."""
    return len(json.dumps(facts))


def trim(facts: Facts, limit: int = LIMIT) -> Facts:
    """Take out what matters least until the facts fit; changes them in place."""
    room = limit - _RESERVE
    for step in _STEPS:
        if size(facts) <= room:
            return facts
        step(facts)
    while size(facts) > room:
        parts = _parts(facts)
        if not parts:
            break
        path = max(parts, key=lambda key: parts[key])
        _drop(facts, path)
        _note(facts, path, "left out: the facts would be larger than 32 KB")
    unknown = facts.get("unknown") or {}
    while size(facts) > room and len(unknown) > 1:
        unknown.pop(next(reversed(unknown)))
    return facts


def _parts(facts: Facts) -> dict[str, int]:
    """Path of one or two keys → its size, of everything that can be left out."""
    parts: dict[str, int] = {}
    for key, value in facts.items():
        if key == "unknown" or not value or not isinstance(value, (dict, list)):
            continue
        if isinstance(value, dict):
            parts.update({f"{key}.{inner}": size(part) for inner, part in value.items()})
        else:
            parts[key] = size(value)
    return parts


def _drop(facts: Facts, path: str) -> None:
    section, _dot, key = path.partition(".")
    if key:
        del facts[section][key]
    else:
        del facts[section]


def _note(facts: Facts, path: str, why: str) -> None:
    facts.setdefault("unknown", {})[path] = why


def _packages(facts: Facts) -> dict[str, Any]:
    found = facts.get("packages")
    return found if isinstance(found, dict) else {}


def _newest_only(facts: Facts) -> None:
    packages = _packages(facts)
    available, origins = packages.get("available"), packages.get("origins")
    if not available:
        return
    for name, versions in available.items():
        available[name] = versions[:1]
        if origins and name in origins:
            origins[name] = {version: origins[name][version] for version in available[name] if version in origins[name]}
    _note(facts, "packages.available[]", "only the newest version of each package is given: 32 KB are the limit")


def _long_texts(limit: int) -> Step:
    def step(facts: Facts) -> None:
        config = ((facts.get("containers") or {}).get("containerd") or {}).get("config")
        if not isinstance(config, dict):
            return
        if len(config.get("text") or "") > limit:
            length = len(config.pop("text"))
            _note(facts, "containers.containerd.config.text", f"{length} characters, left out: 32 KB are the limit")
        drop_ins = config.get("drop_ins") or {}
        for path in [one for one, text in drop_ins.items() if len(text) > limit]:
            length = len(drop_ins.pop(path))
            where = f"containers.containerd.config.drop_ins[{path}]"
            _note(facts, where, f"{length} characters, left out: 32 KB are the limit")

    return step


def _few(path: str, most: int) -> Step:
    def step(facts: Facts) -> None:
        section, key = path.split(".")
        rows = (facts.get(section) or {}).get(key)
        if isinstance(rows, list) and len(rows) > most:
            _note(facts, f"{path}[]", f"{len(rows)} entries, only the first {most} are given: 32 KB are the limit")
            del rows[most:]

    return step


def _thin_out(drop: Callable[[str], bool], why: str, keys: tuple[str, ...] = ("available", "origins")) -> Step:
    """A step that leaves out the offers of some packages of branches that are not installed."""

    def step(facts: Facts) -> None:
        packages = _packages(facts)
        present = {match.group(1) for match in map(_BRANCH.search, packages.get("installed") or {}) if match}
        for key in keys:
            rows = packages.get(key) or {}
            gone = [name for name in rows if _other_branch(name, present) and drop(name)]
            if gone:
                packages[key] = {name: value for name, value in rows.items() if name not in set(gone)}
                _note(facts, f"packages.{key}[]", f"{why}: 32 KB are the limit")

    return step


def _other_branch(name: str, present: set[str]) -> bool:
    branch = _BRANCH.search(name)
    return branch is not None and branch.group(1) not in present


def _is_old(name: str) -> bool:
    branch = _BRANCH.search(name)
    return branch is not None and int(branch.group(1)) < _OLDEST_BRANCH


def _offers_of_kernel_and_driver(facts: Facts) -> None:
    packages = _packages(facts)
    for key in ("available", "origins"):
        rows = packages.get(key)
        if rows:
            packages[key] = {name: value for name, value in rows.items() if KERNEL_OR_DRIVER.match(name)}
            _note(facts, f"packages.{key}[]", "only kernel and driver packages are given: 32 KB are the limit")


def _installed_of_kernel_and_driver(facts: Facts) -> None:
    packages = _packages(facts)
    rows = packages.get("installed")
    if rows:
        kept = {name: value for name, value in rows.items() if KERNEL_OR_DRIVER.match(name)}
        if len(kept) < len(rows):
            packages["installed"] = kept
            _note(facts, "packages.installed[]", "only kernel and driver packages are given: 32 KB are the limit")


_BRANCH = re.compile(r"-(\d{3})(?=-|$)")
_OLDEST_BRANCH = 470
_DECIDES = re.compile(r"^(?:nvidia-(?:driver|open|dkms|fabricmanager)|cuda-drivers|linux-modules-nvidia)-\d{3}")
_PREBUILT_META = re.compile(r"^linux-modules-nvidia-\d{3}(?:-server)?(?:-open)?-(?!server|open)[a-z]")
_STEPS: tuple[Step, ...] = (
    _few("packages.pins", 10),
    _newest_only,
    _thin_out(lambda name: name.startswith("linux-modules-"), "not of prebuilt modules", ("origins",)),
    _thin_out(lambda name: not _DECIDES.match(name), "of branches that are not installed only the main packages"),
    _thin_out(_is_old, "nothing of old branches that are not installed"),
    _thin_out(lambda name: bool(_PREBUILT_META.match(name)), "no metas of prebuilt modules that are not installed"),
    _thin_out(lambda name: name.startswith("nvidia-dkms-"), "no DKMS packages of branches that are not installed"),
    _thin_out(lambda name: name.startswith("linux-modules-"), "prebuilt modules are left out", ("made_for",)),
    _few("boot.entries", 6),
    _few("driver.dkms", 20),
    _long_texts(12000),
    _offers_of_kernel_and_driver,
    _long_texts(4000),
    _installed_of_kernel_and_driver,
    _few("packages.held", 40),
    _long_texts(1000),
)
