# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is inside an initial ramdisk, read as a stream: module names, modprobe's files, and nvidia's version.

An initrd is a row of cpio archives (newc), each plain or compressed, zero bytes between them.
Source: https://docs.kernel.org/driver-api/early-userspace/buffer-format.html. ``lsinitramfs`` does the same with half a
dozen processes and does not know dracut's images; this reader needs one, and none for gzip, xz and plain archives.
"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Protocol

from ..run import environment, kill_group
from . import modinfo
from .modinfo import stem
from .modprobe import Settings
from .modprobe import of as settings_of

_HEADER = 110
_MAGICS = (b"070701", b"070702")
_MODPROBE = re.compile(r"^(?:\./)?(?:usr/)?(?:etc|lib|run)/modprobe\.d/[^/]+\.conf$")
_PROGRAMS = {
    b"\x28\xb5\x2f\xfd": ["zstd", "-dcq"],
    b"\x02\x21\x4c\x18": ["lz4", "-dc"],
    b"\x04\x22\x4d\x18": ["lz4", "-dc"],
}
_CHUNK = 1024 * 1024
_CONF_LIMIT = 256 * 1024
_MODULE_LIMIT = 512 * 1024 * 1024


@dataclass
class Content:
    """Names of the kernel modules (file names without suffix) and modprobe's settings inside."""

    modules: set[str] = field(default_factory=set)
    texts: list[tuple[str, str]] = field(default_factory=list)
    drivers: dict[str, dict[str, str] | None] = field(default_factory=dict)  # NVIDIA's main modules; None: not readable

    @property
    def settings(self) -> Settings:
        return settings_of(text for _name, text in sorted(self.texts))

    def loads(self, module: str) -> bool:
        """Whether the module is in it and nothing in it keeps it from being loaded by its alias."""
        return module in self.modules and not self.settings.blocks(module)

    @property
    def driver(self) -> str | None:
        """The name of the NVIDIA module that it would load; Debian's is chosen by an alias of modprobe."""
        wanted = self.settings.alias("nvidia")
        return min(self.drivers, key=lambda name: (name != wanted, name != "nvidia", name), default=None)


class _Source(Protocol):
    def read(self, size: int) -> bytes: ...


class _Deadline(Exception):
    """The time for one image is over."""


def inspect(path: str, timeout: float = 10.0) -> Content:
    """Read the image at ``path`` (on this machine).

    Raises OSError when it cannot be read, ValueError when it is damaged, a packer is missing, or time runs out.
    """
    content = Content()
    archives = 0
    deadline = time.monotonic() + timeout
    with open(path, "rb", buffering=_CHUNK) as handle:
        try:
            while True:
                head = _skip_zeros(handle)
                if not head and archives:
                    return content
                archives += 1
                if head[:6] in _MAGICS:
                    _cpio(handle, content, deadline)
                    continue
                # a compressed archive runs to the end of the file
                _compressed(handle, head, path, content, deadline)
                return content
        except _Deadline:
            raise ValueError(f"{path} could not be read within {timeout:.0f} s") from None


def _skip_zeros(handle: IO[bytes]) -> bytes:
    """The first bytes that are not padding, without taking them; empty at the end of the file."""
    while True:
        at = handle.tell()
        block = handle.read(4096)
        if not block:
            return b""
        rest = block.lstrip(b"\0")
        if rest:
            handle.seek(at + len(block) - len(rest))
            head = handle.read(6)
            handle.seek(at + len(block) - len(rest))
            return head


def _compressed(handle: IO[bytes], head: bytes, path: str, content: Content, deadline: float) -> None:
    if head[:2] == b"\x1f\x8b":
        _cpios(_Inflate(handle, zlib.decompressobj(47).decompress), content, deadline)
    elif head[:6] == b"\xfd7zXZ\0":
        _cpios(_Inflate(handle, lzma.LZMADecompressor().decompress), content, deadline)
    elif head[:3] == b"\x5d\0\0":
        _cpios(_Inflate(handle, lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress), content, deadline)
    elif head[:4] in _PROGRAMS:
        _piped(_PROGRAMS[head[:4]], handle, path, content, deadline)
    else:
        raise ValueError(f"{path} is empty or packed in a way that is not known here ({head.hex()})")


