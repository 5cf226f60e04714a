# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rpm database, the order of rpm versions, and .repo files: what dnf and zypper have in common.

Source: rpm(8) query formats, rpmio/rpmvercmp.c, dnf.conf(5), zypper(8).
"""

from __future__ import annotations

import configparser
import contextlib
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import names
from .context import Context
from .kernel import images as kernel_images
from .masking import url as masked_url
from .system import arch as machine_of
from .system import os_release
from .tree import Tree

QUERY = "%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}-%{RELEASE}\\t%{ARCH}\\n"
_DATABASES = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")
_MOST_SECONDS = 20.0
# several versions of these may be installed side by side
_SIDE_BY_SIDE = re.compile(r"^(?:kernel|kmod|gpg-pubkey|nvidia-.*-kmp|nvidia-open-driver).*$")
_IMAGES = re.compile(r"^kernel(?:-(?:uek|rt|64k|default|azure|ml|lt|longterm)(?:-base)?)?(?:-core)?$|^kernel6\.\d+$")
_HEADERS = re.compile(r"^kernel(?:-(?:uek|rt|64k|default|azure|ml|lt|longterm))?-devel$|^kernel6\.\d+-devel$")


@dataclass(frozen=True)
class Rpm:
    """One installed package; ``version`` is VERSION-RELEASE, ``epoch`` 0 where there is none."""

    name: str
    epoch: int
    version: str
    arch: str

    @property
    def evr(self) -> str:
        """As dnf prints it: the epoch only where it is not 0."""
        return f"{self.epoch}:{self.version}" if self.epoch else self.version


def query(ctx: Context) -> list[Rpm]:
    """All installed packages. Raises ValueError when rpm gives no answer."""
    argv = ["rpm", "-qa", "--queryformat", QUERY, *database(ctx.tree)]
    answer = ctx.run(argv, timeout=max(ctx.command_timeout, _MOST_SECONDS))
    if not answer.ok:
        raise ValueError(answer.why("rpm"))
    return parse(answer.out)


def database(tree: Tree) -> list[str]:
    """What rpm has to be told to read the tree's database. Raises ValueError when there is none."""
    if tree.is_host:
        return []
    found = next((path for path in _DATABASES if tree.isdir(path)), None)
    if found is None:
        raise ValueError("the tree has no rpm database")
    return ["--dbpath", tree.real(found)]


def parse(text: str) -> list[Rpm]:
    rows = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4:
            rows.append(Rpm(fields[0], int(fields[1]) if fields[1].isdigit() else 0, fields[2], fields[3]))
    return rows


def put_installed(ctx: Context, found: list[Rpm], releases: Iterable[str]) -> None:
    """``packages.installed`` (the newest of several versions), ``broken`` and the kernels' owners."""
    native = _machine(ctx.tree) or _commonest(found)
    rows: dict[str, str] = {}
    for one in sorted(found, key=lambda row: (row.name, key(row.evr))):
        if names.matters(one.name):
            name = one.name if one.arch in (native, "noarch", "(none)") else f"{one.name}.{one.arch}"
            rows[name] = one.evr
    ctx.set("packages.installed", rows)
    ctx.set("packages.broken", duplicates(found))
    ctx.set("kernel_packages", {release: owners(found, release) for release in releases})


def _machine(tree: Tree) -> str | None:
    try:
        return machine_of(tree)
    except ValueError:
        return None


def _commonest(found: list[Rpm]) -> str | None:
    """The architecture of most packages: that of a tree whose programs do not tell it."""
    machines = [one.arch for one in found if one.arch not in ("noarch", "(none)")]
    return max(set(machines), key=machines.count) if machines else None


def duplicates(found: list[Rpm]) -> list[str]:
    """Packages of which two versions are installed although only one can be: what a cut-off transaction leaves."""
    seen: dict[tuple[str, str], int] = {}
    for one in found:
        if not _SIDE_BY_SIDE.match(one.name):
            seen[(one.name, one.arch)] = seen.get((one.name, one.arch), 0) + 1
    return sorted({name for (name, _arch), count in seen.items() if count > 1})


def owners(found: list[Rpm], release: str) -> dict[str, str | None]:
    """``{image, headers}``: NAME-VERSION-RELEASE.ARCH of the packages that a kernel came with, null for none."""
    images = [one for one in found if _IMAGES.match(one.name) and _fits(one, release)]
    headers = [one for one in found if _HEADERS.match(one.name) and _fits(one, release)]
    images.sort(key=lambda one: not one.name.endswith("-core"))
    return {"image": _full(images), "headers": _full(headers)}


def _fits(one: Rpm, release: str) -> bool:
    """5.14.0-503.el9.x86_64 by its own name; 6.4.0-150600.23.47-default by one that was rebuilt (….47.2)."""
    bare = re.sub(r"\+(?:64k|rt|debug)$", "", release)
    if f"{one.version}.{one.arch}" == bare or one.version == bare:
        return True
    base, mark, flavour = release.rpartition("-")
    if not mark or not flavour.isalpha() or f"-{flavour}" not in one.name:
        return False
    return one.version == base or one.version.startswith(f"{base}.")


