# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server does with a custom object: drop what it does not know, fill in defaults, refuse the rest."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

_TYPES = {"object": Mapping, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
_META = ("apiVersion", "kind", "metadata")


class Invalid(Exception):
    """The object breaks its schema; the message is the one that the server would give."""


def admit(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object as a server keeps it. Raises Invalid."""
    kept = _prune(schema, given, top=True)
    _defaults(schema, kept)
    problems = list(_problems(schema, kept, ""))
    if problems:
        raise Invalid("; ".join(problems[:5]))
    return kept


def _prune(schema: Mapping[str, Any], value: Any, top: bool = False) -> Any:
    if isinstance(value, Mapping):
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return copy.deepcopy(dict(value))
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        kept = {}
        for key, inner in value.items():
            if top and key in _META:
                kept[key] = copy.deepcopy(inner)
            elif key in properties:
                kept[key] = _prune(properties[key], inner)
            elif isinstance(more, Mapping):
                kept[key] = _prune(more, inner)
            elif more is True:
                kept[key] = copy.deepcopy(inner)
        return kept
    if isinstance(value, list):
        return [_prune(schema.get("items") or {}, inner) for inner in value]
    return value


def _defaults(schema: Mapping[str, Any], value: Any) -> None:
    if isinstance(value, dict):
        for key, inner in (schema.get("properties") or {}).items():
            if key not in value and "default" in inner:
                value[key] = copy.deepcopy(inner["default"])
            if key in value:
                _defaults(inner, value[key])
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            for inner in value.values():
                _defaults(more, inner)
    elif isinstance(value, list):
        for inner in value:
            _defaults(schema.get("items") or {}, inner)


def _problems(schema: Mapping[str, Any], value: Any, path: str) -> Any:
    if value is None and schema.get("nullable"):
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            yield f"{path}: Invalid value: {value!r}: must be an integer or a string"
        return
    wanted = _TYPES.get(str(schema.get("type")))
    wrong = wanted is not None and (not isinstance(value, wanted)
                                    or (isinstance(value, bool) and schema["type"] in ("integer", "number")))
    if wrong:
        yield f"{path}: Invalid value: {value!r}: must be of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: Unsupported value: {value!r}: supported values: {schema['enum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{path}: Invalid value: {value!r}: should match {schema['pattern']!r}"
    if isinstance(value, Mapping):
        for key in schema.get("required") or ():
            if key not in value:
                yield f"{path}.{key}: Required value"
        for key, inner in value.items():
            known = (schema.get("properties") or {}).get(key) or schema.get("additionalProperties")
            if isinstance(known, Mapping) and not (path == "" and key in _META):
                yield from _problems(known, inner, f"{path}.{key}".lstrip("."))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _problems(schema.get("items") or {}, inner, f"{path}[{index}]")
