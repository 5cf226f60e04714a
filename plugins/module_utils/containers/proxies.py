# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy for one repository, as each package manager is told of it, and for what modules fetch themselves.

apt: ``Acquire::http::Proxy::HOST`` in a file beside the source. dnf: ``proxy=`` in the section. zypper: parameters of
the address, which libzypp takes off before it asks.

Source: apt-transport-http(1), dnf.conf(5), libzypp's documentation of URLs.
"""
from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

_NAMES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
_URI = re.compile(r"(?im)^uris:\s*(.*)$")
_BASE = re.compile(r"(?m)^(baseurl=\S+)$")


def apt_path(source: str) -> str:
    """The file of apt's configuration that goes with a source file."""
    return f"/etc/apt/apt.conf.d/51{os.path.basename(source).rpartition('.')[0]}-proxy"


def apt_text(content: str, proxy: str) -> str:
    """What that file says, for the hosts that the source file names."""
    hosts = [host for match in _URI.findall(content) for word in match.split() if (host := urlsplit(word).hostname)]
    lines = [f'Acquire::{scheme}::Proxy::{host} "{proxy}";' for host in dict.fromkeys(hosts)
             for scheme in ("http", "https")]
    return "\n".join(["// Managed by the Ansible collection baremetal.nvidia: changes are overwritten.", *lines, ""])


def repo_text(content: str, path: str, proxy: str) -> str:
    """The text of a .repo file with the proxy in each section."""
    if path.startswith("/etc/zypp/"):
        parts = urlsplit(proxy)
        port = f"&proxyport={parts.port}" if parts.port else ""
        return _BASE.sub(lambda match: f"{match.group(1)}?proxy={parts.hostname}{port}", content)
    return _BASE.sub(lambda match: f"{match.group(1)}\nproxy={proxy}", content)


@contextlib.contextmanager
def through(proxy: str | None) -> Iterator[None]:
    """What is fetched inside goes through ``proxy``, whatever the environment says; None leaves it to that."""
    if not proxy:
        yield
        return
    before = {name: os.environ.pop(name) for name in _NAMES if name in os.environ}
    os.environ.update({"http_proxy": proxy, "https_proxy": proxy})
    try:
        yield
    finally:
        for name in _NAMES:
            os.environ.pop(name, None)
        os.environ.update(before)
