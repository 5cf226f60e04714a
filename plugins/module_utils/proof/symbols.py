# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether modules that were made for one kernel fit another: every symbol that they need, with the same checksum.

Red Hat's weak-modules and SUSE's weak-modules2 link such modules for other kernels, after the packages have moved; the
kernel compares the checksums once more when it loads them. Here they are compared before anything moves.

Source: include/linux/module.h (struct modversion_info), scripts/mod/modpost.c (Module.symvers, __version_ext_*).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from ..facts import kmps
from ..facts import modinfo as elf
from ..facts.tree import Tree
from . import bundle, modinfo
from .errors import ProofError

Runner = Callable[..., Any]
Checksums = dict[str, int]
_RECORD = struct.Struct("<Q56s")
_FEW = 5
#: As packages of Red Hat, Fedora and SUSE bring it, then as headers do.
_SYMVERS = ("/lib/modules/{0}/symvers.gz", "/lib/modules/{0}/symvers.xz", "/lib/modules/{0}/symvers.zst",
            "/boot/symvers-{0}.gz", "/boot/symvers-{0}.xz", "/lib/modules/{0}/build/Module.symvers")


class Abi:
    """The symbols of one kernel, installed or only on offer; read when they are asked for. ``place`` is for scratch."""

    def __init__(self, release: str, backend: Any, run: Runner, place: str, root: str = "/") -> None:
        self.release, self.backend, self.run, self.place, self.root = release, backend, run, place, root

    def provided(self) -> Checksums:
        """Symbol → checksum; empty where nobody tells. Raises ProofError for a list that cannot be unpacked."""
        tree = Tree(self.root)
        for pattern in _SYMVERS:
            path = pattern.format(self.release)
            if tree.isfile(path):
                target = os.path.join(self.place, "symvers")
                bundle.plain_copy(tree.real(path), target, self.run)
                with open(target, encoding="utf-8", errors="replace") as handle:
                    found = symvers(handle.read())
                if found:
                    return found
        return kmps.checksums(self.backend.provided_symbols(self.release))

    def problems(self, modules: Iterable[modinfo.Module], asked: Mapping[str, str]) -> list[str]:
        """Why this kernel would not load ``modules``, in sentences. ``asked``: what their package requires of it."""
        files = list(modules)
        what = f"{', '.join(f'{one.stem}.ko' for one in files[:_FEW])} was made for kernel {files[0].release}"
        try:
            needed, own = self._of_files(files)
        except (OSError, ValueError) as exc:
            return [f"{what}, and its symbols cannot be read: {exc}"]
        needed = {name: value for name, value in {**kmps.checksums(dict(asked)), **needed}.items() if name not in own}
        if not needed:
            return [f"{what} and names no symbol versions: nothing tells whether {self.release} takes it"]
        there = self.provided()
        if not there:
            return [f"{what}, and which symbols {self.release} has is told by no symvers.gz, no package and no "
                    "repository: install its headers (kernel-devel), or refresh the package lists"]
        lacking = kmps.differing(there, needed)
        if not lacking:
            return []
        more = f" and {len(lacking) - _FEW} more" if len(lacking) > _FEW else ""
        return [f"{what}, and {self.release} has no such {', '.join(lacking[:_FEW])}{more} (other symbol versions)"]

    def _of_files(self, files: Iterable[modinfo.Module]) -> tuple[Checksums, set[str]]:
        """What the files need, and what they give to each other."""
        needed: Checksums = {}
        own: set[str] = set()
        for one in files:
            plain = one.path
            if not plain.endswith(".ko"):
                plain = os.path.join(self.place, "module")
                bundle.plain_copy(one.path, plain, self.run)
            with open(plain, "rb") as handle:
                data = handle.read()
            needed.update(versions(data))
            own |= exported(data)
        return needed, own


def versions(data: bytes) -> Checksums:
    """The symbols that a module needs, with their checksums. Raises ValueError for what is no module."""
    found: Checksums = {}
    plain = elf.section(data, b"__versions") or b""
    for at in range(0, len(plain) - _RECORD.size + 1, _RECORD.size):
        checksum, name = _RECORD.unpack_from(plain, at)
        found[_word(name.split(b"\0", 1)[0])] = checksum
    sums, names = elf.section(data, b"__version_ext_crcs"), elf.section(data, b"__version_ext_names")
    if sums is not None and names is not None:
        numbers = struct.unpack(f"<{len(sums) // 4}I", sums[: len(sums) // 4 * 4])
        found.update(zip(map(_word, names.split(b"\0")), numbers))
    found.pop("", None)
    return found


def exported(data: bytes) -> set[str]:
    """The symbols that a module gives to others. Raises ValueError for what is no module."""
    return {_word(name) for name in (elf.section(data, b"__ksymtab_strings") or b"").split(b"\0") if name}


def symvers(text: str) -> Checksums:
    """Symbol → checksum of a Module.symvers."""
    found = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) > 2 and fields[0].startswith("0x"):
            try:
                found[fields[1]] = int(fields[0], 16)
            except ValueError as exc:
                raise ProofError(f"a list of symbols cannot be read: {line[:80]!r}") from exc
    return found


def _word(name: bytes) -> str:
    return name.decode("ascii", "replace")
