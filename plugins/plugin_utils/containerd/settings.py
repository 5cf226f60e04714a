# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of containerd that a person may ask for beside the nvidia runtime, under the names of each version."""
from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .diff import same
from .generation import CRI_NAMES, IMAGES_V3, RUNTIME_TYPE, Generation, runtime_plugin
from .merge import table_at
from .toml_text import Path
from .want import Refusal

_NRI = "io.containerd.nri.v1.nri"


@dataclass(frozen=True)
class Settings:
    """What is asked for; None keeps what is there."""

    sandbox_image: str | None = None
    registry_config_path: str | None = None
    systemd_cgroup: bool | None = None
    nri: bool | None = None
    cri: bool | None = None  # True: take the CRI plugin out of disabled_plugins, where Docker's package puts it

    def __bool__(self) -> bool:
        return any(item is not None for item in (self.sandbox_image, self.registry_config_path, self.systemd_cgroup,
                                                 self.nri, self.cri))


NONE = Settings()
EVERY = Settings("", "", False, False, False)


def missing(effective: Mapping[str, Any], version: int, gen: Generation, wish: Settings) -> list[tuple[Path, Any]]:
    """(path, value) of what is asked for and not in force. Raises Refusal where it cannot be had."""
    sets: list[tuple[Path, Any]] = []
    for path, value in (*_images(version, wish), *_nri(gen, wish)):
        if not same(_at(effective, path), value):
            sets.append((path, value))
    if wish.registry_config_path is not None:
        _no_mirrors(table_at(effective, (*_registry(version),)))
    if wish.systemd_cgroup is not None:
        sets += _cgroup(effective, ("plugins", runtime_plugin(version), "containerd"), wish.systemd_cgroup)
    return sets


def applied(effective: Mapping[str, Any], sets: list[tuple[Path, Any]]) -> dict[str, Any]:
    """What is in force once these settings are made; the argument stays as it is."""
    document = copy.deepcopy(dict(effective))
    for path, value in sets:
        table: Any = document
        for name in path[:-1]:
            if not isinstance(table.setdefault(name, {}), dict):
                raise Refusal("unexpected_type", f"{name} is no table", "correct the file by hand")
            table = table[name]
        table[path[-1]] = copy.deepcopy(value)
    return document


def renamed(sets: tuple[tuple[Path, Any], ...], version: int) -> tuple[tuple[Path, Any], ...]:
    """The same settings under the names of an older version, for a file that is of that one."""
    return tuple((_older(path, runtime_plugin(version)) if version < 3 else path, value) for path, value in sets)


def _older(path: Path, plugin: str) -> Path:
    if path[:2] == ("plugins", IMAGES_V3):
        inner = ("sandbox_image",) if path[2:] == ("pinned_images", "sandbox") else path[2:]
        return ("plugins", plugin, *inner)
    return ("plugins", plugin, *path[2:]) if path[1:2] and path[1] in CRI_NAMES else path


def paths(wish: Settings, runtimes: Mapping[str, Any]) -> Iterator[Path]:
    """Every path that these settings may have in a version 2, 3 or 4 document."""
    for version in (2, 3):
        yield from (path for path, _value in _images(version, wish))
        if wish.systemd_cgroup is not None:
            for name in {"runc", *runtimes}:
                yield ("plugins", runtime_plugin(version), "containerd", "runtimes", name, "options", "SystemdCgroup")
    if wish.nri is not None:
        yield ("plugins", _NRI, "disable")
    if wish.cri is not None:
        yield ("disabled_plugins",)


def _registry(version: int) -> Path:
    return ("plugins", IMAGES_V3 if version > 2 else runtime_plugin(version), "registry")


def _images(version: int, wish: Settings) -> Iterator[tuple[Path, Any]]:
    if wish.sandbox_image is not None:
        if version > 2:
            yield ("plugins", IMAGES_V3, "pinned_images", "sandbox"), wish.sandbox_image
        else:
            yield ("plugins", runtime_plugin(version), "sandbox_image"), wish.sandbox_image
    if wish.registry_config_path is not None:
        yield (*_registry(version), "config_path"), wish.registry_config_path


def _nri(gen: Generation, wish: Settings) -> Iterator[tuple[Path, Any]]:
    """NRI is on by itself from 2.0 on; 1.7 has it and switches it off; 1.6 has none."""
    if wish.nri is None:
        return
    if (gen.major, gen.minor) < (1, 7):
        raise Refusal("no_nri", f"containerd {gen.name} has no NRI", "use containerd 1.7 or later, or another "
                      "gpu_container_mode")
    if not gen.deep_merge:
        yield ("plugins", _NRI, "disable"), not wish.nri


def _no_mirrors(registry: Mapping[str, Any]) -> None:
    """Containerd does not load CRI with both ``config_path`` and the older tables."""
    configs = registry.get("configs")
    with_tls = isinstance(configs, Mapping) and any(isinstance(one, Mapping) and one.get("tls") for one in
                                                    configs.values())
    if registry.get("mirrors") or with_tls:
        raise Refusal("registry_mirrors", "registry.mirrors or registry.configs.*.tls is set, and containerd does not "
                      "load its CRI plugin with these and config_path together",
                      "bring them to hosts.toml files and take them out, or leave gpu_containerd_registry_config_path "
                      "empty")


def _cgroup(effective: Mapping[str, Any], base: Path, value: bool) -> Iterator[tuple[Path, Any]]:
    """``SystemdCgroup`` of runc and of the default runtime, where that is a runc too; nvidia's is copied from there."""
    containerd = table_at(effective, base)
    runtimes = table_at(containerd, ("runtimes",))
    default = containerd.get("default_runtime_name")
    for name in dict.fromkeys(("runc", default if isinstance(default, str) and default else "runc")):
        there = runtimes.get(name)
        path: Path = (*base, "runtimes", name)
        if not isinstance(there, Mapping):
            if name == "runc":
                yield path, {"runtime_type": RUNTIME_TYPE, "options": {"SystemdCgroup": value}}
            continue
        if there.get("runtime_type", RUNTIME_TYPE) != RUNTIME_TYPE:
            continue
        options = table_at(there, ("options",))
        if same(options.get("SystemdCgroup"), value) or (not value and "SystemdCgroup" not in options):
            continue
        if "runtime_type" not in there:
            yield (*path, "runtime_type"), RUNTIME_TYPE
        if options:
            yield (*path, "options", "SystemdCgroup"), value
        else:
            yield (*path, "options"), {"SystemdCgroup": value}


def _at(document: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(document, Mapping) or name not in document:
            return None
        document = document[name]
    return document
