# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenPGP public keys: their full fingerprints, without gpg.

A repository key is trusted by its fingerprint, and a host may lack gpg. A version 4 fingerprint is the SHA-1 of the key
packet (RFC 4880, section 12.2), a version 6 one its SHA-256 (RFC 9580, section 5.5.4). Only primary keys count:
a subkey is bound to one.
"""
from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator

from ..errors import HostError

_ARMOR = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\s*?\n(?P<body>.*?)-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL)
_PUBLIC_KEY = 6


class KeyFault(HostError):
    """What should be a public key is none."""


def normal(fingerprint: str) -> str:
    """A fingerprint in capitals without blanks. Raises KeyFault if it is not a full one (40 or 64 hex digits)."""
    text = re.sub(r"[\s:]", "", fingerprint).upper()
    text = text[2:] if text.startswith("0X") else text
    if not re.fullmatch(r"[0-9A-F]{40}|[0-9A-F]{64}", text):
        raise KeyFault(f"{fingerprint!r} is no full fingerprint: it needs 40 hexadecimal digits, 64 for version 6 keys")
    return text


def binary(content: bytes) -> bytes:
    """Key packets, out of their armor if they have one. Raises KeyFault."""
    blocks = list(_ARMOR.finditer(content))
    if not blocks:
        if content[:1] and content[0] & 0x80:
            return content
        start = content[:60].decode("utf-8", "replace")
        raise KeyFault(f"this is no OpenPGP public key; it begins with {start!r}")
    return b"".join(_dearmor(block["body"]) for block in blocks)


def _dearmor(body: bytes) -> bytes:
    lines = body.replace(b"\r", b"").split(b"\n")
    while lines and (b":" in lines[0] or not lines[0].strip()):  # headers, up to the empty line
        lines.pop(0)
    data = b"".join(line.strip() for line in lines if not line.startswith(b"="))
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise KeyFault(f"the armor of the key is damaged: {error}") from error


def fingerprints(content: bytes) -> list[str]:
    """The fingerprints of all primary keys, in order. Raises KeyFault if there is none or the packets are damaged."""
    found = [_fingerprint(body) for tag, body, _raw in _packets(binary(content)) if tag == _PUBLIC_KEY]
    if not found:
        raise KeyFault("there is no public key in it")
    return found


def readable(content: bytes) -> list[str]:
    """As :func:`fingerprints`, of armored keys one after the other; those that cannot be read are left out."""
    found = []
    for block in _ARMOR.finditer(content):
        with contextlib.suppress(KeyFault):
            found += fingerprints(block[0])
    return found


def _fingerprint(body: bytes) -> str:
    if body[:1] == b"\x04":
        return hashlib.new("sha1", b"\x99" + len(body).to_bytes(2, "big") + body,
                           usedforsecurity=False).hexdigest().upper()
    if body[:1] == b"\x06":
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyFault(f"a key of version {body[0] if body else '?'} is not accepted; version 4 and 6 are")


def _packets(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(tag, body, the packet as it stands) of each packet."""
    at = 0
    while at < len(data):
        start = at
        head = data[at]
        at += 1
        if not head & 0x80:
            raise KeyFault("the key is damaged: no packet begins where one should")
        if head & 0x40:
            tag = head & 0x3F
            length, at = _new_length(data, at)
        else:
            tag = (head >> 2) & 0x0F
            size = {0: 1, 1: 2, 2: 4}.get(head & 0x03)
            if size is None:
                raise KeyFault("the key is damaged: a packet without length")
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            raise KeyFault("the key is damaged: it ends within a packet")
        yield tag, data[at : at + length], data[start : at + length]
        at += length


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at] if at < len(data) else 255
    if first < 192:
        return first, at + 1
    if first < 224:
        return ((first - 192) << 8) + (data[at + 1] if at + 1 < len(data) else 0) + 192, at + 2
    if first == 255:
        return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
    raise KeyFault("the key is damaged: a packet in parts")


def without(content: bytes, retired: Iterable[str]) -> bytes:
    """A keyring without certain keys, as packets. What is signed to a key goes with it. Raises KeyFault."""
    gone = {normal(one) for one in retired}
    kept, drop = b"", False
    for tag, body, raw in _packets(binary(content)):
        if tag == _PUBLIC_KEY:
            drop = _fingerprint(body) in gone
        if not drop:
            kept += raw
    return kept


def armored(content: bytes) -> bytes:
    """Key packets as text."""
    data = base64.b64encode(content)
    lines = [data[at : at + 64] for at in range(0, len(data), 64)]
    check = b"=" + base64.b64encode(_crc24(content).to_bytes(3, "big"))
    return b"\n".join([b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"", *lines, check,
                       b"-----END PGP PUBLIC KEY BLOCK-----", b""])


def _crc24(data: bytes) -> int:
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _bit in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    return crc & 0xFFFFFF


def keyring(content: bytes, path: str) -> bytes:
    """A key in the form that apt expects by the name of the file: text in ``.asc``, packets in ``.gpg``."""
    if not path.endswith(".asc"):
        return binary(content)
    return content if _ARMOR.search(content) else armored(content)


def verify(content: bytes, fingerprint: str, what: str) -> None:
    """See that a file holds the key of that fingerprint and no other: each key in a keyring is trusted.

    Raises KeyFault that names what was expected and what was found.
    """
    expected = normal(fingerprint)
    found = fingerprints(content)
    if set(found) != {expected}:
        raise KeyFault(f"the key {what} has the fingerprint {', '.join(found)}, expected is {expected} and no other; "
                       "nothing was written. See whether the vendor changed its key, and then the fingerprint here")
