# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt's source files, without apt: find who names a repository, and leave one.

With two files for one repository, one with Signed-By and one without, apt reads no source at all, so this works on
files alone. What is taken out is kept: files are copied to the backup folder first, an entry in a file of several is
commented out.
"""
from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from . import keepers

_ONE_LINE = re.compile(r"^\s*(?P<type>deb(?:-src)?)\s+(?P<options>\[[^\]]*\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)")
_OFF = "# taken out by baremetal.nvidia, the repository has a file of its own: "
URI = "uris"


@dataclass(frozen=True)
class Removal:
    """An entry that is taken out: the file, and the text it has afterwards (None: the file goes)."""

    path: str
    text: str | None


def uri_key(uri: str) -> str:
    """A repository's address in the form in which two of them are compared."""
    plain = uri.strip().lower().partition("?")[0]  # zypper has a proxy behind the address
    text = re.sub(r"^(mirror\+|tor\+)", "", plain).rstrip("/")
    text = re.sub(r"/(\$\(arch\)|amd64|arm64|ppc64el)$", "", text)  # one source, whichever way the machine is named
    return re.sub(r"/+", "/", re.sub(r"^https?:", "http:", text)).rstrip("/")


def uris(text: str, deb822: bool) -> list[str]:
    """The addresses that a source file names, in use or not commented out."""
    if not deb822:
        return [match["uri"] for line in text.splitlines() if (match := _ONE_LINE.match(line))]
    return [uri for stanza in _stanzas(text) for uri in _field(stanza, URI).split()]


def _stanzas(text: str) -> list[str]:
    return [stanza for stanza in re.split(r"\n[ \t]*\n", text.replace("\r", "")) if stanza.strip()]


def _field(stanza: str, name: str) -> str:
    lines: list[str] = []
    inside = False
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if inside and line[:1] in (" ", "\t"):
            lines.append(line.strip())
            continue
        head, colon, rest = line.partition(":")
        inside = bool(colon) and head.strip().lower() == name
        if inside:
            lines.append(rest.strip())
    return " ".join(lines)


def source_files(root: str = "/") -> list[str]:
    """The files that apt reads, as paths seen from ``root``."""
    base = os.path.join(root, "etc/apt")
    found = [os.path.join(base, "sources.list"), *sorted(glob.glob(os.path.join(base, "sources.list.d", "*.list"))),
             *sorted(glob.glob(os.path.join(base, "sources.list.d", "*.sources")))]
    return ["/" + os.path.relpath(path, root) for path in found if os.path.isfile(path)]


def duplicates(addresses: Iterable[str], keep: str, root: str = "/") -> list[Removal]:
    """Where else a repository is named than in ``keep``, and what these files say without it."""
    ours = {uri_key(address) for address in addresses}
    found: list[Removal] = []
    for path in source_files(root):
        if path == keep:
            continue
        content = keepers.read(os.path.join(root, path.lstrip("/"))) or b""
        text = content.decode("utf-8", "surrogateescape")
        removal = _without(path, text, ours)
        if removal is not None:
            found.append(removal)
    return found


def _without(path: str, text: str, ours: set[str]) -> Removal | None:
    deb822 = path.endswith(".sources")
    if not any(uri_key(uri) in ours for uri in uris(text, deb822)):
        return None
    new = _deb822_without(text, ours) if deb822 else _list_without(text, ours)
    left = uris(new, deb822)
    return Removal(path, new if left or path.endswith("/sources.list") else None)


def _list_without(text: str, ours: set[str]) -> str:
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        match = _ONE_LINE.match(line)
        if match and uri_key(match["uri"]) in ours:
            lines[at] = _OFF + line
    return "".join(lines)


def _deb822_without(text: str, ours: set[str]) -> str:
    parts = re.split(r"(\n[ \t]*\n+)", text.replace("\r", ""))
    for at, stanza in enumerate(parts):
        named = _field(stanza, URI).split()
        if not any(uri_key(uri) in ours for uri in named):
            continue
        rest = [uri for uri in named if uri_key(uri) not in ours]
        if rest:  # a stanza of several repositories keeps the others
            parts[at] = re.sub(r"(?im)^uris:.*(?:\n[ \t]+.*)*", "URIs: " + " ".join(rest), stanza)
        else:
            parts[at] = "\n".join(_OFF + line if line.strip() else line for line in stanza.split("\n"))
    return "".join(parts)
