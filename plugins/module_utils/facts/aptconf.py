# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt's files: sources, preferences and configuration, parsed without apt.

Source: sources.list(5), apt_preferences(5), apt.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .masking import url as masked_url
from .tree import Tree

_OPTION = re.compile(r"\[(?P<options>[^\]]*)\]")
_IGNORED = re.compile(r"(?:~|\.(?:dpkg-\w+|ucf-\w+|save|bak|orig|distUpgrade|disabled))$")


# ---- deb822


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """The paragraphs of a deb822 text; keys in lower case, continued lines joined by newlines."""
    current: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not line.strip():
            if current:
                yield current
            current, last = {}, ""
        elif line[0] in " \t":
            if last:
                current[last] += "\n" + line.strip()
        else:
            key, mark, value = line.partition(":")
            if mark:
                last = key.strip().lower()
                current[last] = value.strip()
    if current:
        yield current


# ---- sources


@dataclass
class Source:
    """One package source; ``url`` still has its credentials and is never reported as it is."""

    url: str
    suites: list[str]
    components: list[str]
    signed_by: str | None
    file: str
    enabled: bool = True
    trusted: bool = False
    id: str = ""
    architectures: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The fact."""
        row: dict[str, Any] = {
            "id": self.id,
            "url": masked_url(self.url),
            "suites": self.suites,
            "components": self.components,
            "signed_by": self.signed_by,
            "file": self.file,
            "enabled": self.enabled,
        }
        if self.trusted:
            row["trusted"] = True
        return row


def sources(tree: Tree) -> list[Source]:
    """All binary package sources, with ids: the file's name, and the first suite for a second source in one file.

    Sources of sources.list are called ``OS-SUITE``. Raises OSError.
    """
    found: list[Source] = []
    text = tree.text("/etc/apt/sources.list")
    if text:
        found += one_line(text, "/etc/apt/sources.list")
    for path in tree.glob("/etc/apt/sources.list.d"):
        if path.endswith(".list"):
            found += one_line(tree.text(path) or "", path)
        elif path.endswith(".sources"):
            found += deb822(tree.text(path) or "", path)
    _name(found, _os_id(tree))
    return found


def one_line(text: str, path: str) -> list[Source]:
    """The one-line style; lines with one URL, key and components are one source with several suites."""
    found: list[Source] = []
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        if not re.match(r"deb\s", line):
            continue
        options = _OPTION.search(line)
        pairs = dict(item.partition("=")[::2] for item in options.group("options").split()) if options else {}
        words = (_OPTION.sub(" ", line, count=1) if options else line).split()
        if len(words) < 3:
            continue
        new = Source(
            url=words[1],
            suites=[words[2]],
            components=words[3:],
            signed_by=pairs.get("signed-by"),
            file=path,
            trusted=pairs.get("trusted") == "yes",
            architectures=[one for one in pairs.get("arch", "").split(",") if one],
        )
        same = next(
            (
                one
                for one in found
                if (one.url, one.components, one.signed_by) == (new.url, new.components, new.signed_by)
            ),
            None,
        )
        if same:
            same.suites += new.suites
        else:
            found.append(new)
    return found


def deb822(text: str, path: str) -> list[Source]:
    found: list[Source] = []
    for stanza in stanzas(text):
        if "deb" not in stanza.get("types", "").split():
            continue
        key = stanza.get("signed-by") or None
        if key and "BEGIN PGP" in key:
            key = "inline"
        for address in stanza.get("uris", "").split():
            found.append(
                Source(
                    url=address,
                    suites=stanza.get("suites", "").split(),
                    components=stanza.get("components", "").split(),
                    signed_by=key,
                    file=path,
                    enabled=stanza.get("enabled", "yes").lower() not in ("no", "false", "0", "off"),
                    trusted=stanza.get("trusted", "").lower() in ("yes", "true"),
                    architectures=stanza.get("architectures", "").split(),
                )
            )
    return found


def _os_id(tree: Tree) -> str:
    from .system import os_release

    return (os_release(tree) or {}).get("ID", "apt")


def _name(found: list[Source], os_id: str) -> None:
    taken: set[str] = set()
    for source in found:
        name = source.file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        suite = re.sub(r"[^A-Za-z0-9.+-]+", "-", source.suites[0]).strip("-.") if source.suites else ""
        base = f"{os_id}-{suite}" if source.file == "/etc/apt/sources.list" else name
        choices = [base, f"{base}-{suite}" if suite else base]
        number = 2
        while choices[0] in taken:
            choices.pop(0)
            if not choices:
                choices.append(f"{base}-{number}")
                number += 1
        source.id = choices[0]
        taken.add(source.id)


def list_prefix(source: Source, suite: str) -> str:
    """How apt's list files of a source and suite begin. Source: apt-pkg/contrib/strutl.cc URItoFileName."""
    scheme, _mark, rest = source.url.partition(":")
    address = re.sub(r"^[^/@]*@", "", rest.lstrip("/")).rstrip("/")
    if scheme in ("file", "copy", "cdrom", "mirror+file"):
        address = f"/{address}"
    path = f"{address}/{suite.strip('/')}/" if suite.endswith("/") else f"{address}/dists/{suite}/"
    path = re.sub(r"/{2,}", "/", path)
    quoted = "".join(f"%{ord(c):02x}" if c in '\\|{}[]<>"^~_=!@#$%^&*' or not c.isprintable() else c for c in path)
    return quoted.replace("/", "_")


