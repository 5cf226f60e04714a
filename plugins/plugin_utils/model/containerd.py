# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be asked for about containerd itself: an archive with checksums, registry hosts.

Each function returns the checked value in its plain type, or raises Fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .containers import Fault

_PARTS = ("containerd", "runc", "cni")
_CAPABILITIES = ("pull", "resolve", "push")
_HOST_KEYS = ("url", "capabilities", "ca", "client", "skip_verify", "override_path")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-(rc|beta|alpha)\.[0-9]+)?")
_URL = re.compile(r"(https?|file)://[^\s\"'@]+")
_REGISTRY = re.compile(r"_default|[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?")


def archive(name: str, value: Any) -> dict[str, dict[str, str]]:
    """``{containerd: {version, url, sha256}, runc: {version, url, sha256}}``; runc may be left to a package."""
    given = _mapping(name, value)
    for key in given:
        if key not in _PARTS:
            raise Fault(f"{name}.{key}", given[key], f"one of {', '.join(_PARTS)}")
    if "containerd" not in given:
        raise Fault(f"{name}.containerd", None, "version, url and sha256 of containerd's archive")
    return {key: _part(f"{name}.{key}", item) for key, item in given.items()}


def _part(name: str, value: Any) -> dict[str, str]:
    given = _mapping(name, value)
    for key in given:
        if key not in ("version", "url", "sha256"):
            raise Fault(f"{name}.{key}", given[key], "one of version, url and sha256")
    version = given.get("version")
    if isinstance(version, float):
        raise Fault(f"{name}.version", version, "a version as text; YAML made a number of it, quote it")
    text = str(version or "").removeprefix("v")
    if not _VERSION.fullmatch(text):
        raise Fault(f"{name}.version", version, 'a release, such as "2.1.9"')
    url, digest = given.get("url"), given.get("sha256")
    if not isinstance(url, str) or not _URL.fullmatch(url):
        raise Fault(f"{name}.url", url, "an address without credentials, https:// or file://")
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", digest.strip()):
        raise Fault(f"{name}.sha256", digest, "the SHA-256 of the file, 64 hex digits")
    return {"version": text, "url": url, "sha256": digest.strip().lower()}


def image(name: str, value: Any) -> str:
    """The reference of an image."""
    text = value if isinstance(value, str) else ""
    if not re.fullmatch(r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}", text) or text.endswith(("/", ":", "@")):
        raise Fault(name, value, "an image with its tag or digest, such as registry.k8s.io/pause:3.10")
    if not re.search(r":[A-Za-z0-9_][A-Za-z0-9._-]*$|@sha256:[0-9a-f]{64}$", text.rpartition("/")[2] or text):
        raise Fault(name, value, "an image with its tag or digest, such as registry.k8s.io/pause:3.10")
    return text


def path(name: str, value: Any) -> str:
    """One absolute folder, or several joined by colons."""
    text = value if isinstance(value, str) else ""
    if not text or any(not re.fullmatch(r"/[^\s\"':]*", one) for one in text.split(":")):
        raise Fault(name, value, "an absolute folder, such as /etc/containerd/certs.d")
    return text


def hosts(name: str, value: Any) -> dict[str, dict[str, Any]]:
    """``{docker.io: {server: …, hosts: [{url: …, capabilities: […], ca: …, skip_verify: …, override_path: …}]}}``."""
    return {_registry(name, key): _entry(f"{name}.{key}", item) for key, item in _mapping(name, value).items()}


def _registry(name: str, key: Any) -> str:
    if not isinstance(key, str) or not _REGISTRY.fullmatch(key):
        raise Fault(name, key, "the name of a registry as images have it, such as docker.io or registry.local:5000, or "
                    "_default")
    return key


def _entry(name: str, value: Any) -> dict[str, Any]:
    given = _mapping(name, value)
    for key in given:
        if key not in ("server", "hosts"):
            raise Fault(f"{name}.{key}", given[key], "one of server and hosts")
    server = given.get("server")
    if server is not None and (not isinstance(server, str) or not _URL.fullmatch(server)):
        raise Fault(f"{name}.server", server, "an address without credentials")
    listed = given.get("hosts") or []
    if not isinstance(listed, (list, tuple)):
        raise Fault(f"{name}.hosts", listed, "a list")
    if server is None and not listed:
        raise Fault(name, value, "server, hosts or both")
    return {"server": server, "hosts": [_host(f"{name}.hosts[{at}]", one) for at, one in enumerate(listed)]}


def _host(name: str, value: Any) -> dict[str, Any]:
    given = _mapping(name, value)
    for key in given:
        if key not in _HOST_KEYS:
            raise Fault(f"{name}.{key}", given[key], f"one of {', '.join(_HOST_KEYS)}; credentials belong into the "
                        "cluster's pull secrets")
    url = given.get("url")
    if not isinstance(url, str) or not _URL.fullmatch(url):
        raise Fault(f"{name}.url", url, "an address without credentials")
    checked: dict[str, Any] = {"url": url}
    capabilities = given.get("capabilities", ["pull", "resolve"])
    if not isinstance(capabilities, (list, tuple)) or not capabilities or any(
            one not in _CAPABILITIES for one in capabilities):
        raise Fault(f"{name}.capabilities", capabilities, f"a list of {', '.join(_CAPABILITIES)}")
    checked["capabilities"] = [str(one) for one in capabilities]
    for key in ("ca", "client"):
        if given.get(key) is not None:
            checked[key] = path(f"{name}.{key}", given[key])
    for key in ("skip_verify", "override_path"):
        flag = given.get(key)
        if flag is not None:
            if not isinstance(flag, bool):
                raise Fault(f"{name}.{key}", flag, "true or false")
            checked[key] = flag
    return checked


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Fault(name, value, "a mapping")
    return value
