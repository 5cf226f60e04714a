# SPDX-License-Identifier: GPL-3.0-or-later
"""Small trees that look like hosts, and a context that reads them."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree


class Builder:
    """Writes files below a root; paths as seen from inside."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def path(self, path: str) -> pathlib.Path:
        return self.root / path.lstrip("/")

    def put(self, path: str, content: str | bytes = "") -> pathlib.Path:
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def many(self, files: dict[str, str]) -> None:
        for path, content in files.items():
            self.put(path, content)

    def link(self, path: str, to: str) -> None:
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(to)

    def directory(self, path: str) -> None:
        self.path(path).mkdir(parents=True, exist_ok=True)

    @property
    def tree(self) -> Tree:
        return Tree(str(self.root))

    def read(self, reader: Callable[[Context], None], **options: Any) -> Context:
        """Run one subject on this tree and hand back its context."""
        context = Context(self.tree, **options)
        reader(context)
        return context


class AsHost(Tree):
    """A tree that is taken for the running system: programs may be asked."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.is_host = True

    def real(self, path: str) -> str:
        return self.root + path

    def resolve(self, path: str) -> str:
        return path


class Programs:
    """A runner that answers by the program's name and remembers what it was asked."""

    def __init__(self, **answers: children.Result) -> None:
        self.answers = answers
        self.calls: list[list[str]] = []

    def __call__(self, argv: list[str], **options: Any) -> children.Result:
        self.calls.append(argv)
        name = argv[0].rsplit("/", 1)[-1].replace("-", "_")
        return self.answers.get(name, children.Result(rc=127, err="no such program"))


def module(release: str, version: str = "550.163.01", license: str = "NVIDIA", signed: bool = False) -> bytes:
    """A kernel module file, as far as modinfo cares: ELF header, a .modinfo section, perhaps a signature."""
    info = b"\0".join(
        item.encode()
        for item in (
            f"version={version}",
            f"license={license}",
            "name=nvidia",
            f"vermagic={release} SMP preempt mod_unload modversions ",
        )
    )
    names = b"\0.modinfo\0.shstrtab\0"
    body = info + names
    offset = 64 + len(body)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, offset, 0, 64, 0, 0, 64, 3, 2)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0, 64, len(info), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 10, 3, 0, 0, 64 + len(info), len(names), 0, 0, 1, 0)
    data = header + body + sections
    return data + (b"PKCS7~Module signature appended~\n" if signed else b"")


def cpio(files: dict[str, str | bytes]) -> bytes:
    """A newc archive."""
    data = b""
    for number, (name, content) in enumerate([*files.items(), ("TRAILER!!!", b"")]):
        body = content.encode() if isinstance(content, str) else content
        raw = name.encode() + b"\0"
        fields = (number, 0o100644, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(raw), 0)
        entry = b"070701" + "".join(f"{one:08x}" for one in fields).encode() + raw
        entry += bytes(-len(entry) % 4)
        data += entry + body + bytes(-len(body) % 4)
    return data + bytes(-len(data) % 512)
