# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of a CRD as a JSON schema that refuses what an API server drops; what has a default is not required."""

from __future__ import annotations

from typing import Any

_KEPT = ("type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "required")


def strict(schema: dict[str, Any], top: bool = False) -> dict[str, Any]:
    """Return it with unknown fields refused; ``top`` is the object itself, whose metadata is the server's business."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    if schema.get("nullable"):
        made["type"] = [made["type"], "null"]
    if "properties" in schema:
        given = [name for name, inner in schema["properties"].items() if "default" in inner]
        made["required"] = [name for name in schema.get("required", ()) if name not in given]
        made["properties"] = {name: strict(inner) for name, inner in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        made["additionalProperties"] = strict(more)
    if "items" in schema:
        made["items"] = strict(schema["items"])
    if schema.get("allOf"):
        made["allOf"] = [strict(one) for one in schema["allOf"]]
    if top:
        made["properties"]["metadata"] = {"type": "object"}
    return made


def sent(given: Any) -> Any:
    """Return an object as a server looks at it: what is null counts as left out."""
    if isinstance(given, dict):
        return {key: sent(inner) for key, inner in given.items() if inner is not None}
    return [sent(one) for one in given] if isinstance(given, list) else given
