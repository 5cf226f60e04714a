# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in force: the main file and what it imports, merged as that line of containerd merges them.

Built-in defaults are left out. The result is written in the names of the main file's version. A configuration that
containerd would not load has fatal problems; for such a one the main file alone stands for what was meant.
"""
from __future__ import annotations

import copy
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tomllib

from .generation import CRI_V1, CRI_V2, IMAGES_V3, RUNTIME_V3, Generation, runtime_plugin

_REPLACED = ("proxy_plugins", "stream_processors", "timeouts")  # entry by entry, in every line
_IMAGE_KEYS = ("registry", "image_decryption", "max_concurrent_downloads", "image_pull_progress_timeout",
               "image_pull_with_sync_fs", "stats_collect_period")
_STREAM_KEYS = ("disable_tcp_service", "stream_server_address", "stream_server_port", "stream_idle_timeout",
                "enable_tls_streaming", "x509_key_pair_streaming")
_IMAGE_CONTAINERD_KEYS = ("snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers")
_V1_NAMES = {"cri": CRI_V2, "opt": "io.containerd.internal.v1.opt", "restart": "io.containerd.internal.v1.restart",
             "scheduler": "io.containerd.gc.v1.scheduler", "bolt": "io.containerd.metadata.v1.bolt",
             "cgroups": "io.containerd.monitor.v1.cgroups", "task": "io.containerd.runtime.v2.task",
             "linux": "io.containerd.runtime.v1.linux"}


@dataclass(frozen=True)
class Problem:
    """Something in the files that containerd stumbles over, or reads otherwise than the writer thought."""

    kind: str
    path: str
    text: str
    fatal: bool = True  # containerd does not start (or does not load CRI)


@dataclass(frozen=True)
class Loaded:
    """Files as containerd reads them."""

    order: tuple[str, ...]  # in the order of loading, the main file first
    documents: Mapping[str, dict[str, Any]]
    effective: dict[str, Any]
    version: int  # of the main file: 1 without a version line
    in_force_version: int  # what containerd takes all files for (2.0 to 2.2: the last one read)
    problems: tuple[Problem, ...] = field(default_factory=tuple)

    @property
    def fatal(self) -> tuple[Problem, ...]:
        """The problems with which containerd does not start."""
        return tuple(problem for problem in self.problems if problem.fatal)


def file_version(document: Mapping[str, Any]) -> int:
    """The ``version`` of a file; 0 if it has none, or none that is a number."""
    version = document.get("version", 0)
    return version if isinstance(version, int) and not isinstance(version, bool) else 0


def says_something(document: Mapping[str, Any]) -> bool:
    """Whether a document holds anything that a version line would decide the meaning of."""
    return any(says_something(item) if isinstance(item, Mapping) else item not in ([], "")
               for name, item in document.items() if name not in ("version", "imports"))


def glob_regex(pattern: str) -> re.Pattern[str]:
    """A pattern as Go's ``filepath.Glob`` takes it: ``*`` and ``?`` stay within one folder."""
    out, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "\\" and at < len(pattern):
            out += re.escape(pattern[at])
            at += 1
        elif char == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            inner = pattern[at:end].replace("\\", "\\\\")
            out += "[" + ("^" + inner[1:] if inner[0] in "^" else inner.replace("^", "\\^")) + "]"
            at = end + 1
        else:
            out += re.escape(char)
    try:
        return re.compile(out + r"\Z", re.DOTALL)
    except re.error:
        return re.compile(r"(?!)")


