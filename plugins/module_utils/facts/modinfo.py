# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kernel module file says of itself: modinfo, or a reader of our own where that is not installed.

Source: elf(5); scripts/mod/modpost.c (section .modinfo: NUL-separated KEY=VALUE); kernel/module/signing.c (the mark at
the end of a signed file).
"""

from __future__ import annotations

import lzma
import mmap
import re
import struct
import zlib

from .context import Context
from .secure_boot import common_name

_SIGNED = b"~Module signature appended~\n"
_LARGEST = 512 * 1024 * 1024
SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")
# the main module alone: Debian installs it under names of its own
NVIDIA = re.compile(r"^nvidia(?:-current|-current-open|-open|-tesla|-tesla-\d+|-legacy-\w+)?$")


def stem(name: str) -> str | None:
    """``nvidia-current`` of ``nvidia-current.ko.xz``; None for what is no module file."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return None


def inspect(ctx: Context, path: str) -> dict[str, str]:
    """The fields of a module file: version, license, vermagic, …; ``signed`` is ``yes`` or ``no``.

    Raises OSError when the file cannot be read, ValueError when it is no module or nothing here can unpack it.
    """
    real = ctx.tree.real(path)
    if path.endswith(".ko"):
        with open(real, "rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return fields(data)
    program = ctx.which("modinfo") if ctx.tree.is_host else None
    answer = ctx.run([program or "modinfo", real])
    if answer.ok:
        return _from_modinfo(answer.out)
    return fields(_unpacked(ctx, real, path))


def _from_modinfo(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, mark, value = line.partition(":")
        if mark and not key.startswith((" ", "\t")):
            found.setdefault(key, value.strip())
    if "vermagic" not in found:
        raise ValueError("modinfo does not print a vermagic")
    found["signed"] = "yes" if found.get("sig_id") or found.get("signer") else "no"
    return found


def of_data(name: str, data: bytes, timeout: float = 10.0) -> dict[str, str]:
    """The fields of the module file ``name``, of which only the bytes are at hand. Raises ValueError."""
    if name.endswith((".xz", ".gz")):
        return fields(_decompressed(data, name))
    if name.endswith(".zst"):
        from ..run import run_bytes

        answer = run_bytes(["zstd", "-dcq"], timeout=timeout, input=data, limit=_LARGEST)
        if answer.rc != 0 or not answer.out:
            raise ValueError(f"zstd cannot unpack {name}")
        return fields(answer.out)
    return fields(data)


def _decompressed(packed: bytes, path: str) -> bytes:
    try:
        return lzma.decompress(packed) if path.endswith(".xz") else zlib.decompress(packed, 47)
    except (lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _unpacked(ctx: Context, real: str, path: str) -> bytes:
    if path.endswith((".xz", ".gz")):
        with open(real, "rb") as handle:
            return _decompressed(handle.read(_LARGEST), path)
    answer = _zstd(ctx, real)
    if not answer:
        raise ValueError(f"neither modinfo nor zstd can unpack {path}")
    return answer


def _zstd(ctx: Context, real: str) -> bytes:
    from ..run import run_bytes

    answer = run_bytes(["zstd", "-dcq", real], timeout=min(ctx.command_timeout, ctx.left), limit=_LARGEST)
    return answer.out if answer.rc == 0 else b""


def fields(data: bytes | mmap.mmap) -> dict[str, str]:
    """The .modinfo section of an ELF file. Raises ValueError for anything else."""
    section = modinfo_section(data)
    found: dict[str, str] = {}
    for item in section.split(b"\0"):
        key, mark, value = item.partition(b"=")
        if mark:
            found.setdefault(key.decode("ascii", "replace"), value.decode("utf-8", "replace"))
    if "vermagic" not in found:
        raise ValueError("the file has no vermagic: it is no kernel module")
    found["signed"] = "yes" if data[-len(_SIGNED) :] == _SIGNED else "no"
    name = signer(data)
    if name:
        found["signer"] = name
    return found


def signer(data: bytes | mmap.mmap) -> str | None:
    """The common name of who signed the file, as modinfo(8) gives it; None without a signature that tells."""
    end = len(data) - len(_SIGNED)
    if data[end:] != _SIGNED or end < 12:
        return None
    (length,) = struct.unpack(">I", data[end - 4 : end])    # the last field of struct module_signature
    return common_name(bytes(data[max(0, end - 12 - length) : end - 12])) if length < 65536 else None


def modinfo_section(data: bytes | mmap.mmap) -> bytes:
    """The raw bytes of section .modinfo of a 64-bit ELF file. Raises ValueError for anything else."""
    found = section(data, b".modinfo")
    if found is None:
        raise ValueError("the file has no .modinfo section")
    return found


def section(data: bytes | mmap.mmap, wanted: bytes) -> bytes | None:
    """The raw bytes of a section of a 64-bit ELF file, None where it has none. Raises ValueError for anything else."""
    if len(data) < 64 or data[:4] != b"\x7fELF" or data[4] != 2:
        raise ValueError("not a 64-bit ELF file")
    order = "<" if data[5] == 1 else ">"
    try:
        offset = struct.unpack_from(f"{order}Q", data, 40)[0]
        size, count, names_at = struct.unpack_from(f"{order}HHH", data, 58)
        headers = [struct.unpack_from(f"{order}IIQQQQ", data, offset + index * size) for index in range(count)]
        names = headers[names_at][4]
        for name, _kind, _flags, _address, start, length in headers:
            if data[names + name : names + name + len(wanted) + 1] == wanted + b"\0":
                return bytes(data[start : start + length])
    except (struct.error, IndexError) as error:
        raise ValueError("the ELF file is damaged") from error
    return None
