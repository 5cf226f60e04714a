# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernels are on offer: as the resolver told the facts, else, for facts without that, by the package lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..model.facts import UNKNOWN, each
from ..model.host import Offer
from ..model.version import KernelRelease
from ..rules.context import Context
from . import boot

_IMAGE = re.compile(r"linux-image-(?:unsigned-)?(?P<release>[0-9].*)\Z")
# Ubuntu's metas: 5.15.0.203.188 stands for 5.15.0-203
_UBUNTU_META = re.compile(r"(?P<version>[0-9]+\.[0-9]+\.[0-9]+)\.(?P<abi>[0-9]+)\.[0-9]+")
_PARTS = ("linux-image", "linux-modules", "linux-modules-extra", "linux-headers")
_RPM_PARTS = ("kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-modules-extra")


def offers(context: Context) -> list[Offer]:
    """Return the kernels on offer, in no order."""
    if context.host.offers is not UNKNOWN:
        return list(each(context.host.offers))
    if "kernel.candidates" in context.host.reasons:
        return []  # the resolver was asked and failed: nobody guesses in its place, and rule KRN026 says so
    available = context.host.packages.available
    if not isinstance(available, dict) or context.boot is None:
        return []
    manager = context.packaging.manager if context.packaging is not None else context.host.packages.manager
    found = _debian(context, available) if manager == "apt" else _rpm(context, available)
    return list({offer.release: offer for offer in found}.values())


def _debian(context: Context, available: dict[str, tuple[str, ...]]) -> Iterator[Offer]:
    """Yield kernels by their images' own names, and those that an installed meta of Ubuntu stands for."""
    present = KernelRelease.try_parse(context.boot)
    flavour = present.flavour if present is not None else ""
    for name, versions in available.items():
        match = _IMAGE.match(name)
        parsed = KernelRelease.try_parse(match["release"]) if match else None
        if match and parsed is not None and parsed.flavour == flavour and versions:
            yield _offer(match["release"], {f"{part}-{match['release']}": _version(available, part, match["release"])
                                            for part in _PARTS}, context, versions[0])
        meta = _UBUNTU_META.match(versions[0]) if versions else None
        if meta and name.startswith("linux-image-") and isinstance(context.host.packages.version(name), str):
            release = f"{meta['version']}-{meta['abi']}-{flavour}"
            if f"linux-image-{release}" not in available:
                yield _offer(release, {name: versions[0]}, context, versions[0])


def _version(available: dict[str, tuple[str, ...]], part: str, release: str) -> str | None:
    return next(iter(available.get(f"{part}-{release}", ())), None)


def _offer(release: str, packages: dict[str, str | None], context: Context, version: str) -> Offer:
    """Return an offer with the packages that are there, and the installed metas that would bring it."""
    known = {name: one for name, one in packages.items() if one is not None}
    host = context.host.packages
    for name in host.installed if isinstance(host.installed, dict) else ():
        is_meta = name.startswith(("linux-image-", "linux-headers-")) and not name.split("-")[2][:1].isdigit()
        newest = next(each(host.offers(name)), None)
        if is_meta and newest == version:
            known[name] = version
    return Offer(release, known, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def _rpm(context: Context, available: dict[str, tuple[str, ...]]) -> Iterator[Offer]:
    """Yield kernels by the versions of the package with the image."""
    release = context.boot or ""
    suse = release.rsplit("-", 1)[-1] if context.packaging is not None and context.packaging.manager == "zypper" else ""
    arch = next((one for one in (".x86_64", ".aarch64") if one in release), "")
    for version in available.get(f"kernel-{suse}" if suse else "kernel-core", ()):
        plain = version.partition(":")[2] or version
        if suse:
            # the last number of the package counts rebuilds; uname does not have it
            there = context.host.packages.version(f"kernel-{suse}")
            rebuilt = isinstance(there, str) and boot.package_release(context, release) != f"{there}-{suse}"
            name = f"{plain.rsplit('.', 1)[0] if rebuilt else plain}-{suse}"
            yield Offer(name, {f"kernel-{suse}": version}, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
            continue
        packages = {part: version for part in _RPM_PARTS if version in available.get(part, ())}
        yield Offer(plain + arch, packages, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
