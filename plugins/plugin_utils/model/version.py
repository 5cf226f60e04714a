# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions as they are compared here: drivers, kernel releases, dpkg and rpm packages.

Everything is pure and cached. ``parse`` raises :class:`VersionError` that names the text; ``try_parse`` never raises,
whatever it is given. Package versions compare as dpkg and rpm do (Debian policy 5.6.12, rpmvercmp).
"""
from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

_LONGEST = 128
_PRE_RELEASE = 10**9
_DRIVER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})*")
_UPSTREAM = re.compile(r"(?:[0-9]+:)?([0-9]+(?:\.[0-9]+)+)")
_LOOSE = re.compile(r"[vV]?([0-9]{1,18}(?:\.[0-9]{1,18})*)(.*)", re.S)
_KERNEL = re.compile(r"(?P<version>[0-9]{1,9}\.[0-9]{1,9}(?:\.[0-9]{1,9})*)(?P<rest>.*)", re.S)
_EL = re.compile(r"\.(?P<distro>el[0-9]+(?:_[0-9]+)?)(?:\.[a-z][a-z0-9]*)*?\.(?P<arch>x86_64|aarch64|ppc64le|s390x)"
                 r"(?:[+.](?P<flavour>[a-z0-9+.-]+))?$")
_DEB = re.compile(r"\+(?P<distro>deb[0-9]+|bpo)(?:\.[0-9]+)*[+-](?P<flavour>.+)$")
_DASH = re.compile(r"-(?P<abi>[0-9]{1,9}(?:\.[0-9]{1,9})*)(?:\.(?P<distro>deb[0-9]+)\.(?P<more>[0-9]{1,9}))?"
                   r"(?:-(?P<flavour>.+))?$")
_FLAVOUR_ONLY = re.compile(r"[+-](?P<flavour>.+)$")
_RPM_PART = re.compile(r"([0-9]+|[a-zA-Z]+|~|\^)")


class VersionError(ValueError):
    """A text that is no version; the message names the text."""


class DriverVersion(tuple[int, ...]):
    """A driver version as a tuple that compares numerically; ``str()`` gives back the text, ``.branch`` the branch."""

    text: str
    branch: str

    def __new__(cls, text: str) -> DriverVersion:
        if not isinstance(text, str) or len(text) > _LONGEST or not _DRIVER.fullmatch(text):
            raise VersionError(f"not a driver version: {text!r} (expected digits and dots, such as 580.95.05)")
        numbers = [int(part) for part in text.split(".")]
        while len(numbers) > 1 and numbers[-1] == 0:  # 455.32.00 is 455.32
            numbers.pop()
        self = super().__new__(cls, tuple(numbers))
        self.text = text
        self.branch = text.split(".", 1)[0]
        return self

    def __getnewargs__(self) -> tuple[str]:  # copy and pickle
        return (self.text,)

    def __str__(self) -> str:
        return self.text


@functools.lru_cache(maxsize=8192)
def _parse_text(text: str) -> DriverVersion | None:
    try:
        return DriverVersion(text)
    except VersionError:
        return None


def try_parse(value: object) -> DriverVersion | None:
    """``"580.95.05"`` as a tuple (580, 95, 5), or None for anything that is no dotted number."""
    return _parse_text(value) if isinstance(value, str) else None


def parse(value: object) -> DriverVersion:
    """``parse("580.95.05") == (580, 95, 5)``. Works for any purely numeric version (CUDA, toolkit without suffix)."""
    parsed = try_parse(value)
    if parsed is None:
        raise VersionError(f"not a driver version: {value!r} (expected digits and dots, such as 580.95.05)")
    return parsed


def branch(version: str) -> str:
    """Branch of a driver version: ``580.95.05`` → ``580``."""
    return parse(version).branch


def branch_of(version: str) -> str:
    """Branch of a driver version, without looking whether it is one: ``580.95.05`` → ``580``."""
    return version.split(".", 1)[0]


def upstream(package_version: object) -> str | None:
    """Upstream driver version of a package version: ``3:580.95.05-1.el9`` → ``580.95.05``; None if there is none."""
    found = _UPSTREAM.match(package_version) if isinstance(package_version, str) else None
    return found.group(1) if found else None


def try_loose(value: object) -> tuple[int, ...] | None:
    """Numbers of a version with prefix or suffix, None if it is none: see :func:`loose`."""
    found = _LOOSE.match(value.strip()) if isinstance(value, str) and len(value) <= _LONGEST else None
    if not found:
        return None
    numbers = tuple(int(part) for part in found.group(1).split("."))
    pre = re.match(r"[-~.]?(?:rc|beta|alpha|pre)", found.group(2))
    return (*numbers[:-1], numbers[-1] - 1, _PRE_RELEASE) if pre else numbers


def loose(text: str) -> tuple[int, ...]:
    """Numbers of a version with prefix or suffix: ``v26.3.2`` → (26, 3, 2).

    A pre-release sorts below its release and above the release before.
    """
    numbers = try_loose(text)
    if numbers is None:
        raise VersionError(f"not a version: {text!r}")
    return numbers


@dataclasses.dataclass(frozen=True)
class KernelRelease:
    """What ``uname -r`` prints, taken apart.

    version: upstream numbers as printed, three of them at least ((6, 1, 0) for Debian 12's 6.1.0-50-amd64).
    abi: numbers that a distribution counts up ((50,), (503, 40, 1)); () where the version itself counts.
    distro: ``el9_5``, ``deb13``, ``bpo`` or None where the release does not say.
    flavour: ``generic``, ``amd64``, ``nvidia-64k``, ``default``, …; "" if there is none.
    """

    text: str
    version: tuple[int, ...]
    abi: tuple[int, ...] = ()
    distro: str | None = None
    flavour: str = ""

    @property
    def series(self) -> tuple[int, int]:
        """Upstream series, such as (6, 12)."""
        return self.version[0], self.version[1]

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sort key among releases of one distribution and flavour."""
        return self.version, self.abi

    def __lt__(self, other: KernelRelease) -> bool:
        return self.key < other.key

    def succeeds(self, other: KernelRelease) -> bool:
        """Say whether it is a newer one of the same flavour."""
        return self.flavour == other.flavour and other.key < self.key

    @staticmethod
    def try_parse(value: object) -> KernelRelease | None:
        """The parsed release, or None for anything that is none; never raises."""
        return _kernel(value) if isinstance(value, str) and len(value) <= _LONGEST else None

    @staticmethod
    def parse(value: object) -> KernelRelease:
        """Take a release apart; raises VersionError for what does not begin with a kernel version."""
        parsed = KernelRelease.try_parse(value)
        if parsed is None:
            raise VersionError(f"not a kernel release: {value!r} (expected what uname -r prints)")
        return parsed


KernelVersion = KernelRelease


@functools.lru_cache(maxsize=8192)
def _kernel(text: str) -> KernelRelease | None:
    found = _KERNEL.fullmatch(text)
    if not found:
        return None
    numbers = [int(part) for part in found["version"].split(".")]
    numbers += [0] * (3 - len(numbers))
    version, rest = tuple(numbers), found["rest"]
    if el := _EL.search(rest):
        abi = tuple(int(part[:9]) for part in re.findall(r"[0-9]+", rest[:el.start()]))
        return KernelRelease(text, version, abi, el["distro"], el["flavour"] or "")
    if deb := _DEB.match(rest):
        return KernelRelease(text, version, (), deb["distro"], deb["flavour"])
    if dash := _DASH.match(rest):
        abi = tuple(int(part) for part in (*dash["abi"].split("."), *([dash["more"]] if dash["more"] else [])))
        return KernelRelease(text, version, abi, dash["distro"], dash["flavour"] or "")
    if only := _FLAVOUR_ONLY.match(rest):
        return KernelRelease(text, version, (), None, only["flavour"])
    return KernelRelease(text, version, (), None, rest.lstrip("."))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _split_evr(text: str, last: bool) -> tuple[int, str, str]:
    """Epoch, version, revision. A text that is no version is taken as it is: package managers do so, too."""
    epoch, colon, rest = text.partition(":")
    if not colon or not (epoch.isascii() and epoch.isdigit()):
        epoch, rest = "0", text
    version, dash, revision = rest.rpartition("-") if last else rest.partition("-")
    return (int(epoch[:9]), version, revision) if dash else (int(epoch[:9]), rest, "")


def _deb_order(char: str) -> int:
    if char == "~":
        return -1
    return ord(char) if char.isalpha() else ord(char) + 256


def _take(text: str, pattern: str) -> tuple[str, str]:
    found = re.match(pattern, text)
    size = found.end() if found else 0
    return text[:size], text[size:]


def _number(digits: str) -> int:
    return int(digits[:64] or 0)


def _deb_part(left: str, right: str) -> int:
    """Compare one part of a Debian version (upstream or revision) as dpkg does."""
    while left or right:
        (ltext, left), (rtext, right) = _take(left, r"[^0-9]*"), _take(right, r"[^0-9]*")
        for index in range(max(len(ltext), len(rtext))):
            one = _deb_order(ltext[index]) if index < len(ltext) else 0
            two = _deb_order(rtext[index]) if index < len(rtext) else 0
            if one != two:
                return _sign(one - two)
        (lnum, left), (rnum, right) = _take(left, r"[0-9]*"), _take(right, r"[0-9]*")
        if diff := _sign(_number(lnum) - _number(rnum)):
            return diff
    return 0


def _rpm_one(a: str | None, b: str | None) -> int:
    """Two different segments of an rpm version; None stands past the end of one."""
    if "~" in (a, b):
        return -1 if a == "~" else 1
    if "^" in (a, b):  # above the end of the other version, below anything that goes on
        return (1 if b is None else -1) if a == "^" else (-1 if a is None else 1)
    if a is None or b is None:
        return -1 if a is None else 1
    if a.isdigit() != b.isdigit():
        return 1 if a.isdigit() else -1
    return _sign(_number(a) - _number(b)) if a.isdigit() else (a > b) - (a < b)


def _rpm_part(left: str, right: str) -> int:
    """rpmvercmp: segments of digits or letters; ``~`` sorts below everything, ``^`` above the end alone."""
    one, two = _RPM_PART.findall(left), _RPM_PART.findall(right)
    for index in range(max(len(one), len(two))):
        a = one[index] if index < len(one) else None
        b = two[index] if index < len(two) else None
        if a != b and (diff := _rpm_one(a, b)):
            return diff
    return 0


@functools.lru_cache(maxsize=8192)
def deb_compare(left: str, right: str) -> int:
    """-1, 0 or 1, as ``dpkg --compare-versions`` has it."""
    one, two = _split_evr(left, last=True), _split_evr(right, last=True)
    return _sign(one[0] - two[0]) or _deb_part(one[1], two[1]) or _deb_part(one[2], two[2])


@functools.lru_cache(maxsize=8192)
def rpm_compare(left: str, right: str) -> int:
    """-1, 0 or 1 for ``[epoch:]version[-release]``; a missing release matches any."""
    one, two = _split_evr(left, last=False), _split_evr(right, last=False)
    first = _sign(one[0] - two[0]) or _rpm_part(one[1], two[1])
    return first or (_rpm_part(one[2], two[2]) if one[2] and two[2] else 0)


def compare(left: str, right: str, manager: str) -> int:
    """Compare package versions of a package manager (``apt``, ``dnf``, ``zypper``): -1, 0 or 1."""
    return deb_compare(left, right) if manager == "apt" else rpm_compare(left, right)


package_compare = compare


def sort_key(manager: str) -> Callable[[str], Any]:
    """A ``key=`` function that sorts package versions of a package manager, oldest first."""
    return functools.cmp_to_key(lambda left, right: compare(left, right, manager))