def _piped(program: list[str], handle: IO[bytes], path: str, content: Content, deadline: float) -> None:
    os.lseek(handle.fileno(), handle.tell(), os.SEEK_SET)  # the child reads on from here
    try:
        # run_command would wait for a child that hangs in the kernel
        child = subprocess.Popen(  # pylint: disable=ansible-bad-function
            program,
            stdin=handle.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
            bufsize=_CHUNK,
        )
    except OSError as error:
        raise ValueError(f"{path} cannot be unpacked: {program[0]} is not installed") from error
    try:
        with child.stdout or open(os.devnull, "rb") as stream:
            _cpios(stream, content, deadline)
            while stream.read(_CHUNK):
                _check(deadline)
        if child.wait(timeout=5) != 0:
            raise ValueError(f"{path} is damaged: {program[0]} ended with status {child.returncode}")
    except subprocess.TimeoutExpired:
        raise _Deadline from None
    finally:
        if child.poll() is None:
            kill_group(child)


class _Inflate:
    """A decompressor as a stream."""

    def __init__(self, handle: IO[bytes], decompress: Callable[[bytes], bytes]) -> None:
        self._handle = handle
        self._decompress = decompress
        self._buffer = bytearray()

    def read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            packed = self._handle.read(_CHUNK // 4)
            if not packed:
                break
            try:
                self._buffer += self._decompress(packed)
            except EOFError:  # what follows the packed archive
                break
            except (zlib.error, lzma.LZMAError) as error:
                raise ValueError(f"the packed archive is damaged: {error}") from error
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


def _cpios(source: _Source, content: Content, deadline: float) -> None:
    """All archives of a stream, one after the other, zero padding between them. Raises ValueError for none at all."""
    if not _cpio(source, content, deadline):
        raise ValueError("the packed archive is empty")
    while _cpio(source, content, deadline):
        pass


def _cpio(source: _Source, content: Content, deadline: float) -> bool:
    """One archive up to its trailer; False at the end of the stream. Raises ValueError for one without a trailer."""
    entries = 0
    while True:
        _check(deadline)
        header = _header(source)
        if header is None:
            if entries:
                raise ValueError("the archive ends too early")
            return False
        entries += 1
        size, name_size = int(header[54:62], 16), int(header[94:102], 16)
        name = _exactly(source, name_size + _pad(_HEADER + name_size)).split(b"\0", 1)[0].decode("utf-8", "replace")
        if name == "TRAILER!!!":
            return True
        base = stem(name.rsplit("/", 1)[-1])
        if base is not None:
            content.modules.add(base)
        wanted = size <= _CONF_LIMIT and bool(_MODPROBE.match(name))
        left = size + _pad(size)
        if wanted:
            data = _exactly(source, left)
            content.texts.append((name, data[:size].decode("utf-8", "replace")))
            continue
        if base is not None and modinfo.NVIDIA.match(base) and 0 < size <= _MODULE_LIMIT:
            content.drivers[base] = _driver(name, _exactly(source, left)[:size], deadline)
            continue
        while left:
            _check(deadline)
            left -= len(_exactly(source, min(left, _CHUNK)))


def _driver(name: str, data: bytes, deadline: float) -> dict[str, str] | None:
    try:
        return modinfo.of_data(name, data, max(0.1, deadline - time.monotonic()))
    except ValueError:
        return None


def _header(source: _Source) -> bytes | None:
    """The next header, zero padding skipped (archives begin at multiples of four)."""
    head = source.read(4)
    while head == b"\0\0\0\0":
        head = source.read(4)
    if len(head) < 4:
        return None
    header = head + _exactly(source, _HEADER - 4)
    if header[:6] not in _MAGICS:
        raise ValueError("the archive in it is no cpio archive of the newc format")
    return header


def _exactly(source: _Source, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise ValueError("the archive ends too early")
    return data


def _pad(size: int) -> int:
    return -size % 4


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise _Deadline
