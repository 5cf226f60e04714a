# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot, the machine owner's keys, and the key that DKMS signs with.

Source: UEFI 2.10 section 32.4.1 (EFI_SIGNATURE_LIST); https://docs.kernel.org (efi mok-variables); shim's MokVars.txt;
dkms(8), prepare_signing (which key and certificate it takes).
"""

from __future__ import annotations

import re
import stat
import struct
from typing import Any

from .context import Context
from .tree import Tree

_EFI = "/sys/firmware/efi"
_SECURE_BOOT = f"{_EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_MOK_PLAIN = f"{_EFI}/mok-variables/MokListRT"
_SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
_MOK_VARIABLE = f"{_EFI}/efivars/MokListRT-{_SHIM}"
_REQUESTED = f"{_EFI}/efivars/MokNew-{_SHIM}"
_NOT_VALIDATED = f"{_EFI}/efivars/MokSBStateRT-{_SHIM}"
_LOCKDOWN = "/sys/kernel/security/lockdown"
# certificate and private key, as DKMS takes them where its configuration names none
_DKMS_KEY = ("/var/lib/dkms/mok.pub", "/var/lib/dkms/mok.key")
_UBUNTU_KEY = ("/var/lib/shim-signed/mok/MOK.der", "/var/lib/shim-signed/mok/MOK.priv")
_DKMS_SETTING = re.compile(r"^\s*(mok_certificate|mok_signing_key)=([\"']?)([^\"'$`\s]+)\2\s*(?:#.*)?$", re.M)
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
    with ctx.attempt("secure_boot.enforced"):
        if "enabled" in ctx.facts.get("secure_boot", {}):
            ctx.set("secure_boot.enforced", bool(ctx.facts["secure_boot"]["enabled"]) and validated(tree))
    with ctx.attempt("secure_boot.lockdown"):
        ctx.set("secure_boot.lockdown", lockdown(tree))
    with ctx.attempt("secure_boot.mok"):
        ctx.set("secure_boot.mok", names(enrolled(tree)))
    with ctx.attempt("secure_boot.requested"):
        ctx.set("secure_boot.requested", names(requested(tree)))
    with ctx.attempt("secure_boot.key"):
        ctx.set("secure_boot.key", signing_key(tree))


def validated(tree: Tree) -> bool:
    """Whether shim lets the kernel insist on signatures; ``mokutil --disable-validation`` makes it look away."""
    try:
        return tree.read_bytes(_NOT_VALIDATED, 16)[4:5] != b"\x01"
    except (FileNotFoundError, NotADirectoryError):
        return True


def lockdown(tree: Tree) -> str | None:
    """none, integrity or confidentiality: what the running kernel locks down. None where it cannot."""
    text = tree.text(_LOCKDOWN, 256)
    chosen = re.search(r"\[(\w+)\]", text or "")
    return chosen.group(1) if chosen else None


def enrolled(tree: Tree) -> list[bytes]:
    """The certificates that are enrolled. Raises OSError, or ValueError for a list that makes no sense."""
    try:
        return certificates(tree.read_bytes(_MOK_PLAIN))
    except (FileNotFoundError, NotADirectoryError):
        pass
    try:
        return certificates(tree.read_bytes(_MOK_VARIABLE)[4:])
    except (FileNotFoundError, NotADirectoryError):
        return []


def requested(tree: Tree) -> list[bytes]:
    """The certificates whose enrolment waits for the console. Raises as :func:`enrolled`."""
    try:
        return certificates(tree.read_bytes(_REQUESTED)[4:])
    except (FileNotFoundError, NotADirectoryError):
        return []


def key_paths(tree: Tree) -> tuple[str, str]:
    """Certificate and private key that DKMS signs with: its configuration's, else those of the distribution."""
    texts = [tree.text("/etc/dkms/framework.conf")]
    texts += [tree.text(path) for path in tree.glob("/etc/dkms/framework.conf.d", "*.conf")]
    given = {found.group(1): found.group(3) for text in texts for found in _DKMS_SETTING.finditer(text or "")}
    own = tree.text("/etc/os-release") or tree.text("/usr/lib/os-release") or ""
    certificate, private = _UBUNTU_KEY if re.search(r"^ID=\"?ubuntu\"?\s*$", own, re.M) else _DKMS_KEY
    return given.get("mok_certificate", certificate), given.get("mok_signing_key", private)


def signing_key(tree: Tree) -> dict[str, Any]:
    """``{certificate, private_key, name, mode, enrolled, requested}``; name is null where there is no certificate.

    A certificate whose private key is lost is neither enrolled nor asked for: nothing is signed with it any more.
    """
    certificate, private = key_paths(tree)
    try:
        data: bytes | None = tree.read_bytes(certificate, 65536)
    except (FileNotFoundError, NotADirectoryError):
        data = None
    try:
        mode: str | None = format(stat.S_IMODE(tree.stat(private).st_mode), "04o")
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    whole = data is not None and (mode is not None or private.startswith("pkcs11:"))
    return {
        "certificate": certificate,
        "private_key": private,
        "name": None if data is None else common_name(data),
        "mode": mode,
        "enrolled": whole and data in enrolled(tree),
        "requested": whole and data in requested(tree),
    }


def names(found: list[bytes]) -> list[str]:
    """The common names of certificates, each once."""
    return list(dict.fromkeys(name for one in found if (name := common_name(one))))


def certificates(data: bytes) -> list[bytes]:
    """The certificates in a sequence of EFI_SIGNATURE_LISTs; hashes are passed over."""
    found: list[bytes] = []
    while len(data) >= 28:
        kind = data[:16]
        size, header, entry = struct.unpack_from("<III", data, 16)
        if size < 28 or size > len(data) or entry < 17:
            raise ValueError("the list of machine owner keys is damaged")
        body, data = data[28 + header : size], data[size:]
        if kind != _X509:
            continue
        for start in range(0, len(body) - entry + 1, entry):
            found.append(body[start + 16 : start + entry])
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
