# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an out-of-tree module beside the driver (OFED, ZFS, Lustre, GDRCopy) comes to another kernel."""

from __future__ import annotations

from typing import Any

from ..model.facts import each
from ..model.host import Kernel, Offer
from ..model.version import KernelRelease
from ..rules.context import Context
from . import boot

# Name in the facts -> how DKMS calls it, and how packages with ready modules begin, as DOCA/MLNX_OFED, OpenZFS, Lustre
# and GDRCopy have it. A name that is not here is taken as it is.
_DKMS = {
    "mlnx-ofed": ("mlnx-ofed-kernel", "mlnx-ofa_kernel", "mlnx-ofa-kernel"),
    "gdrcopy": ("gdrdrv",),
    "zfs": ("zfs",),
    "lustre": ("lustre-client-modules", "lustre-client", "lustre"),
    "beegfs": ("beegfs", "beegfs-client"),
}
_PACKAGES = {
    "mlnx-ofed": ("mlnx-ofed-kernel-modules", "mlnx-ofa_kernel-kmod", "mlnx-ofa_kernel", "kmod-mlnx-ofa_kernel"),
    "gdrcopy": ("gdrcopy-kmod", "kmod-gdrcopy", "gdrdrv"),
    "zfs": ("zfs-modules", "kmod-zfs", "zfs-kmp"),
    "lustre": ("lustre-client-modules", "kmod-lustre-client", "kmod-lustre", "lustre-modules"),
}


def way(context: Context, name: str, present: Kernel, offer: Offer) -> dict[str, Any] | None:
    """Return {name, method, package, version, dkms} for the kernel on offer, None where there is no way."""
    row = _dkms_row(context, name, present.release)
    if row is not None:
        return {"name": name, "method": "dkms", "package": None, "version": row[1], "dkms": row[0]}
    release = boot.package_release(context, offer.release)
    for package, version in _on_offer(context, offer):
        if package.startswith(_stems(name, _PACKAGES)) and release in package:
            return {"name": name, "method": "package", "package": package, "version": version, "dkms": None}
    if _linked(context, name, present, offer):
        return {"name": name, "method": "kmod", "package": None, "version": None, "dkms": None}
    return None


def _stems(name: str, table: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return table.get(name, (name, name.replace("_", "-")))


def _dkms_row(context: Context, name: str, release: str) -> tuple[str, str] | None:
    """Return name and version in DKMS of a module that DKMS built for the present kernel."""
    stems = _stems(name, _DKMS)
    rows = [row for row in each(context.host.driver.dkms) if row[2] == release and row[3] in ("installed", "built")]
    return next(((row[0], row[1]) for row in rows if row[0] in stems), None)


def _on_offer(context: Context, offer: Offer) -> list[tuple[str, str]]:
    available = context.host.packages.available
    found = list(offer.packages.items())
    for name, versions in (available.items() if isinstance(available, dict) else ()):
        found += [(name, versions[0])] if versions else []
    return found


def _linked(context: Context, name: str, present: Kernel, offer: Offer) -> bool:
    """Say whether a kmod package serves this kernel too: Enterprise Linux keeps symbols within a minor release."""
    installed, manager = context.host.packages.installed, context.host.packages.manager
    if manager != "dnf" or not isinstance(installed, dict):
        return False
    before, after = KernelRelease.try_parse(present.release), KernelRelease.try_parse(offer.release)
    if before is None or after is None or (before.distro, before.abi[:1]) != (after.distro, after.abi[:1]):
        return False
    stems = tuple(stem for stem in _stems(name, _PACKAGES) if stem.startswith("kmod-")) or (f"kmod-{name}",)
    return any(package.startswith(stems) for package in installed)
