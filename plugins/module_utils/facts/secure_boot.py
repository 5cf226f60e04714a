# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot, and the names of the machine owner's keys.

Source: UEFI 2.10 section 32.4.1 (EFI_SIGNATURE_LIST); https://docs.kernel.org (efi mok-variables).
"""

from __future__ import annotations

import struct

from .context import Context
from .tree import Tree

_EFI = "/sys/firmware/efi"
_SECURE_BOOT = f"{_EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_MOK_PLAIN = f"{_EFI}/mok-variables/MokListRT"
_MOK_VARIABLE = f"{_EFI}/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
_X509 = bytes.fromhex("a159c0a5e494a74a87b5ab155c2bf072")
_COMMON_NAME = bytes.fromhex("0603550403")


def read(ctx: Context) -> None:
    tree = ctx.tree
    if not tree.isdir("/sys/firmware"):
        ctx.cannot("secure_boot", "/sys/firmware is not there")
        return
    if not tree.isdir(_EFI):
        ctx.set("secure_boot", {"enabled": False, "mok": []})
        return
    with ctx.attempt("secure_boot.enabled"):
        if not tree.names(f"{_EFI}/efivars"):
            ctx.cannot("secure_boot.enabled", f"{_EFI}/efivars is not mounted")
        else:
            # the first four bytes are the variable's attributes; firmware without the variable cannot do it
            try:
                ctx.set("secure_boot.enabled", tree.read_bytes(_SECURE_BOOT, 16)[4:5] == b"\x01")
            except FileNotFoundError:
                ctx.set("secure_boot.enabled", False)
    with ctx.attempt("secure_boot.mok"):
        ctx.set("secure_boot.mok", mok(tree))


def mok(tree: Tree) -> list[str]:
    """Common names of the enrolled keys. Raises OSError, or ValueError for a list that makes no sense."""
    try:
        return names(tree.read_bytes(_MOK_PLAIN))
    except (FileNotFoundError, NotADirectoryError):
        pass
    try:
        return names(tree.read_bytes(_MOK_VARIABLE)[4:])
    except (FileNotFoundError, NotADirectoryError):
        return []


def names(data: bytes) -> list[str]:
    """The common names of the certificates in a sequence of EFI_SIGNATURE_LISTs; hashes are passed over."""
    found: list[str] = []
    while len(data) >= 28:
        kind = data[:16]
        size, header, entry = struct.unpack_from("<III", data, 16)
        if size < 28 or size > len(data) or entry < 17:
            raise ValueError("the list of machine owner keys is damaged")
        body, data = data[28 + header : size], data[size:]
        if kind != _X509:
            continue
        for start in range(0, len(body) - entry + 1, entry):
            name = common_name(body[start + 16 : start + entry])
            if name and name not in found:
                found.append(name)
    return found


def common_name(certificate: bytes) -> str | None:
    """The subject's common name of a DER certificate: the issuer's comes first, so the last one counts."""
    at = certificate.rfind(_COMMON_NAME)
    if at < 0 or at + 7 > len(certificate):
        return None
    start = at + len(_COMMON_NAME)
    length = certificate[start + 1]
    if length >= 0x80:
        return None
    raw = certificate[start + 2 : start + 2 + length]
    return raw.decode("utf-16-be" if certificate[start] == 0x1E else "utf-8", "replace")
