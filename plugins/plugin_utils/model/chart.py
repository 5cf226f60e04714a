# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helm values as nested mappings of unknown quality: dotted paths, merging, environment lists."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal


class _Absent(enum.Enum):
    ABSENT = "absent"

    def __bool__(self) -> Literal[False]:
        return False


ABSENT: Final = _Absent.ABSENT


def at(values: object, path: str) -> Any:
    """Return what stands at a dotted path, :data:`ABSENT` where nothing stands."""
    here: Any = values
    for key in path.split("."):
        if not isinstance(here, Mapping) or key not in here:
            return ABSENT
        here = here[key]
    return here


def flag(values: object, path: str, default: bool | None = None) -> bool | None:
    """Return a boolean at a path, the default where none stands."""
    value = at(values, path)
    return value if isinstance(value, bool) else default


def text(values: object, path: str) -> str | None:
    """Return a text at a path, or None; a whole number counts, since YAML makes one of an unquoted branch."""
    value = at(values, path)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def put(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a dotted path; what stands in the way and is no mapping stays."""
    keys = path.split(".")
    here = values
    for key in keys[:-1]:
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        here = inner
    here[keys[-1]] = value


def put_if_absent(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a path where nobody set one."""
    if at(values, path) is ABSENT:
        put(values, path, value)


def drop(values: dict[str, Any], path: str) -> None:
    """Remove what stands at a path."""
    parent, _dot, key = path.rpartition(".")
    here = at(values, parent) if parent else values
    if isinstance(here, dict):
        here.pop(key, None)


def copy(value: Any, depth: int = 0) -> Any:
    """Return plain data as a new tree with text keys; what is deeper than 32 levels is left out."""
    if depth > 32:
        return None
    if isinstance(value, Mapping):
        return {str(key): copy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [copy(inner, depth + 1) for inner in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def paths(values: object, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield every dotted path of a tree with what stands there, parents before children."""
    if not isinstance(values, Mapping) or depth > 32:
        return
    for key, value in values.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        yield path, value
        yield from paths(value, path, depth + 1)


def env(values: object, section: str) -> dict[str, Any]:
    """Return the environment list of a component as a mapping of name and value, the last one of a name winning."""
    found = {}
    listed = at(values, f"{section}.env")
    for entry in listed if isinstance(listed, (list, tuple)) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            found[entry["name"]] = entry.get("value")
    return found


def as_env(value: object) -> str | None:
    """Return a scalar as the text that an environment variable takes, None for lists and mappings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else None


def spec_schema(crd: object) -> Mapping[str, Any] | None:
    """Return the schema of the spec in the version of a CRD that is stored, None where it has none."""
    versions = at(crd, "spec.versions")
    for version in versions if isinstance(versions, (list, tuple)) else ():
        spec = at(version, "schema.openAPIV3Schema.properties.spec")
        if isinstance(spec, Mapping) and flag(version, "storage", True):
            return spec
    return None


def within(sent: object, kept: object) -> bool:
    """Say whether what was sent is there; a server may have added keys, and left out what is empty."""
    if isinstance(sent, Mapping) and isinstance(kept, Mapping):
        return all(within(value, kept.get(key, ABSENT)) for key, value in sent.items())
    if isinstance(sent, (list, tuple)) and isinstance(kept, (list, tuple)):
        return len(sent) == len(kept) and all(map(within, sent, kept))
    return sent == kept or (kept is ABSENT and sent in (None, "", [], {}))


def differing(before: object, after: object, prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths at which two trees differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({str(key) for key in (*before, *after)}):
            path = f"{prefix}.{key}" if prefix else key
            yield from differing(before.get(key, ABSENT), after.get(key, ABSENT), path)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield prefix
