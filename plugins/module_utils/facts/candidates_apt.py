# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels that ``apt-get dist-upgrade`` would bring.

Source: apt-get(8) (``--simulate``, ``--ignore-hold``), apt.conf(5) (``Dir::Etc::PreferencesParts``).
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..packages import families
from ..packages.apt_files import PREFERENCES_PATH
from . import aptconf, aptlists, dpkg, made_for
from .candidate import Candidate, ours
from .context import Context
from .kernel import natural
from .system import arch as machine_of

_PARTS = "/etc/apt/preferences.d"
# Inst NAME [OLD] (NEW Origin:Version/Suite, … [ARCH])
_INST = re.compile(r"^Inst (?P<name>\S+)(?: \[[^\]]*\])? \((?P<version>\S+)(?P<origins>.*?) \[(?P<arch>[a-z0-9]+)\]\)")
_IMAGE = re.compile(r"^linux-image-(?:unsigned-)?(?P<release>\d.*)$")
_BASE = r"\d+\.\d+(?:\.\d+)*(?:\+deb\d+)?(?:-\d+)?"
_RELEASE = re.compile(rf"^(?P<base>{_BASE})-(?P<flavour>[a-z].*)$")
# modules of the driver have decisions of their own
_DRIVER = re.compile(r"^linux-(?:modules|objects|signatures)-nvidia-(?:\d|fs-)")
_SECURITY = re.compile(r"-security$|^debian-security", re.I)


@dataclass(frozen=True)
class Move:
    """One package that would be unpacked."""

    name: str
    version: str
    suites: tuple[str, ...]


def read(ctx: Context, installed: set[str]) -> tuple[list[Candidate], set[str]]:
    """Candidates, and the names that people hold. Raises OSError or ValueError when apt does not answer."""
    kept = _kept(ctx)
    found = candidates(simulate(ctx), installed)
    found += _older(ctx, found, installed)
    if found:
        _modules(ctx, found)
    return found, kept


def _kept(ctx: Context) -> set[str]:
    """Kernel packages that a person holds, not we."""
    own = ours(ctx.tree, "holds")
    held = {one.name for one in dpkg.packages(ctx.tree) if one.want == "hold" and one.there}
    return {name for name in held - own if families.kernel_part(name) not in (None, "tools")}


def simulate(ctx: Context) -> list[Move]:
    """What a full upgrade would unpack without our holds and our preferences: theirs are left to it in a copy."""
    with _preferences(ctx) as directory:
        argv = ["apt-get", "--simulate", "--ignore-hold", "-o", "Debug::NoLocking=1", "-o", "APT::Get::Show-Versions=0"]
        argv += ["-o", f"Dir::Etc::PreferencesParts={directory}"] if directory else []
        answer = ctx.run([*argv, "dist-upgrade"], timeout=max(ctx.command_timeout, 60.0))
    if not answer.ok:
        raise ValueError(answer.why("apt-get --simulate dist-upgrade"))
    return moves(answer.out)


@contextmanager
def _preferences(ctx: Context) -> Iterator[str | None]:
    """A directory with everybody's preferences but ours; None while we have none."""
    own = os.path.basename(PREFERENCES_PATH)
    files = ctx.tree.names(_PARTS) if ctx.tree.isdir(_PARTS) else []
    if own not in files:
        yield None
        return
    directory = tempfile.mkdtemp(prefix="baremetal-nvidia-")
    try:
        os.chmod(directory, 0o755)
        for name in files:
            if name != own and ctx.tree.isfile(f"{_PARTS}/{name}"):
                shutil.copyfile(ctx.tree.real(f"{_PARTS}/{name}"), os.path.join(directory, name))
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def moves(text: str) -> list[Move]:
    """The lines ``Inst …`` of a simulation."""
    found = []
    for line in text.splitlines():
        match = _INST.match(line)
        if match:
            words = [word.strip() for word in match.group("origins").split(",") if word.strip()]
            suites = tuple(word.rsplit("/", 1)[-1].rsplit(":", 1)[-1] for word in words)
            marks = tuple("debian-security" for word in words if word.lower().startswith("debian-security"))
            found.append(Move(match.group("name").split(":")[0], match.group("version"), suites + marks))
    return found


def candidates(found: Iterable[Move], installed: set[str]) -> list[Candidate]:
    """One for each kernel image that would come in and is not there yet, with the packages that belong to it."""
    rows = list(found)
    kernels: dict[str, Candidate] = {}
    for move in rows:
        match = _IMAGE.match(move.name)
        if match and _RELEASE.match(match.group("release")) and match.group("release") not in installed:
            suites = [suite for suite in move.suites if suite != "debian-security"]
            kernels[match.group("release")] = Candidate(
                match.group("release"), security=_secure(move.suites), origin=suites[0] if suites else None
            )
    for move in rows:
        for kernel in _kernels_of(move, kernels):
            kernel.packages[move.name] = move.version
    return list(kernels.values())


def _secure(suites: Iterable[str]) -> bool:
    return any(_SECURITY.search(suite) for suite in suites)


