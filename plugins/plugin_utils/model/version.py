# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of drivers, kernels and packages: parsed once, compared by what they mean.

Driver and CUDA versions compare as tuples of integers. Kernel releases keep the upstream part apart from the
distribution's own count. Package versions compare as dpkg and rpm do (Debian policy 5.6.12, rpmvercmp).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, total_ordering

_DOTTED = re.compile(r"\d+(?:\.\d+)*\Z")
_RELEASE = re.compile(r"(\d+(?:\.\d+)+)(.*)\Z")
_ABI = re.compile(r"[-.](\d+)")
_UPSTREAM = re.compile(r"(?:\d+:)?([0-9][0-9.]*[0-9]|[0-9])")


class VersionError(ValueError):
    """A text that is no version; the message names the text."""


@lru_cache(maxsize=8192)
def _parse_text(text: str) -> tuple[int, ...] | None:
    if len(text) > 64 or not text.isascii() or not _DOTTED.match(text):
        return None
    return tuple(int(part) for part in text.split("."))


def try_parse(value: object) -> tuple[int, ...] | None:
    """Return ``"580.95.05"`` as ``(580, 95, 5)``, or None for anything that is no dotted number."""
    return _parse_text(value) if isinstance(value, str) else None


def parse(value: object) -> tuple[int, ...]:
    """Return ``"580.95.05"`` as ``(580, 95, 5)``; raise :class:`VersionError` for anything else."""
    parsed = try_parse(value)
    if parsed is None:
        raise VersionError(f"{value!r} is no version: a dotted number such as 580.95.05 is wanted")
    return parsed


def branch_of(version: str) -> str:
    """Return the branch of a driver version: ``580.95.05`` → ``580``."""
    return version.split(".", 1)[0]


def upstream(package_version: object) -> str | None:
    """Return the upstream version in a package version (``3:580.178.04-1.el9`` → ``580.178.04``), None without one."""
    if not isinstance(package_version, str):
        return None
    found = _UPSTREAM.match(package_version)
    return found.group(1) if found else None


@total_ordering
@dataclass(frozen=True)
class KernelVersion:
    """What ``uname -r`` prints, taken apart: ``5.15.0-113-generic`` has upstream 5.15.0, abi 113, suffix generic."""

    release: str
    upstream: tuple[int, ...]
    abi: tuple[int, ...]
    suffix: str

    @classmethod
    def try_parse(cls, value: object) -> KernelVersion | None:
        """Return the parsed release, or None for anything that is none."""
        return _parse_release(value) if isinstance(value, str) else None

    @classmethod
    def parse(cls, value: object) -> KernelVersion:
        """Return the parsed release; raise :class:`VersionError` for anything else."""
        parsed = cls.try_parse(value)
        if parsed is None:
            raise VersionError(f"{value!r} is no kernel release: what uname -r prints is wanted")
        return parsed

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...], str]:
        """What releases compare by; only releases of one distribution compare with meaning below the upstream part."""
        return (self.upstream, self.abi, self.suffix)

    @property
    def series(self) -> str:
        """The upstream series, such as ``5.15``."""
        return ".".join(str(number) for number in self.upstream[:2])

    def __lt__(self, other: KernelVersion) -> bool:
        return self.key < other.key


@lru_cache(maxsize=8192)
def _parse_release(text: str) -> KernelVersion | None:
    found = _RELEASE.match(text) if len(text) <= 128 and text.isascii() else None
    if not found:
        return None
    numbers = tuple(int(part) for part in found.group(1).split(".")[:4] if len(part) < 10)
    rest, abi = found.group(2), []
    while match := _ABI.match(rest):
        if not abi and rest[0] != "-":
            break
        abi.append(int(match.group(1)[:9]))
        rest = rest[match.end() :]
    return KernelVersion(release=text, upstream=numbers, abi=tuple(abi), suffix=rest.lstrip("-.")) if numbers else None


def _split_evr(text: str) -> tuple[int, str, str]:
    epoch, colon, rest = text.partition(":")
    if not colon or not epoch.isdigit():
        epoch, rest = "0", text
    version, dash, revision = rest.rpartition("-")
    return (int(epoch[:9]), version, revision) if dash else (int(epoch[:9]), rest, "")


def _deb_order(char: str) -> int:
    if char == "~":
        return -1
    return ord(char) if char.isalpha() else ord(char) + 256


def _deb_part(left: str, right: str) -> int:
    i = j = 0
    while i < len(left) or j < len(right):
        while (i < len(left) and not left[i].isdigit()) or (j < len(right) and not right[j].isdigit()):
            a = _deb_order(left[i]) if i < len(left) and not left[i].isdigit() else 0
            b = _deb_order(right[j]) if j < len(right) and not right[j].isdigit() else 0
            if a != b:
                return -1 if a < b else 1
            i, j = i + 1, j + 1
        i_end, j_end = i, j
        while i_end < len(left) and left[i_end].isdigit():
            i_end += 1
        while j_end < len(right) and right[j_end].isdigit():
            j_end += 1
        a, b = _number(left[i:i_end]), _number(right[j:j_end])
        if a != b:
            return -1 if a < b else 1
        i, j = i_end, j_end
    return 0


def _number(digits: str) -> int:
    return int(digits[:64]) if digits and digits.isascii() else 0


_RPM_TOKEN = re.compile(r"[0-9]+|[A-Za-z]+|~|\^")


def _rpm_part(left: str, right: str) -> int:
    a_tokens, b_tokens = _RPM_TOKEN.findall(left), _RPM_TOKEN.findall(right)
    for a, b in zip(a_tokens, b_tokens, strict=False):
        if a == b:
            continue
        for mark, sign in (("~", -1), ("^", 1)):
            if mark in (a, b):
                return sign if a == mark else -sign
        if a.isdigit() != b.isdigit():
            return 1 if a.isdigit() else -1
        if a.isdigit():
            if _number(a) != _number(b):
                return -1 if _number(a) < _number(b) else 1
        else:
            return -1 if a < b else 1
    if len(a_tokens) == len(b_tokens):
        return 0
    longer, sign = (a_tokens, 1) if len(a_tokens) > len(b_tokens) else (b_tokens, -1)
    return -sign if longer[min(len(a_tokens), len(b_tokens))] == "~" else sign


def _compare(left: str, right: str, part: Callable[[str, str], int]) -> int:
    a, b = _split_evr(left), _split_evr(right)
    if a[0] != b[0]:
        return -1 if a[0] < b[0] else 1
    return part(a[1], b[1]) or part(a[2], b[2])


def deb_compare(left: str, right: str) -> int:
    """Compare two Debian versions: -1, 0 or 1."""
    return _compare(left, right, _deb_part)


def rpm_compare(left: str, right: str) -> int:
    """Compare two ``epoch:version-release`` texts as rpm does: -1, 0 or 1."""
    return _compare(left, right, _rpm_part)


def package_compare(left: str, right: str, manager: str) -> int:
    """Compare two package versions as their package manager (apt, dnf, zypper) does: -1, 0 or 1."""
    return deb_compare(left, right) if manager == "apt" else rpm_compare(left, right)