# ---- preferences


def pins(tree: Tree) -> list[dict[str, Any]]:
    """``[{package, pin, priority, file}]``. Raises OSError."""
    found: list[dict[str, Any]] = []
    paths = ["/etc/apt/preferences"] if tree.isfile("/etc/apt/preferences") else []
    for path in tree.glob("/etc/apt/preferences.d"):
        name = path.rsplit("/", 1)[-1]
        if re.fullmatch(r"[A-Za-z0-9_.-]+", name) and ("." not in name or name.endswith(".pref")) and tree.isfile(path):
            paths.append(path)
    for path in paths:
        for stanza in stanzas(tree.text(path) or ""):
            try:
                priority = int(stanza.get("pin-priority", ""))
            except ValueError:
                continue
            package = " ".join(stanza.get("package", "").split())
            found.append({"package": package, "pin": stanza.get("pin", ""), "priority": priority, "file": path})
    return found


# ---- configuration


def configuration(tree: Tree) -> dict[str, list[str]]:
    """Every setting in lower case (``apt::periodic::enable``) → its values; a list has several. Raises OSError."""
    values: dict[str, list[str]] = {}
    paths = [
        path
        for path in tree.glob("/etc/apt/apt.conf.d")
        if not _IGNORED.search(path) and ("." not in path.rsplit("/", 1)[-1] or path.endswith(".conf"))
    ]
    if tree.isfile("/etc/apt/apt.conf"):
        paths.append("/etc/apt/apt.conf")
    for path in paths:
        try:
            content = tree.text(path) or ""
        except PermissionError:
            continue  # files with credentials; the settings that are asked for are never in those
        merge(values, content)
    return values


_TOKEN = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|([{};])|([^\s{};\"]+)")


def merge(values: dict[str, list[str]], text: str) -> None:
    """Take the settings of one file, as apt does: scalars are replaced, lists (``name { "a"; };``, ``name::``) grow."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"(?m)^\s*#(?!clear|include).*$", "", text)
    text = re.sub(r"(?m)(^|[\s;{}])//.*$", r"\1", text)
    scopes: list[str] = []
    words: list[tuple[bool, str]] = []  # (quoted, text) of the statement so far
    for match in _TOKEN.finditer(text):
        quoted, mark, bare = match.group(1), match.group(2), match.group(3)
        if mark == "{":
            scopes.append(words[-1][1] if words else "")
            words = []
        elif mark == "}":
            _statement(values, scopes, words)
            words = []
            if scopes:
                scopes.pop()
        elif mark == ";":
            _statement(values, scopes, words)
            words = []
        else:
            words.append((True, quoted) if quoted is not None else (False, bare))


def _statement(values: dict[str, list[str]], scopes: list[str], words: list[tuple[bool, str]]) -> None:
    if not words:
        return
    scope = "::".join(one.strip(":") for one in scopes if one)
    if words[0][1].lower() == "#clear":
        for _quoted, name in words[1:]:
            wanted = _join(scope, name).rstrip(":").lower()
            for key in [one for one in values if one == wanted or one.startswith(f"{wanted}::")]:
                del values[key]
        return
    if words[0][0]:  # a bare "value"; inside { }: one more of the list
        values.setdefault(scope.lower(), []).extend(word for _quoted, word in words)
        return
    name = words[0][1]
    value = words[1][1] if len(words) > 1 else ""
    full = _join(scope, name).lower()
    if full.endswith("::"):
        values.setdefault(full[:-2], []).append(value)
    else:
        values[full] = [value]


def _join(scope: str, name: str) -> str:
    return f"{scope}::{name}" if scope else name