def _kernels_of(move: Move, kernels: dict[str, Candidate]) -> list[Candidate]:
    part = families.kernel_part(move.name)
    if _DRIVER.match(move.name) or part == "tools" or (part is None and "-headers-" not in move.name):
        return []
    named = [kernel for release, kernel in kernels.items() if _about(move.name, release)]
    if named or re.search(r"-\d+\.\d+\.\d+", move.name):  # -hwe-22.04 is no kernel's number
        return named
    # a meta package: its version tells the kernel with Ubuntu, its flavour with Debian
    by_version = [kernel for release, kernel in kernels.items() if _versioned(move.version, _base(release))]
    if by_version:
        return [kernel for kernel in by_version if _flavour(kernel.release) in move.name]
    return [kernel for release, kernel in kernels.items() if move.name.endswith(f"-{_flavour(release)}")]


def _about(name: str, release: str) -> bool:
    """Whether a name is about a release: has it at its end, or its number without any flavour."""
    base = _base(release)
    return name.endswith((f"-{release}", f"-{base}", f"-{base}-common"))


def _versioned(version: str, base: str) -> bool:
    dotted, wanted = version.replace("-", "."), base.replace("-", ".")
    return dotted == wanted or dotted.startswith((f"{wanted}.", f"{wanted}~"))


def _base(release: str) -> str:
    match = _RELEASE.match(release)
    return match.group("base") if match else release


def _flavour(release: str) -> str:
    match = _RELEASE.match(release)
    return match.group("flavour") if match else ""


def _line(release: str) -> str:
    """6.8 of 6.8.0-60-generic: what GA and HWE kernels of one flavour are told apart by."""
    return ".".join(release.split(".")[:2])


# ---- older ones that the lists still have


def _older(ctx: Context, found: list[Candidate], installed: set[str]) -> list[Candidate]:
    """Kernels between what is installed and what would come, of the same line and flavour, with the same packages."""
    if not found:
        return []
    rows: list[Candidate] = []
    patterns = {one.release: _patterns(one) for one in found}
    offers = _offers(ctx, [pattern for group in patterns.values() for pattern in group])
    for one in found:
        same = [
            release for release in installed
            if _flavour(release) == _flavour(one.release) and _line(release) == _line(one.release)
        ]  # fmt: skip
        floor = max(map(natural, same), default=natural(_line(one.release)))
        groups: dict[str, dict[str, tuple[str, list[str]]]] = {}
        for name, versions in offers.items():
            for pattern in patterns[one.release]:
                match = pattern.match(name)
                if match:
                    version = max(versions, key=aptlists.debversion.key)
                    groups.setdefault(match.group("base"), {})[name] = (version, versions[version])
        for base, packages in groups.items():
            release = f"{base}-{_flavour(one.release)}"
            image = next((row for name, row in packages.items() if _image_of(name, release)), None)
            if image and floor < natural(release) < natural(one.release) and _line(release) == _line(one.release):
                suites = image[1]
                versions_of = {name: row[0] for name, row in packages.items()}
                rows.append(Candidate(release, versions_of, _secure(suites), suites[0]))
    known = {one.release for one in found}
    return [row for row in {row.release: row for row in rows}.values() if row.release not in known]


def _image_of(name: str, release: str) -> bool:
    return name in (f"linux-image-{release}", f"linux-image-unsigned-{release}")


def _patterns(one: Candidate) -> list[re.Pattern[str]]:
    """The names of a candidate's packages, with any number where its own stands; metas are left out."""
    base = _base(one.release)
    return [
        re.compile("^" + re.escape(name).replace(re.escape(base), f"(?P<base>{_BASE})") + "$")
        for name in one.packages
        if name.count(base) == 1
    ]


def _modules(ctx: Context, found: list[Candidate]) -> None:
    """Set the ready modules that each kernel has: name → version → the driver that it is made for."""
    tree = ctx.tree
    arch = dpkg.native(tree, machine_of(tree))
    for one in found:
        one.modules = {}

    def wanted(name: str) -> bool:
        return any(name.endswith(f"-{one.release}") for one in found)

    for name, version, stanza in aptlists.stanzas(ctx, aptconf.sources(tree), arch, made_for.PREFIX, wanted):
        driver = made_for.driver(stanza)
        for one in found:
            if driver and one.modules is not None and name.endswith(f"-{one.release}"):
                one.modules.setdefault(name, {})[version] = driver


def _offers(ctx: Context, patterns: list[re.Pattern[str]]) -> dict[str, dict[str, list[str]]]:
    """Package → version → suites, of all names that match one of the patterns."""
    tree = ctx.tree
    arch = dpkg.native(tree, machine_of(tree))

    def wanted(name: str) -> bool:
        return any(pattern.match(name) for pattern in patterns)

    found: dict[str, dict[str, list[str]]] = {}
    for source in aptconf.sources(tree):
        for suite in source.suites:
            mark = "debian-security" if "debian-security" in source.url else suite
            one = dataclasses.replace(source, suites=[suite], id=mark)
            for name, versions in aptlists.offers(ctx, [one], arch, ("linux-",), wanted).items():
                for version in versions:
                    found.setdefault(name, {}).setdefault(version, []).append(suite)
                    if mark != suite:
                        found[name][version].append(mark)
    return found