def resolve_import(importer: str, name: str) -> str:
    """The absolute path or pattern that an entry of ``imports`` means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), name))


def resolve_imports(importer: str, names: Iterable[Any], existing: Iterable[str]) -> list[tuple[str, bool]]:
    """(path, from a pattern) for entries of ``imports``; a pattern stands for its matches in sorted order."""
    known = sorted(existing)
    found: list[tuple[str, bool]] = []
    for name in names:
        if not isinstance(name, str):
            continue
        path = resolve_import(importer, name)
        if "*" in path:
            regex = glob_regex(path)
            found += [(item, True) for item in known if regex.match(item)]
        else:
            found.append((path, False))
    return found


def load(files: Mapping[str, str], main: str, gen: Generation,
         parsed: Mapping[str, dict[str, Any]] | None = None) -> Loaded:
    """Read ``files`` (path: text) from ``main`` on. Never raises on any content; no main file is an empty one.

    ``parsed`` are documents that stand for files, whether these exist or not.
    """
    parsed = parsed or {}
    existing = {**files, **parsed}
    problems: list[Problem] = []
    documents: dict[str, dict[str, Any]] = {}
    order: list[str] = []
    pending: list[tuple[str, str]] = [(main, "")]
    while pending:
        path, importer = pending.pop(0)
        if path in documents:
            continue
        if path not in existing:
            if importer:
                problems.append(Problem("missing_import", path, f"{importer} imports {path}, which does not exist"))
                continue
            documents[path] = {}
            continue
        try:
            document = parsed[path] if path in parsed else tomllib.loads(files[path])
        except (ValueError, RecursionError) as error:
            problems.append(Problem("invalid_toml", path, f"{path} is not valid TOML: {error}"))
            continue
        documents[path] = document
        order.append(path)
        problems += _type_problems(path, document)
        imports = document.get("imports", [])
        if isinstance(imports, list):
            pending += [(item, path) for item, _glob in resolve_imports(path, imports, existing)]
    main_document = documents.get(main, {})
    version = file_version(main_document) or _reference(main_document, documents, order, gen)
    problems += _version_problems(documents, order, main, gen)
    in_force = _version_in_force(documents, order, version, gen)
    effective: dict[str, Any] = {}
    for path in order:
        mine = file_version(documents[path]) or 1
        part = copy.deepcopy(documents[path])
        if gen.deep_merge and path != main and (gen.migrates_each or mine == 1) and mine < version:
            part = migrate(part, mine, version if gen.migrates_each else 2)
        merge(effective, part, gen)
    if in_force != version:
        effective["version"] = in_force
    if gen.deep_merge and not gen.migrates_each:
        _drop_unread_tables(effective, documents, order, main, in_force)
    problems += _plugin_problems(effective, version if gen.deep_merge else in_force, gen, main)
    return Loaded(tuple(order), documents, effective, version, in_force, tuple(problems))


def _type_problems(path: str, document: Mapping[str, Any]) -> list[Problem]:
    """What containerd cannot decode, of the settings that decide how everything else is read."""
    problems: list[Problem] = []
    version, imports = document.get("version", 0), document.get("imports", [])
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        problems.append(Problem("unexpected_type", path, f"version in {path} is {version!r}, which is no version; "
                                "containerd takes a whole number, without quotes"))
    if not isinstance(imports, list) or not all(isinstance(entry, str) for entry in imports):
        problems.append(Problem("unexpected_type", path, f"imports in {path} is no list of texts, so containerd does "
                                "not start"))
    return problems


def _version_problems(documents: Mapping[str, dict[str, Any]], order: list[str], main: str,
                      gen: Generation) -> list[Problem]:
    problems: list[Problem] = []
    main_version = file_version(documents.get(main, {}))
    reference = main_version
    for path in order:
        mine = file_version(documents[path])
        if mine > gen.max_version:
            problems.append(Problem(
                "version_too_high", path, f"{path} has version {mine}; containerd {gen.name} takes up to "
                f"{gen.max_version}" + ("" if gen.strict_version else " and ignores what it does not know")))
        elif gen.migrates_each and reference and mine > reference:
            problems.append(Problem(
                "drop_in_newer", path, f"{path} has version {mine}, {main} has version {reference}: containerd "
                f"{gen.name} does not start with a drop-in of a higher version"))
        reference = reference or mine
    if gen.deep_merge and not gen.migrates_each:
        mixed = {path: file_version(documents[path]) or gen.max_version for path in order}
        if len(set(mixed.values())) > 1:
            last = order[-1]
            detail = ", ".join(f"{path} {file_version(documents[path]) or 'none'}" for path in mixed)
            problems.append(Problem(
                "mixed_versions", next(p for p in order if mixed[p] != mixed[order[0]]),
                f"the files have different versions ({detail}); containerd {gen.name} reads all of them in that of "
                f"the last one ({last}) and loses the tables of the other version", False))
    elif not gen.deep_merge and says_something(documents.get(main, {})):
        others = [path for path in order if path != main and file_version(documents[path]) not in (0, main_version)]
        if others:
            mine = file_version(documents[others[0]])
            problems.append(Problem(
                "mixed_versions", others[0],
                f"{others[0]} has version {mine}, {main} has {main_version or 'no version line'}; containerd "
                f"{gen.name} reads both in the version of the last file", False))
    return problems


def _reference(main: Mapping[str, Any], documents: Mapping[str, dict[str, Any]], order: list[str],
               gen: Generation) -> int:
    """The version of a main file without one: 1, but in 2.3, if it names no plugin, the first that an import has."""
    if not gen.migrates_each or any(main.get(name) for name in ("plugins", "disabled_plugins", "required_plugins")):
        return 1
    return next((version for path in order if (version := file_version(documents[path])) > 0), 1)


def _version_in_force(documents: Mapping[str, dict[str, Any]], order: list[str], version: int, gen: Generation) -> int:
    if gen.migrates_each:
        return version
    in_force = version
    for path in order[1:]:
        mine = file_version(documents[path])
        if mine or gen.deep_merge:  # 2.0 to 2.2 bring a file without a version line up to 3 and forget its CRI part
            in_force = mine or gen.max_version
    return in_force


def _drop_unread_tables(effective: dict[str, Any], documents: Mapping[str, dict[str, Any]], order: list[str],
                        main: str, in_force: int) -> None:
    """2.0 to 2.2: the CRI tables of the version that is not in force, and of files without one, are not read."""
    plugins = effective.get("plugins")
    if not isinstance(plugins, dict):
        return
    plugins.pop(CRI_V1, None)
    if in_force == 2:
        for name in (RUNTIME_V3, IMAGES_V3):
            plugins.pop(name, None)
    elif any(file_version(documents[path]) < 3 for path in order):
        cri = plugins.get(CRI_V2)
        if isinstance(cri, dict):
            kept = {name: item for name, item in cri.items() if name in _STREAM_KEYS}
            if kept:
                plugins[CRI_V2] = kept
            else:
                del plugins[CRI_V2]


def _plugin_problems(effective: Mapping[str, Any], version: int, gen: Generation, main: str) -> list[Problem]:
    problems: list[Problem] = []
    plugins = effective.get("plugins")
    plugins = plugins if isinstance(plugins, dict) else {}
    disabled = _strings(effective.get("disabled_plugins"))
    needed = {1: {"cri", CRI_V2}, 2: {CRI_V2}}.get(version, {RUNTIME_V3, IMAGES_V3, CRI_V2}) | {"cri"}
    if gen.deep_merge:
        needed = needed | {RUNTIME_V3, IMAGES_V3, CRI_V2}
    off = sorted(set(disabled) & needed)
    if off:
        problems.append(Problem("cri_disabled", main, f"disabled_plugins in {main} names {', '.join(off)}: the CRI "
                                "plugin, which starts Kubernetes' containers, is switched off"))
    elif version >= 2:
        for name in (*disabled, *_strings(effective.get("required_plugins"))):
            if "." not in name or (not gen.deep_merge and name.count(".") < 3):
                problems.append(Problem("plugin_names", main, f"{main} has version {version} and names the plugin "
                                        f"{name!r}; containerd takes only full ids there and does not start"))
        short = [name for name in plugins if not gen.deep_merge and name.count(".") < 3]
        if short:
            problems.append(Problem("plugin_names", main, f"{main} has version {version} and a table for the plugin "
                                    f"{short[0]!r}; containerd takes only full ids there"))
    return problems


def _strings(items: Any) -> list[str]:
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []


def merge(into: dict[str, Any], part: Mapping[str, Any], gen: Generation) -> None:
    """Merge a file into what was read before it, in place."""
    for name, item in part.items():
        old = into.get(name)
        if name == "plugins" and isinstance(item, dict):
            if not isinstance(old, dict):
                into[name] = old = {}
            for plugin, table in item.items():
                if gen.deep_merge and isinstance(old.get(plugin), dict) and isinstance(table, dict):
                    deep(old[plugin], table)
                else:
                    old[plugin] = table
        elif name in _REPLACED and isinstance(item, dict):
            into[name] = {**old, **item} if isinstance(old, dict) else item
        else:
            _top_level(into, name, item, gen)


def _top_level(into: dict[str, Any], name: str, item: Any, gen: Generation) -> None:
    old = into.get(name)
    if isinstance(item, list) and (isinstance(old, list) or name not in into):
        joined: list[Any] = list(old or [])
        for entry in item:
            if not gen.deep_merge or entry not in joined:
                joined.append(entry)
        into[name] = joined
    elif name not in into:
        into[name] = item
    elif isinstance(item, dict) and isinstance(old, dict):
        for key, value in item.items():
            _top_level(old, key, value, gen)
    elif item or isinstance(item, dict):
        into[name] = item


def deep(into: dict[str, Any], part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            deep(into[key], value)
        else:
            into[key] = value


def migrate(document: dict[str, Any], version: int, target: int) -> dict[str, Any]:
    """A drop-in in the names of a higher version, as containerd brings it up to date in memory."""
    if "version" in document:
        document["version"] = target
    plugins = document.get("plugins")
    if not isinstance(plugins, dict):
        return document
    if version < 2 <= target:
        for old, new in _V1_NAMES.items():
            if old in plugins:
                plugins[new] = plugins.pop(old)
    if version < 3 <= target and isinstance(plugins.get(CRI_V2), dict):
        _split_cri(plugins)
    return document


def _split_cri(plugins: dict[str, Any]) -> None:
    """Version 2 to 3: the CRI table becomes three (``plugins/cri/{cri,runtime/plugin,images/plugin}.go``)."""
    cri: dict[str, Any] = plugins.pop(CRI_V2)
    inner = cri.get("containerd") if isinstance(cri.get("containerd"), dict) else {}
    runtime = {k: v for k, v in cri.items() if k not in (*_IMAGE_KEYS, *_STREAM_KEYS, "sandbox_image", "containerd")}
    cni = runtime.get("cni")
    if isinstance(cni, dict) and "bin_dir" in cni:
        runtime["cni"] = {k: v for k, v in cni.items() if k != "bin_dir"} | {"bin_dirs": [cni["bin_dir"]]}
    if isinstance(inner, dict) and "containerd" in cri:
        runtime["containerd"] = {k: v for k, v in inner.items() if k not in _IMAGE_CONTAINERD_KEYS}
    images: dict[str, Any] = {k: cri[k] for k in _IMAGE_KEYS if k in cri}
    if "sandbox_image" in cri:
        images["pinned_images"] = {"sandbox": cri["sandbox_image"]}
    if isinstance(inner, dict) and "runtimes" in inner:
        images |= {k: inner[k] for k in _IMAGE_CONTAINERD_KEYS if k in inner}
    streams = {k: cri[k] for k in _STREAM_KEYS if k in cri}
    for name, table in ((RUNTIME_V3, runtime), (IMAGES_V3, images), (CRI_V2, streams)):
        if table:
            old = plugins.get(name)
            if isinstance(old, dict):  # what stands there in the new names wins
                merged = copy.deepcopy(table)
                deep(merged, old)
                plugins[name] = merged
            else:
                plugins[name] = table


def cri(loaded: Loaded) -> dict[str, Any]:
    """The effective table of the plugin that holds the runtimes; empty if there is none."""
    return table_at(loaded.effective, ("plugins", runtime_plugin(loaded.version)))


def table_at(document: Any, path: Iterable[str]) -> dict[str, Any]:
    """The table at a path; empty if it is not there or no table."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, dict) else {}
