# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The .repo files of dnf and zypper, without either: find who names a repository, and leave one.

A repository that is named twice is switched off in the other file (``enabled=0``), which both managers understand and
people find again; the file's other sections and its comments stay.

Source: dnf.conf(5), zypper(8), libzypp's RepoFileReader.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterable

from ..facts import rpmdb
from ..facts.tree import Tree
from . import keepers
from .sources import Removal, uri_key

FOLDERS = {"/etc/yum.repos.d": ("/usr/share/dnf5/vars.d", "/etc/yum/vars", "/etc/dnf/vars"),
           "/etc/zypp/repos.d": ("/etc/zypp/vars.d",)}
_ADDRESSES = ("baseurl", "metalink", "mirrorlist")
_OFF = "# switched off by baremetal.nvidia, the repository has a file of its own"
_HEAD = re.compile(r"^\s*\[(?P<name>[^\]]+)\]\s*$")
_INSECURE = {"sslverify": "0", "ssl_verify": "no"}


def named(text: str) -> list[str]:
    """The addresses that the enabled sections of a file name."""
    return [word for _name, keys in rpmdb.sections(text) if rpmdb.yes(keys.get("enabled", "1"))
            for word in _words(keys)]


def _words(keys: dict[str, str]) -> list[str]:
    return [word.rstrip(",") for one in _ADDRESSES for word in keys.get(one, "").split()]


def fault(text: str, path: str) -> str | None:
    """Say what switches signature checks off in a file, or that it names nothing; None where all is well."""
    found = rpmdb.sections(text)
    if not found or not all(_words(keys) for _name, keys in found):
        return f"content for {path} names no repository: each section needs baseurl, metalink or mirrorlist"
    for name, keys in found:
        if not rpmdb.yes(keys.get("gpgcheck", "1")) and not rpmdb.yes(keys.get("repo_gpgcheck", "0")):
            return (f"content for {path} has gpgcheck=0 in [{name}], which switches signature checks off; give the key "
                    "with its fingerprint instead")
        for key, off in _INSECURE.items():
            if keys.get(key, "").strip().lower() in (off, "0", "no", "false", "off"):
                return f"content for {path} has {key}={keys[key]} in [{name}], which lets anybody answer for that host"
    return None


def keys_named(text: str) -> list[str]:
    """The key files that the sections of a file name."""
    return [word.rstrip(",") for _name, keys in rpmdb.sections(text) for word in keys.get("gpgkey", "").split()]


def duplicates(addresses: Iterable[str], keep: str, root: str = "/") -> list[Removal]:
    """Where else a repository is switched on than in ``keep``, and what these files say without it."""
    folder = os.path.dirname(keep)
    tree = Tree(root)
    values = rpmdb.variables(tree, FOLDERS.get(folder, ()))
    ours = {uri_key(rpmdb.substitute(one, values)) for one in addresses}
    found: list[Removal] = []
    for path in tree.glob(folder, "*.repo"):
        content = keepers.read(os.path.join(root, path.lstrip("/"))) or b""
        text = content.decode("utf-8", "surrogateescape")
        new = _without(text, ours, values) if path != keep else text
        if new != text:
            found.append(Removal(path, new))
    return found


def _without(text: str, ours: set[str], values: dict[str, str]) -> str:
    gone = {
        name
        for name, keys in rpmdb.sections(text)
        if rpmdb.yes(keys.get("enabled", "1"))
        and any(uri_key(rpmdb.substitute(word, values)) in ours for word in _words(keys))
    }
    if not gone:
        return text
    lines: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        match = _HEAD.match(line)
        if match:
            inside = match["name"].strip() in gone
        elif inside and re.match(r"(?i)\s*enabled\s*[=:]", line):
            continue  # what takes its place stands at the head of the section
        lines.append(line)
        if match and inside:
            lines[-1] = line if line.endswith("\n") else line + "\n"
            lines.append(f"{_OFF}\nenabled=0\n")
    return "".join(lines)