def _full(rows: list[Rpm]) -> str | None:
    return f"{rows[0].name}-{rows[0].version}.{rows[0].arch}" if rows else None


# ---- order of versions


def compare(left: str, right: str) -> int:
    """Negative, zero or positive: EPOCH:VERSION-RELEASE as rpm orders them; a missing epoch is 0."""
    for one, other in zip(_split(left), _split(right)):
        order = vercmp(one, other)
        if order:
            return order
    return 0


key = functools.cmp_to_key(compare)


def _split(evr: str) -> tuple[str, str, str]:
    epoch, mark, rest = evr.partition(":")
    if not mark:
        epoch, rest = "0", evr
    version, _mark, release = rest.partition("-")
    return epoch, version, release


def vercmp(left: str, right: str) -> int:
    """rpmvercmp: runs of digits or letters, all else separates; ``~`` sorts before the end, ``^`` after it."""
    pattern = re.compile(r"\d+|[a-zA-Z]+|~|\^")
    ours, theirs = pattern.findall(left), pattern.findall(right)
    for index in range(max(len(ours), len(theirs))):
        one = ours[index] if index < len(ours) else ""
        other = theirs[index] if index < len(theirs) else ""
        if one == other:
            continue
        for mark, sign in (("~", -1), ("^", 1)):
            if mark in (one, other) and not (mark == "^" and one and other):
                return sign if one == mark else -sign
            if mark in (one, other):
                return -1 if one == mark else 1
        if one.isdigit() and other.isdigit():
            if int(one) != int(other):
                return int(one) - int(other)
            continue
        if not one or not other:
            return 1 if one else -1
        if one.isdigit() != other.isdigit():
            return 1 if one.isdigit() else -1
        return 1 if one > other else -1
    return 0


# ---- repositories


def repositories(tree: Tree, directory: str, variables: dict[str, str]) -> list[dict[str, Any]]:
    """Every section of the .repo files of a directory. Raises OSError."""
    rows = []
    for path in tree.glob(directory, "*.repo"):
        for name, section in sections(tree.text(path) or ""):
            address = first(section, "baseurl", "metalink", "mirrorlist") or ""
            row: dict[str, Any] = {
                "id": name,
                "url": masked_url(substitute(address, variables)),
                "suites": [],
                "components": [],
                "signed_by": masked_url(substitute(first(section, "gpgkey") or "", variables)) or None,
                "file": path,
                "enabled": yes(section.get("enabled", "1")),
            }
            if not yes(section.get("gpgcheck", "1")) and not yes(section.get("repo_gpgcheck", "0")):
                row["trusted"] = True
            rows.append(row)
    return rows


def sections(text: str) -> list[tuple[str, dict[str, str]]]:
    """Name and keys of each section of an INI file; a damaged one yields what could be read before."""
    parser = configparser.RawConfigParser(strict=False, interpolation=None, comment_prefixes=("#", ";"))
    with contextlib.suppress(configparser.Error):
        parser.read_string(text)
    return [(name, dict(parser.items(name))) for name in parser.sections()]


def first(section: dict[str, str], *keys: str) -> str | None:
    """The first word of the first of these keys that has a value."""
    for key_ in keys:
        words = section.get(key_, "").split()
        if words:
            return words[0].rstrip(",")
    return None


def variables(tree: Tree, directories: Iterable[str]) -> dict[str, str]:
    """``releasever``, ``basearch`` and the variables people set in files."""
    version = (os_release(tree) or {}).get("VERSION_ID", "")
    found = {"releasever": version.split(".")[0]}
    machine = _machine(tree)
    if machine:
        found.update({"basearch": machine, "arch": machine})
    for directory in directories:
        for path in tree.glob(directory):
            try:
                found[path.rsplit("/", 1)[-1]] = (tree.text(path, 4096) or "").strip()
            except OSError:
                continue
    return found


def substitute(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda m: values.get(m.group(1) or m.group(2), m.group(0)), text)


def yes(text: str) -> bool:
    return text.strip().lower() in ("1", "yes", "true", "on")


def newest(versions: Iterable[str], count: int = 3) -> list[str]:
    return sorted(set(versions), key=key, reverse=True)[:count]


def common(
    ctx: Context, manager: str, repos: str, variable_dirs: tuple[str, ...]
) -> tuple[dict[str, bool], list[Rpm] | None]:
    """Read what every manager of rpms has: installed packages and repositories.

    Returns the kernels with an image, and the packages, or None where they could not be read.
    """
    ctx.set("packages.manager", manager)
    releases: dict[str, bool] = {}
    with ctx.attempt("kernel.installed"):
        releases = kernel_images(ctx.tree)
    found: list[Rpm] | None = None
    try:
        found = query(ctx)
        put_installed(ctx, found, releases)
    except (OSError, ValueError) as error:
        for key in ("installed", "broken"):
            ctx.cannot(f"packages.{key}", error)
    ctx.cannot("packages.manual", f"which packages a person asked for is not read for {manager}")
    with ctx.attempt("packages.repositories"):
        ctx.set("packages.repositories", repositories(ctx.tree, repos, variables(ctx.tree, variable_dirs)))
    return releases, found
