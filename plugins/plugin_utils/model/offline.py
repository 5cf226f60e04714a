# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of driver package files instead of any repository: what may be asked for, and what file names say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from .containers import Fault

_DEB = re.compile(r"(?P<name>[a-z0-9][a-z0-9.+-]+)_(?P<version>[A-Za-z0-9.+~%:-]+)_(?P<arch>[a-z0-9]+)\.deb\Z")
_RPM = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.+-]*)-(?P<version>[^-/]+)-(?P<release>[^-/]+)"
    r"\.(?P<arch>x86_64|aarch64|noarch)\.rpm\Z")
_SUM = re.compile(r"([0-9a-fA-F]{64})[ \t]+\*?(?:\./)?(\S+)\s*\Z")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}\Z")
_DRIVER = re.compile(r"nvidia-|libnvidia-|cuda-drivers|kmod-nvidia|nvidia_|libcuda1")


def offline(name: str, value: Any) -> dict[str, Any]:
    """Return where the package files are and their checksums: ``{path, on, sha256: {file: digest}}``."""
    if not isinstance(value, Mapping):
        raise Fault(name, value, "a mapping with path, on and sha256")
    for key in value:
        if key not in ("path", "on", "sha256"):
            raise Fault(f"{name}.{key}", value[key], "one of path, on and sha256")
    path, place = value.get("path"), value.get("on", "host")
    if not isinstance(path, str) or not path.startswith("/"):
        raise Fault(f"{name}.path", path, "an absolute path")
    if place not in ("host", "controller"):
        raise Fault(f"{name}.on", place, "host or controller")
    sums = _sums(f"{name}.sha256", value.get("sha256"))
    kinds = {file.rpartition(".")[2] for file in sums}
    if len(kinds) > 1:
        raise Fault(f"{name}.sha256", sorted(sums)[:3], "files of one kind, .deb or .rpm")
    if not any(_DRIVER.match(package) for package in packages(sums)):
        raise Fault(f"{name}.sha256", sorted(sums)[:3], "the driver's package files among them, and what they need")
    return {"path": path.rstrip("/") or "/", "on": str(place), "sha256": sums}


def _sums(where: str, value: Any) -> dict[str, str]:
    """Return file → digest, of a mapping or of the text that sha256sum writes."""
    if isinstance(value, str):
        rows = [(line, _SUM.match(line.strip())) for line in value.splitlines() if line.strip()]
        for line, match in rows:
            if match is None:
                raise Fault(where, line, "lines as sha256sum writes them: 64 hex digits and a file name")
        value = {match.group(2): match.group(1) for _line, match in rows if match is not None}
    if not isinstance(value, Mapping) or not value:
        raise Fault(where, value, "a mapping of file names and their SHA-256, or the text that sha256sum writes")
    for file, digest in value.items():
        if not isinstance(file, str) or "/" in file or _parse(file) is None:
            raise Fault(where, file, "names of package files, such as nvidia-dkms-580_580.178.04-1ubuntu1_amd64.deb")
        if not isinstance(digest, str) or not _DIGEST.match(digest):
            raise Fault(f"{where}.{file}", digest, "the file's SHA-256, 64 hex digits")
    return {str(file): str(digest).lower() for file, digest in value.items()}


def _parse(file: str) -> tuple[str, str] | None:
    match = _DEB.match(file)
    if match is not None:
        return match["name"], unquote(match["version"])
    match = _RPM.match(file)
    return (match["name"], f"{match['version']}-{match['release']}") if match is not None else None


def packages(files: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what the names of package files say: package → versions. rpm's names have no epoch."""
    found: dict[str, list[str]] = {}
    for file in sorted(files, reverse=True):
        row = _parse(file)
        if row is not None:
            found.setdefault(row[0], []).append(row[1])
    return found


def plain(version: str) -> str:
    """Return a version without its epoch."""
    return version.partition(":")[2] or version
