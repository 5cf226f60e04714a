# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads Secrets and ConfigMaps in Kubernetes' protobuf encoding: clients written in Go send built-in kinds so.

Field numbers: k8s.io/api/core/v1/generated.proto and k8s.io/apimachinery/pkg/{runtime,apis/meta/v1}/generated.proto.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

MAGIC = b"k8s\x00"


class Unread(Exception):
    """Not a message that is read here."""


def decode(raw: bytes) -> dict[str, Any]:
    """Return the object in a request's body. Raises Unread for kinds other than Secret, ConfigMap
    and DeleteOptions."""
    if not raw.startswith(MAGIC):
        raise Unread("no Kubernetes protobuf message")
    envelope = dict(_fields(raw[len(MAGIC):]))
    about = {number: value.decode() for number, value in _fields(envelope.get(1, b""))}
    version, kind, body = about.get(1, ""), about.get(2, ""), envelope.get(2, b"")
    if kind == "DeleteOptions":    # what goes with an object is not played
        return {"kind": kind}
    if (version, kind) not in (("v1", "Secret"), ("v1", "ConfigMap")):
        raise Unread(f"{version} {kind} in protobuf")
    found: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {}}
    for number, value in _fields(body):
        if number == 1:
            found["metadata"] = _metadata(value)
        elif number == 2:
            key, content = _entry(value)
            text = base64.b64encode(content).decode() if kind == "Secret" else content.decode()
            found.setdefault("data", {})[key] = text
        elif number == 3 and kind == "Secret":
            found["type"] = value.decode()
    return found


def _metadata(raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(raw):
        if number in (1, 2, 3, 6):
            name = {1: "name", 2: "generateName", 3: "namespace", 6: "resourceVersion"}[number]
            if value:
                found[name] = value.decode()
        elif number in (11, 12):
            key, content = _entry(value)
            found.setdefault("labels" if number == 11 else "annotations", {})[key] = content.decode()
    return found


def _entry(raw: bytes) -> tuple[str, bytes]:
    parts = dict(_fields(raw))
    return parts.get(1, b"").decode(), parts.get(2, b"")


def _fields(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a message; numbers are skipped."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        number, form = tag >> 3, tag & 7
        if form == 2:
            size, at = _varint(raw, at)
            yield number, raw[at:at + size]
            at += size
        elif form == 0:
            _value, at = _varint(raw, at)
        elif form in (1, 5):
            at += 8 if form == 1 else 4
        else:
            raise Unread(f"wire type {form}")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
