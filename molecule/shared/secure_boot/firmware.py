# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIMULATED: UEFI variables of Secure Boot in files, mokutil, and the person at the console (MokManager).

usage: firmware on [--no-validation] | off | restart [PASSWORD] | mokutil …

on and off switch Secure Boot; restart is a start of the machine: with the right password the person at the console
confirms what was asked for, without one the request is gone, as with shim. Called as mokutil, it is mokutil: --import
FILE asks for a password twice on standard input, --list-new, --list-enrolled and --test-key FILE answer.
FIRMWARE_ROOT is the root directory. Nothing of it is secure: the keys are real, the firmware is not.
"""
from __future__ import annotations

import hashlib
import os
import struct
import sys
from pathlib import Path

SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
X509 = bytes.fromhex("a159c0a5e494a74a87b5ab155c2bf072")
EFI = Path(os.environ.get("FIRMWARE_ROOT", "/")) / "sys/firmware/efi"
VARS = EFI / "efivars"


def signature_list(certificate: bytes) -> bytes:
    entry = bytes(16) + certificate
    return X509 + struct.pack("<III", 28 + len(entry), 0, len(entry)) + entry


def read(name: str) -> bytes:
    path = VARS / f"{name}-{SHIM}"
    return path.read_bytes()[4:] if path.exists() else b""


def write(name: str, data: bytes) -> None:
    path = VARS / f"{name}-{SHIM}"
    if data:
        path.write_bytes(b"\x07\0\0\0" + data)
    elif path.exists():
        path.unlink()


def power(words: list[str]) -> int:
    VARS.mkdir(parents=True, exist_ok=True)
    (VARS / f"SecureBoot-{GLOBAL}").write_bytes(b"\x06\0\0\0" + (b"\x01" if words[0] == "on" else b"\0"))
    write("MokSBStateRT", b"\x01" if "--no-validation" in words else b"")
    return 0


def restart(words: list[str]) -> int:
    new, auth = read("MokNew"), read("MokAuth")
    if new and words[1:] and hashlib.sha256(words[1].encode()).digest() == auth:
        (EFI / "mok-variables").mkdir(exist_ok=True)
        kept = EFI / "mok-variables/MokListRT"
        kept.write_bytes((kept.read_bytes() if kept.exists() else b"") + new)
        print("MokManager: enrolled")
    elif new:
        print("MokManager: nobody confirmed; the request is gone")
    write("MokNew", b"")
    write("MokAuth", b"")
    return 0


def mokutil(words: list[str]) -> int:
    enrolled = EFI / "mok-variables/MokListRT"
    known = enrolled.read_bytes() if enrolled.exists() else b""
    if words[:1] == ["--import"]:
        certificate = Path(words[1]).read_bytes()
        if certificate in known or certificate in read("MokNew"):
            print(f"SKIP: {words[1]} is already enrolled or in the enrollment request")
            return 0
        print("input password: ", end="", flush=True)
        first = sys.stdin.readline().rstrip("\n")
        print("\ninput password again: ", end="", flush=True)
        if not first or sys.stdin.readline().rstrip("\n") != first:
            print("\nPasswords don't match", file=sys.stderr)
            return 255
        if not os.access(VARS, os.W_OK):
            print("\nFailed to enroll new keys", file=sys.stderr)
            return 255
        write("MokNew", read("MokNew") + signature_list(certificate))
        write("MokAuth", hashlib.sha256(first.encode()).digest())
        return 0
    if words[:1] == ["--test-key"]:
        there = Path(words[1]).read_bytes() in known
        print(f"{words[1]} is {'already' if there else 'not'} enrolled")
        return int(there)
    if words[:1] == ["--list-new"]:
        print(f"{read('MokNew').count(X509)} keys wait")
        return 0
    if words[:1] == ["--list-enrolled"]:
        print(f"{known.count(X509)} keys")
        return 0
    print("SIMULATED mokutil: --import, --test-key, --list-new, --list-enrolled")
    return 0 if words[:1] in ([], ["--help"]) else 255


def main(program: str, words: list[str]) -> int:
    if program.endswith("mokutil") or words[:1] == ["mokutil"]:
        return mokutil(words[1:] if words[:1] == ["mokutil"] else words)
    actions = {"on": power, "off": power, "restart": restart}
    if words[:1] and words[0] in actions:
        return actions[words[0]](words)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[0], sys.argv[1:]))
