# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernels the matrix knows of a system: for questions that name none."""

from __future__ import annotations

import re
from typing import Any

from ..matrix.systems import canonical, matches
from ..model.version import KernelRelease

_FIRST = re.compile(r"[0-9][0-9.]*(-[0-9]+)?")
_ARCHES = {"x86_64": "amd64", "aarch64": "arm64"}


def known_kernels(matrix: Any, os_id: str, os_version: str, arch: str = "x86_64") -> list[str]:
    """Return kernel releases of a system, oldest first: the newest of each series that a row names in full, and the
    first of each line of which no row names one."""
    found: dict[tuple[Any, ...], KernelRelease] = {}
    for text in _named(matrix, os_id, os_version, arch):
        release = KernelRelease.try_parse(text)
        if release is not None and (release.series not in found or found[release.series] < release):
            found[release.series] = release
    told = {id(matrix.kernel_line(os_id, os_version, release.text)) for release in found.values()}
    lines = [row for row in matrix.tables["kernel_lines"] if matches(row.os, os_id, os_version)]
    own = [row for row in lines if row.line == os_version] if canonical(os_id) == "rhel" else []
    for row in own or lines:
        first = _FIRST.search(str(row.kernels))
        release = KernelRelease.try_parse(_full(first[0])) if first and id(row) not in told else None
        if release is not None:
            found.setdefault((*release.series, *release.abi[:1]), release)
    return [release.text for release in sorted(found.values())]


def _full(number: str) -> str:
    return number if number.count(".") > 1 else f"{number}.0"


def _named(matrix: Any, os_id: str, os_version: str, arch: str) -> list[str]:
    tables, suffix = matrix.tables, _ARCHES.get(arch, arch)
    prebuilt = [row for row in tables["kernel_prebuilt"] if matches(row.os, os_id, os_version)]
    found = [f"{row.kernel}-{row.kernel_flavour}" for row in prebuilt]
    for row in tables["kernel_abis"]:
        if matches(row.os, os_id, os_version):
            found += [f"{row.series}.0-{abi}-{suffix}" for abi in row.abis]
    mark = f"deb{os_version}" if os_id == "debian" else None
    built = [KernelRelease.try_parse(row.release) for row in tables["kernel_builds"]]
    return found + [release.text for release in built if release is not None and mark and release.distro == mark]
