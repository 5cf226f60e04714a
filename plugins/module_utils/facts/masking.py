# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets are taken out where a text is read, so that none is ever in a fact, a log or a fact cache."""

from __future__ import annotations

import re

MASK = "********"

_URL = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<user>[^\s/\"'<>]+)@")
_QUERY = re.compile(
    r"(?i)(?P<key>[?&](?:[a-z0-9_.-]*(?:token|secret|passw(?:or)?d|signature|api[_-]?key|access[_-]?key|sig|auth))=)"
    r"[^&\s\"'#]+"
)
# key = value and key: value, where the key names a secret: quoted (TOML, also ''' and \"\"\") or a bare word
_SECRET_KEY = (
    r"(?:[A-Za-z0-9_.-]*(?:passw(?:or)?d|passphrase|secrets?|tokens?|credentials?|(?:secret|api|access|private)[_-]?key)"
    r"|auth|authorization|proxy-authorization|cookie)"
)
_ASSIGN = re.compile(
    r"(?i)(?P<key>(?<![A-Za-z0-9_.-])[\"']?" + _SECRET_KEY + r"[\"']?[ \t]*[=:][ \t]*)"
    r"(?P<value>\"\"\".*?\"\"\"|'''.*?'''|\[[^\]\[{}=]*\]|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|(?![\"'\[{])[^\s,;}\]#]+)",
    re.DOTALL,
)
_HEADER_BEARER = re.compile(r"(?i)\b(?P<kind>bearer|basic)[ ]+[A-Za-z0-9+/=._~-]{8,}")
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_HARMLESS = frozenset({"true", "false", "none", "null", '""', "''", "[]"})


def url(text: str) -> str:
    """A URL without its credentials and without secrets in its query."""
    return _QUERY.sub(lambda m: m.group("key") + MASK, _URL.sub(lambda m: m.group("scheme") + MASK + "@", text))


def text(content: str) -> str:
    """A configuration file or command line without passwords, tokens, keys and credentials in URLs.

    The shape stays: quoted values stay quoted, so that what was TOML still is.
    """
    content = _PEM.sub(MASK, content)
    content = url(content)
    content = _ASSIGN.sub(_assign, content)
    return _HEADER_BEARER.sub(lambda m: f"{m.group('kind')} {MASK}", content)


def _assign(match: re.Match[str]) -> str:
    value = match.group("value")
    if value.lower() in _HARMLESS or MASK in value:
        return match.group(0)
    if value[0] == "[":
        return f'{match.group("key")}["{MASK}"]'
    if value.startswith(('"""', "'''")):
        return f'{match.group("key")}"{MASK}"'
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match.group('key')}{quote}{MASK}{quote}"
