# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel module packages (KMPs) of the driver fit a kernel that is not installed yet.

A KMP is built for one kernel and linked for every other one that has the same symbols: it requires
``ksym(FLAVOUR:SYMBOL) = CHECKSUM`` (Red Hat: ``kernel(SYMBOL) = CHECKSUM``), and kernels provide them. An installed KMP
says nothing about a kernel that comes beside the one that it was built for, so zypper installs that kernel without a
module.

Source: https://documentation.suse.com/sbp/server-linux/html/SBP-KMP-Manual-SLE12SP2/, the repositories' primary.xml;
find-requires.ksyms and find-provides.ksyms of Red Hat's kernel-srpm-macros.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping

from . import rpmdb

_KMP = re.compile(r"^nvidia-.*-kmp-(?:default|azure|64kb|rt)$")
_SYMBOL = re.compile(r'<rpm:entry name="(?P<name>ksym\([^"]*)" flags="EQ"(?: epoch="\d+")? ver="(?P<sum>[^"]*)"')
_NAMED = re.compile(r"^(?:kernel|ksym)\((?:[\w.-]+:)?(?P<symbol>\w+)\)$")
_VERSION = re.compile(r'<version (?:epoch="(?P<epoch>\d+)" )?ver="(?P<ver>[^"]*)" rel="(?P<rel>[^"]*)"')

Symbols = dict[str, str]
Packages = dict[tuple[str, str], Symbols]  # (name, VERSION-RELEASE) → symbols


def of(texts: Iterable[str], kernels: set[tuple[str, str]]) -> tuple[Packages, Packages]:
    """What the wanted kernels provide, and what the driver's KMPs require, of the texts of primary.xml."""
    provided: Packages = {}
    required: Packages = {}
    names = {name for name, _version in kernels}
    for text in texts:
        for block, name, version in _blocks(text, lambda one: one in names or bool(_KMP.match(one))):
            if (name, version) in kernels:
                provided[name, version] = _symbols(block, "provides")
            elif _KMP.match(name):
                required[name, version] = _symbols(block, "requires")
    return provided, required


def kernel(texts: Iterable[str], is_it: Callable[[str, str], bool]) -> Symbols:
    """What the kernel provides that ``is_it`` (of name and VERSION-RELEASE) knows, of the texts of primary.xml."""
    for text in texts:
        for block, name, version in _blocks(text, lambda one: one.startswith("kernel-")):
            if is_it(name, version) and (found := _symbols(block, "provides")):
                return found
    return {}


def _blocks(text: str, wanted: Callable[[str], bool]) -> Iterable[tuple[str, str, str]]:
    """(stanza, name, version) of the wanted packages, found without parsing the rest, which can be 100 MB."""
    at = 0
    while True:
        at = text.find("<name>", at)
        if at < 0:
            return
        end = text.find("</name>", at)
        name = text[at + 6 : end]
        if wanted(name):
            stop = text.find("</package>", end)
            block = text[end : stop if stop > 0 else len(text)]
            version = _VERSION.search(block)
            if version:
                yield block, name, f"{version.group('ver')}-{version.group('rel')}"
        at = end


def _symbols(block: str, kind: str) -> Symbols:
    start = block.find(f"<rpm:{kind}>")
    part = block[start : block.find(f"</rpm:{kind}>", start)] if start >= 0 else ""
    return {html.unescape(match.group("name")): match.group("sum") for match in _SYMBOL.finditer(part)}


def requirements(text: str) -> Symbols:
    """The same of the lines of ``rpm -q --requires`` or ``--provides``."""
    rows = (line.strip().rpartition(" = ") for line in text.splitlines() if line.startswith(("ksym(", "kernel(")))
    return {name: checksum for name, _mark, checksum in rows}


def fitting(provided: Symbols, required: Packages) -> dict[str, list[str]]:
    """Name → newest versions of the KMPs whose every symbol the kernel has; one that names none proves nothing."""
    found: dict[str, list[str]] = {}
    for (name, version), symbols in required.items():
        if symbols and not differing(provided, symbols):
            found[name] = rpmdb.newest([version, *found.get(name, [])])
    return found


def differing(provided: Mapping[str, object], required: Mapping[str, object]) -> list[str]:
    """The symbols that a kernel lacks, or has with another checksum: a module that needs one is not loaded."""
    return sorted(symbol for symbol, checksum in required.items() if provided.get(symbol) != checksum)


def checksums(symbols: Symbols) -> dict[str, int]:
    """The symbols by their bare names, as module files name them; what is no checksum is left out."""
    found = {}
    for name, checksum in symbols.items():
        match = _NAMED.match(name)
        if match and re.match(r"(?:0x)?[0-9a-fA-F]{1,16}$", checksum):
            found[match.group("symbol")] = int(checksum, 16)
    return found


def is_kmp(name: str) -> bool:
    """Say whether a package has the driver's modules in this form."""
    return bool(_KMP.match(name))
