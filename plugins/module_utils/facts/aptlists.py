# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt's package lists offer, read from the lists themselves.

``apt-cache`` takes one to two seconds to build its cache where none is kept (containers, images), and its answer
depends on pins; the lists are read in a fraction of that, work in another tree, and tell what is there, pinned or not.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator

from . import aptconf, debversion
from .context import Context
from .tree import Tree

LISTS = "/var/lib/apt/lists"
NEWEST = 3
_PACKED = (".lz4", ".xz", ".gz", ".zst", ".bz2", ".lzma")
_VERSION = re.compile(rb"\nVersion: ([^\n]*)")
_UNPACKED_LIMIT = 256 * 1024 * 1024

Offers = dict[str, dict[str, str]]  # package → version → id of the source that offers it


def offers(
    ctx: Context,
    sources: list[aptconf.Source],
    arch: str,
    prefixes: tuple[str, ...],
    wanted: Callable[[str], bool],
    notice: Callable[[str, str, bytes], None] | None = None,
) -> Offers:
    """Versions of the wanted packages in all enabled sources. Unreadable lists are noted as unknown.

    ``notice`` is shown each with its stanza, so that no list is read twice.
    """
    found: Offers = {}
    names = ctx.tree.names(LISTS)
    pattern = re.compile(b"\nPackage: ((?:" + b"|".join(re.escape(one.encode()) for one in prefixes) + rb")[^\n]*)\n")
    for source in sources:
        if not source.enabled:
            continue
        for file in files_of(source, names, arch):
            with ctx.attempt(f"packages.available[{source.id}]"):
                for package, version, stanza in _scan(ctx, f"{LISTS}/{file}", pattern, wanted):
                    if notice is not None:
                        notice(package, version, stanza)
                    found.setdefault(package, {}).setdefault(version, source.id)
    return found


def stanzas(
    ctx: Context, sources: list[aptconf.Source], arch: str, prefix: str, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str, str]]:
    """(name, version, what the list says of it) of the wanted packages in all enabled sources. Raises OSError."""
    names = ctx.tree.names(LISTS)
    pattern = re.compile(b"\nPackage: (" + re.escape(prefix.encode()) + rb"[^\n]*)\n")
    for source in sources:
        for file in files_of(source, names, arch) if source.enabled else ():
            for package, version, stanza in _scan(ctx, f"{LISTS}/{file}", pattern, wanted):
                yield package, version, stanza.decode("utf-8", "replace")


def files_of(source: aptconf.Source, names: list[str], arch: str) -> list[str]:
    """The list files of one source among the names in apt's directory."""
    hits = []
    for suite in source.suites:
        prefix = aptconf.list_prefix(source, suite)
        for name in names:
            if not name.startswith(prefix):
                continue
            rest = name[len(prefix) :]
            for packed in _PACKED:
                rest = rest[: -len(packed)] if rest.endswith(packed) else rest
            if suite.endswith("/"):
                if rest == "Packages":
                    hits.append(name)
                continue
            match = re.fullmatch(r"(?P<component>.+)_binary-(?P<arch>[a-z0-9]+)_Packages", rest)
            if match and match.group("arch") in (arch, "all") and _component(source, match.group("component")):
                hits.append(name)
    return hits


def _component(source: aptconf.Source, name: str) -> bool:
    return name in [component.replace("/", "_") for component in source.components]


def _scan(
    ctx: Context, path: str, pattern: re.Pattern[bytes], wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str, bytes]]:
    if path.endswith(_PACKED):
        yield from _search(b"\n" + _unpack(ctx, path), pattern, wanted)
        return
    with open(ctx.tree.real(path), "rb") as handle:
        try:
            data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # empty
            return
        with data:
            # the pattern wants a newline before: the first stanza of a file has none
            yield from _search(b"\n" + data[: 64 * 1024], pattern, wanted, first_only=True)
            yield from _search(data, pattern, wanted)


def _search(
    data: bytes | mmap.mmap, pattern: re.Pattern[bytes], wanted: Callable[[str], bool], first_only: bool = False
) -> Iterator[tuple[str, str, bytes]]:
    at = 0
    while True:
        match = pattern.match(data, at) if first_only else pattern.search(data, at)
        if not match:
            return
        at = match.end(1)
        name = match.group(1).decode("ascii", "replace")
        if wanted(name):
            version = _VERSION.search(data, at)
            end = data.find(b"\n\n", at)
            if version and (end < 0 or version.start() < end):
                stanza = bytes(data[at : end if end >= 0 else len(data)])
                yield name, version.group(1).decode("utf-8", "replace").strip(), stanza
        if first_only:
            return


def _unpack(ctx: Context, path: str) -> bytes:
    from ..run import run_bytes

    answer = run_bytes(
        ["/usr/lib/apt/apt-helper", "cat-file", ctx.tree.real(path)],
        timeout=min(ctx.command_timeout, ctx.left),
        limit=_UNPACKED_LIMIT,
    )
    if answer.rc != 0:
        raise ValueError(f"{path} cannot be unpacked: apt-helper ended with status {answer.rc}")
    return answer.out


def newest(versions: dict[str, str], count: int = NEWEST) -> list[str]:
    """The newest versions, the newest first."""
    return sorted(versions, key=debversion.key, reverse=True)[:count]


def age(tree: Tree, now: float) -> int | None:
    """Seconds since the lists were fetched, None when they never were. Raises OSError."""
    if not any("Packages" in name for name in tree.names(LISTS)):
        return None
    times = []
    for path in ("/var/lib/apt/periodic/update-success-stamp", LISTS, f"{LISTS}/partial"):
        try:
            times.append(tree.stat(path).st_mtime)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
    return max(0, int(now - max(times)))


def all_fetched(tree: Tree, sources: list[aptconf.Source], arch: str) -> bool:
    """Say whether each enabled source has a list: one that was written by a run that was cut off has none yet."""
    names = tree.names(LISTS)
    return all(files_of(source, names, arch) for source in sources if source.enabled)
