# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVSwitch fabrics: which components a driver needs beside it, in lock-step with its version."""

from __future__ import annotations

from ..model import version as versions
from ..model.facts import each
from ..rules.context import Candidate, Context
from . import family

LOCKSTEP = ("fabricmanager",)


def needs(context: Context) -> list[str]:
    """Return the fabric components that the NVSwitches of the host, or GPUs that tell their fabric, need."""
    found: list[str] = []
    for ident in dict.fromkeys(each(context.host.nvswitches)):
        row = context.matrix.nvswitch(ident)
        found += [name for name in (row.needs if row is not None else ("fabricmanager",)) if name not in found]
    for card in each(context.cards):
        row = context.matrix.fabric_of(card.gpu.id) if isinstance(card.gpu.id, str) else None
        found += [name for name in (row.needs if row is not None else ()) if name not in found]
    return found


def packages(context: Context, candidate: Candidate) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return the packages of the fabric with their versions, and those that have no such version on offer."""
    wanted: dict[str, str | None] = {}
    missing: list[str] = []
    if candidate.version is None or context.packaging is None:
        return wanted, ()
    for component in needs(context):
        names = package_names(context, component, candidate.version, candidate.source)
        name, version = _version(context, names, candidate)
        if name is None:
            if component in LOCKSTEP and version is None:
                missing.append(names[0] if names else f"nvidia-{component}")
        else:
            wanted[name] = version
    return wanted, tuple(missing)


def host_has(context: Context, version: str | None) -> bool:
    """Say whether a fabric manager of that version runs on the host, whatever its package is called."""
    return version is not None and context.host.driver.fabricmanager == version


def package_names(context: Context, component: str, version: str, source: str) -> list[str]:
    """Return the names that a component has for a driver version, those of the driver's own source first."""
    names: list[str] = []
    for one in dict.fromkeys((source, "nvidia", "distro")):
        row = context.packaging.fabric_package(component, version, one)
        if row is not None:
            names += [family.fill(name, versions.branch_of(version), version) for name in row.packages[:1]]
    return list(dict.fromkeys(names))


def _version(context: Context, names: list[str], candidate: Candidate) -> tuple[str | None, str | None]:
    host = context.host.packages
    for name in names:
        if candidate.installed:
            there = host.version(name)
            if isinstance(there, str) and versions.upstream(there) == candidate.version:
                return name, there
    if candidate.installed and host_has(context, candidate.version):
        return None, candidate.version
    for name in names:
        for one in each(host.offers(name)):
            if versions.upstream(one) == candidate.version:
                return name, one
    wish = context.wishes.fabricmanager_repository
    if wish is not None and names and not any(host.offers(name) for name in names):
        return names[0], f"{candidate.version}-1"
    if isinstance(host.available, dict) and not candidate.predicted:
        known = any(host.offers(name) is not None for name in names) or any(
            map(family.names_driver_version, host.available)
        )
        if known:
            return None, None
    own = context.packaging.fabric_package("fabricmanager", candidate.version or "", candidate.source)
    if own is None or not names:
        return None, None
    pattern = own.version_pattern
    return names[0], pattern.replace("{version}", candidate.version or "") if pattern else None
