# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that say what real ones say and do nothing: an ELF file with a .modinfo for modinfo and depmod.

Stand-in headers carry this file as their compiler, so that the real DKMS builds with it: run as
``mkmodule RELEASE SOURCE-FOLDER``, it makes the modules that the folder's stand-in.json names.
"""
from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

# a signature of no use, its description (struct module_signature: PKCS#7, 32 bytes), and the mark
_SIGNED = bytes(32) + struct.pack(">BBBBB3xI", 0, 0, 2, 0, 0, 32) + b"~Module signature appended~\n"
_ALIGN = 8


def vermagic(release: str) -> str:
    """What a kernel of this release wants to read in a module."""
    return f"{release} SMP preempt mod_unload modversions "


def module(name: str, release: str, fields: Mapping[str, str], signed: bool = False) -> bytes:
    """The bytes of a module: its .modinfo, an empty .text, and the mark of a signature when it is signed."""
    info = {"name": name, **fields, "vermagic": vermagic(release)}
    modinfo = b"".join(f"{key}={value}".encode() + b"\0" for key, value in info.items())
    names = b"\0.text\0.modinfo\0.symtab\0.strtab\0.shstrtab\0"
    bodies = [(b".text", 1, 6, b"\x90" * 16), (b".modinfo", 1, 2, modinfo), (b".symtab", 2, 0, bytes(24)),
              (b".strtab", 3, 0, b"\0"), (b".shstrtab", 3, 0, names)]
    data, headers = bytearray(64), [bytes(64)]
    for title, kind, flags, body in bodies:
        data += bytes(-len(data) % _ALIGN)
        link, info_word, entry = (4, 1, 24) if kind == 2 else (0, 0, 0)
        headers.append(struct.pack("<IIQQQQIIQQ", names.index(title + b"\0"), kind, flags, 0, len(data), len(body),
                                   link, info_word, _ALIGN, entry))
        data += body
    data += bytes(-len(data) % _ALIGN)
    data[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 1, 62, 1, 0, 0, len(data), 0, 64,
                            0, 0, 64, len(headers), len(headers) - 1)
    return bytes(data) + b"".join(headers) + (_SIGNED if signed else b"")


def _numbers(release: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", release)[:2]]


def build(release: str, folder: Path) -> int:
    """Do what the compiler does: the modules of stand-in.json, or the errors of a driver too old for the kernel."""
    wanted = json.loads((folder / "stand-in.json").read_text())
    newest = wanted.get("newest_kernel")
    if newest and _numbers(release) > _numbers(newest):
        print(f"{folder}/nvidia/nv-dma.c:752:11: error: implicit declaration of function 'phys_to_dma'; "
              f"the driver knows kernels up to {newest}, this one is {release}", file=sys.stderr)
        return 2
    for name in wanted["modules"]:
        (folder / f"{name}.ko").write_bytes(
            module(name.replace("-", "_"), release, {"version": wanted["version"], "license": wanted["license"]}))
    return 0


if __name__ == "__main__":
    sys.exit(build(sys.argv[1], Path(sys.argv[2])))
