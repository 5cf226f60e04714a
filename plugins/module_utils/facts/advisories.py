# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advisories of dnf's and zypper's repositories, from the metadata that they have fetched: updateinfo.xml.

Read from the files, since both managers leave out what is locked. So it can be told since when a hold keeps a fix out.
"""

from __future__ import annotations

import datetime
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..packages import families
from ..run import run_bytes
from . import rpmdb
from .context import Context

PATHS = {
    "dnf": ("/var/cache/dnf/*/repodata/*updateinfo.xml*", "/var/cache/libdnf5/*/repodata/*updateinfo.xml*"),
    "zypper": ("/var/cache/zypp/raw/*/repodata/*updateinfo.xml*",),
}
_LARGEST = 256 * 1024 * 1024
_PACKAGE = re.compile(r"<package\b[^>]*>", re.S)
_ATTRIBUTE = re.compile(r"\b(name|epoch|version|release)=\"([^\"]*)\"")
_TYPE = re.compile(r"type=\"([^\"]+)\"")
_ISSUED = re.compile(r"<issued\s+date=\"([^\"]+)\"")
_CVE = re.compile(r"\bCVE-\d{4}-\d{4,}\b")
_MOST_CVES = 20


@dataclass(frozen=True)
class Advisory:
    """What one advisory says of one package. ``since`` is the day on which it was issued, None where it has none."""

    name: str
    version: str
    kind: str
    since: str | None
    cves: tuple[str, ...]


def read(ctx: Context, manager: str, found: Iterable[rpmdb.Rpm]) -> None:
    """Set ``packages.advisories``: name → version → {since, cves}, of fixes for kernels newer than those here."""
    newest: dict[str, str] = {}
    for package in found:
        if families.kernel_part(package.name) == "image":
            newest[package.name] = rpmdb.newest([package.evr, newest.get(package.name, package.evr)], 1)[0]
    rows: dict[str, dict[str, dict[str, object]]] = {}
    for text in texts(ctx, PATHS[manager]) if newest else ():
        for one in of(text, set(newest)):
            if one.kind == "security" and rpmdb.compare(one.version, newest[one.name]) > 0:
                rows.setdefault(one.name, {})[one.version] = {"since": one.since, "cves": list(one.cves)}
    ctx.set("packages.advisories", rows)


def texts(ctx: Context, patterns: Iterable[str], subject: str = "packages.advisories") -> Iterator[str]:
    """The files' texts, unpacked; one that cannot be is told among what is unknown of ``subject``."""
    for pattern in patterns:
        for path in ctx.tree.expand(pattern):
            with ctx.attempt(f"{subject}[{path}]"):
                yield unpacked(ctx, path)


def of(text: str, names: set[str]) -> Iterator[Advisory]:
    """What an updateinfo.xml says of the packages with these names."""
    marks = [f'"{name}"' for name in names]
    for block in text.split("<update ")[1:]:
        if not any(mark in block for mark in marks):
            continue
        kind, issued = _TYPE.search(block), _ISSUED.search(block)
        cves = tuple(sorted(set(_CVE.findall(block.partition("<pkglist")[0])))[:_MOST_CVES])
        for package in _PACKAGE.findall(block):
            said = dict(_ATTRIBUTE.findall(package))
            if kind and said.get("name") in names:
                epoch = said.get("epoch", "0")
                version = f"{said.get('version')}-{said.get('release')}"
                yield Advisory(said["name"], version if epoch in ("", "0") else f"{epoch}:{version}", kind.group(1),
                               _day(issued.group(1)) if issued else None, cves)


def _day(text: str) -> str | None:
    """2026-11-20 of what Red Hat writes (date and time) and of what SUSE writes (seconds)."""
    if text.isdigit():
        return datetime.datetime.fromtimestamp(int(text), datetime.timezone.utc).date().isoformat()
    return text[:10] if re.match(r"\d{4}-\d\d-\d\d", text) else None


def unpacked(ctx: Context, path: str) -> str:
    """The text of a metadata file. Raises OSError or ValueError where it cannot be unpacked."""
    if path.endswith(".zst"):
        answer = run_bytes(["zstd", "-dcq", ctx.tree.real(path)], timeout=ctx.command_timeout, limit=_LARGEST)
        if answer.rc != 0:
            raise ValueError(f"{path} cannot be unpacked: zstd ended with status {answer.rc}")
        return answer.out.decode("utf-8", "replace")
    data = ctx.tree.read_bytes(path, _LARGEST)
    try:
        if path.endswith(".gz"):
            data = zlib.decompress(data, 47)
        elif path.endswith(".xz"):
            data = lzma.decompress(data)
    except (zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}") from error
    return data.decode("utf-8", "replace")
