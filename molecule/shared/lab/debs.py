# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write .deb files and the suites of an apt archive, hundreds in a second: no program is started for each."""
from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

from .standins import Package, hook

STAMP = 1_790_000_000  # one time for all files: the same description makes the same bytes
FLAT = ("cuda",)
COMPONENTS = ("main", "restricted", "universe", "multiverse")


def _control(one: Package, size: int) -> str:
    fields = {"Package": one.name, "Version": one.version, "Architecture": "all" if one.arch == "noarch" else "amd64",
              "Section": one.section, "Priority": "optional", "Maintainer": "Lab stand-in <lab@localhost>",
              "Installed-Size": str(max(1, size // 1024))}
    if one.row.get("source"):
        fields["Source"] = one.row["source"]
    for relation, words in one.relations.items():
        fields["-".join(part.capitalize() for part in relation.split("-"))] = ", ".join(words)
    fields["Description"] = f"{one.summary}\n Stand-in of the lab: the real name, version and dependencies."
    return "".join(f"{key}: {value}\n" for key, value in fields.items())


def _tar(members: Iterable[tuple[str, bytes, int, str]]) -> bytes:
    """A gzipped tar of (path, data, mode, link goal), with the folders above each."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=STAMP) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        made = set()
        for path, data, mode, goal in members:
            parts = path.strip("/").split("/")
            for depth in range(len(parts)):
                folder = "./" + "/".join(parts[:depth])
                if folder not in made:
                    made.add(folder)
                    entry = tarfile.TarInfo(folder)
                    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, STAMP
                    tar.addfile(entry)
            entry = tarfile.TarInfo("./" + "/".join(parts))
            entry.mode, entry.mtime, entry.size = mode, STAMP, len(data)
            if goal:
                entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, goal, 0
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def write(one: Package, folder: Path) -> tuple[Path, str]:
    """Write the file of a package; its path and its stanza of Packages, which lacks the path alone."""
    size = sum(len(data) for data, _mode in one.files.values())
    control = _control(one, size)
    texts = {**one.scripts, "preinst": one.scripts.get("preinst", "") + hook(one.name, "pre"),
             "postinst": hook(one.name, "post") + one.scripts.get("postinst", "")}
    scripts = [(kind, ("#!/bin/sh\nset -e\n" + text).encode(), 0o755, "") for kind, text in texts.items()]
    listed = [("conffiles", "".join(f"{path}\n" for path in one.conffiles).encode(), 0o644, "")] * bool(one.conffiles)
    data = _tar([(path, data, mode, "") for path, (data, mode) in sorted(one.files.items())]
                + [(path, b"", 0o777, goal) for path, goal in sorted(one.links.items())])
    inner = [("debian-binary", b"2.0\n"), ("control.tar.gz", _tar([("control", control.encode(), 0o644, ""), *listed,
                                                                   *scripts])), ("data.tar.gz", data)]
    body = b"!<arch>\n"
    for name, part in inner:
        body += f"{name:<16}{STAMP:<12}{0:<6}{0:<6}{100644:<8}{len(part):<10}`\n".encode() + part
        body += b"\n" * (len(part) % 2)
    number, arch = one.version.partition(":")[2] or one.version, "all" if one.arch == "noarch" else "amd64"
    path = folder / f"{one.name}_{number}_{arch}.deb"
    path.write_bytes(body)
    head, mark, rest = control.partition("Description: ")
    stanza = f"{head}Size: {len(body)}\nSHA256: {hashlib.sha256(body).hexdigest()}\n{mark}{rest}"
    return path, stanza


def suites(packages: list[Package], root: Path, origin: str) -> list[Path]:
    """Write pool/ and dists/ below root; the folders of the suites, whose Release files are not signed yet."""
    pool = root / "pool"
    pool.mkdir(parents=True, exist_ok=True)
    listed: dict[str, dict[str, list[str]]] = {}
    for one in packages:
        path, stanza = write(one, pool)
        text = re.sub(r"(?m)^Size: ", f"Filename: pool/{path.name}\nSize: ", stanza, count=1)
        component = one.section.partition("/")[0]
        component = component if component in COMPONENTS else COMPONENTS[0]
        for suite in one.archives:
            listed.setdefault(suite, {name: [] for name in COMPONENTS})[component].append(text)
    return [_flat(root / suite, parts) if suite in FLAT else _suite(root / "dists" / suite, parts, origin)
            for suite, parts in listed.items()]


def _flat(folder: Path, parts: dict[str, list[str]]) -> Path:
    """As NVIDIA's: Packages and Release in one folder; the files lie in the pool beside it."""
    folder.mkdir()
    text = "\n".join(stanza.replace("Filename: ", "Filename: ../") for stanzas in parts.values() for stanza in stanzas)
    (folder / "Packages").write_text(text)
    (folder / "Release").write_text(
        f"Origin: NVIDIA\nLabel: NVIDIA CUDA\nArchitecture: x86_64\nDate: Mon, 30 Nov 2026 00:00:00 UTC\n"
        f"SHA256:\n {hashlib.sha256(text.encode()).hexdigest()} {len(text.encode())} Packages\n")
    return folder


def _suite(folder: Path, parts: dict[str, list[str]], origin: str) -> Path:
    sums = []
    for component, stanzas in parts.items():
        index = folder / component / "binary-amd64" / "Packages"
        index.parent.mkdir(parents=True)
        text = "\n".join(stanzas).encode()
        index.write_bytes(text)
        sums.append(f" {hashlib.sha256(text).hexdigest()} {len(text)} {index.relative_to(folder)}\n")
    (folder / "Release").write_text(
        f"Origin: {origin}\nLabel: {origin}\nSuite: {folder.name}\nCodename: {folder.name.partition('-')[0]}\n"
        f"Architectures: amd64\nComponents: {' '.join(COMPONENTS)}\nDate: Mon, 30 Nov 2026 00:00:00 UTC\n"
        f"SHA256:\n{''.join(sums)}")
    return folder
