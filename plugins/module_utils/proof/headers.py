# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel headers to build against: those installed, or the archive's, opened beside the system and made relocatable.

Debian's headers packages know their own place in two lines of one Makefile (``include /usr/src/…``,
``KBUILD_OUTPUT=/usr/src/…``); everything else in them is relative. Those lines are turned to the scratch tree.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Callable

from .apt import Offer
from .backends import Source
from .errors import ProofError

Runner = Callable[..., Any]
_NEEDED = re.compile(r"^linux-(headers|kbuild|hwe-[0-9.]+-headers)-")
_COMPILER = re.compile(r"\bgcc-(\d+)")
_CONFIG_CC = re.compile(r'^CONFIG_CC_VERSION_TEXT="?(\S+)', re.MULTILINE)
_OWN_PLACE = re.compile(r"^(include |KBUILD_OUTPUT=)/usr/src/", re.MULTILINE)


@dataclass(frozen=True)
class Headers:
    """Headers for one kernel release. ``build`` and ``common`` are None while they are only known to the archive."""

    release: str
    package: str
    version: str
    installed: bool
    compiler: str  # gcc-14
    build: str | None = None  # what /lib/modules/RELEASE/build is
    common: str | None = None  # the part shared by a kernel's flavours; equals build where there is none
    offer: Offer | None = None


def find(release: str, apt: Source, root: str = "/") -> Headers:
    """The headers for ``release``: installed, or offered. Raises ProofError when there are none anywhere."""
    package = apt.headers_name(release)
    build = os.path.join(root, "lib/modules", release, "build")
    if os.path.isdir(os.path.join(build, "include")):
        build = os.path.realpath(build)
        source = os.path.join(root, "lib/modules", release, "source")
        common = os.path.realpath(source) if os.path.isdir(source) else build
        return Headers(release, package, apt.installed(package) or "local", True, compiler_of(build), build, common)
    offer = apt.offer(package)
    if offer is None:
        raise ProofError(
            f"kernel {release} has no headers: {package} is neither installed nor {apt.offered}, so no module can be "
            f"built for it. Boot and keep a kernel whose headers there are, and remove {release}",
            kernel=release,
        )
    return Headers(release, package, offer.version, False, _compiler_named(offer), offer=offer)


def compiler_of(build: str) -> str:
    """The compiler the kernel was built with, from its configuration: ``gcc-14``. Raises ProofError."""
    for name in ("include/config/auto.conf", ".config"):
        try:
            with open(os.path.join(build, name), encoding="utf-8", errors="replace") as handle:
                match = _CONFIG_CC.search(handle.read())
        except OSError:
            continue
        if match:
            cc = os.path.basename(match.group(1))
            short = _COMPILER.search(cc)
            return short.group(0) if short else cc
    raise ProofError(f"{build} does not say which compiler built the kernel: reinstall the headers package")


def _compiler_named(offer: Offer) -> str:
    """The compiler from what the headers package depends on."""
    for name in offer.depends:
        match = _COMPILER.search(name)
        if match:
            return match.group(0)
    return "gcc"


def compiler_version(compiler: str, run: Runner) -> str | None:
    """First line of what the compiler says of its version, without its name; None when it is not installed."""
    result = run([compiler, "--version"], timeout=30)
    if result.rc != 0 or not result.out.strip():
        return None
    return " ".join(result.out.splitlines()[0].split()[1:])


def fetch(headers: Headers, apt: Source, into: str) -> Headers:
    """Fetch and open the packages of headers that are not installed below ``into``; the same headers, in place.

    Raises ProofError when a package is not offered, cannot be fetched or has no usable build directory.
    """
    if headers.offer is None:
        raise ProofError(f"{headers.package} is not offered")
    wanted = {headers.package: headers.version}
    queue = list(headers.offer.depends)
    while queue:
        name = queue.pop()
        if name in wanted or not _NEEDED.match(name):
            continue
        offer = apt.offer(name)
        if offer is None:
            raise ProofError(
                f"{headers.package} {headers.version} needs {name}, which is not {apt.offered}: {apt.way_out}",
                kernel=headers.release,
            )
        wanted[name] = offer.version
        queue += offer.depends
    debs = os.path.join(into, "debs")
    tree = os.path.join(into, "tree")
    os.makedirs(debs)
    os.makedirs(tree)
    for package in apt.download(wanted, debs):
        apt.unpack(package, tree)
    places = [f"usr/src/{headers.package}", f"usr/src/kernels/{headers.release}"]  # Debian's, Red Hat's
    there = [path for one in places if os.path.isdir(os.path.join(path := os.path.join(tree, one), "include"))]
    if not there:
        raise ProofError(
            f"{headers.package} {headers.version} has no {places[0]}/include: it is not laid out as Debian's headers "
            f"are, nor as Red Hat's ({places[1]})",
            kernel=headers.release,
        )
    build = there[0]
    common = relocate(build, tree) if headers.package.startswith("linux-") else build
    return Headers(headers.release, headers.package, headers.version, False, compiler_of(build), build, common)


def relocate(build: str, tree: str) -> str:
    """Turn the headers' own place to ``tree``; returns the directory of the common part."""
    makefile = os.path.join(build, "Makefile")
    with open(makefile, encoding="utf-8") as handle:
        text = handle.read()
    with open(makefile, "w", encoding="utf-8") as handle:
        handle.write(_OWN_PLACE.sub(lambda match: f"{match.group(1)}{tree}/usr/src/", text))
    match = re.search(r"^include (/usr/src/\S+)/Makefile", text, re.MULTILINE)
    return tree + match.group(1) if match else build
