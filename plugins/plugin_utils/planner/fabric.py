# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVSwitch fabrics: which components a driver needs beside it, in lock-step with its version."""

from __future__ import annotations

from collections.abc import Iterable

from ..model import version as versions
from ..model.facts import each
from ..rules.context import Candidate, Context
from ..rules.lockstep import LOCKSTEP, component_of, of_branch
from . import family


def present(context: Context) -> list[str]:
    """Return the lock-step components beside the fabric manager that are installed: they move with the driver."""
    installed = context.host.packages.installed
    found = {component_of(name) for name in installed} if isinstance(installed, dict) else set()
    return [name for name in LOCKSTEP[1:] if name in found]


def replaced(context: Context, coming: Iterable[str]) -> list[str]:
    """Return installed packages of a component that comes in under another name: 570 in the name, or none any more."""
    installed = context.host.packages.installed
    kinds = {kind for name in coming if (kind := component_of(name)) is not None}
    if not isinstance(installed, dict) or not kinds:
        return []
    return [name for name in installed if name not in coming and component_of(name) in kinds]


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
    needed = needs(context)
    for component in dict.fromkeys((*needed, *present(context))):
        names = package_names(context, component, candidate.version, candidate.source)
        if component not in LOCKSTEP:
            wanted.update(_of_own_version(context, component, candidate))
            continue
        name, version = _version(context, component, names, candidate)
        if name is None:
            # what nobody offers in this version keeps a driver out, but never takes out the one that is there
            keeps_out = component == "fabricmanager" or (bool(names) and not candidate.installed)
            if version is None and keeps_out:
                missing.append(names[0] if names else f"nvidia-{component}")
        else:
            wanted[name] = version
    return wanted, tuple(missing)


def host_has(context: Context, version: str | None) -> bool:
    """Say whether a fabric manager of that version runs on the host, whatever its package is called."""
    return version is not None and context.host.driver.fabricmanager == version


def package_names(context: Context, component: str, version: str, source: str) -> list[str]:
    """Return the names that a component has for a driver version, those of the driver's own source first.

    Where the matrix has no name of that source, the installed package tells it: Ubuntu's archive has
    libnvidia-nscq-580, NVIDIA's repository for EL has nvidia-imex.
    """
    branch, names = versions.branch_of(version), []
    for one in dict.fromkeys((source, "nvidia", "distro")):
        row = context.packaging.fabric_package(component, version, one)
        if row is not None:
            names += [family.fill(name, branch, version) for name in row.packages[:1]]
        elif one == source:
            names += _as_installed(context, component, branch)
    return list(dict.fromkeys([*names, *_as_installed(context, component, branch)]))


def _as_installed(context: Context, component: str, branch: str) -> list[str]:
    """Return the names of a component's installed packages with another branch in them: they are its next ones."""
    installed = context.host.packages.installed
    return [of_branch(name, branch) for name in sorted(installed)
            if component_of(name) == component and not name.startswith("cuda-drivers")
            ] if isinstance(installed, dict) else []


def _of_own_version(context: Context, component: str, candidate: Candidate) -> dict[str, str | None]:
    """Return the packages of a component with versions of its own (nvlsm): as installed, or the newest."""
    row = context.packaging.fabric_package(component, candidate.version or "", "nvidia")
    host, found = context.host.packages, {}
    for name in row.packages if row is not None else ():
        there, offer = host.version(name), next(each(host.offers(name)), None)
        if isinstance(there, str) or offer is not None:
            found[name] = there if isinstance(there, str) else offer
        elif not isinstance(host.available, dict) or candidate.predicted:
            found[name] = None
    return found


def _version(
    context: Context, component: str, names: list[str], candidate: Candidate
) -> tuple[str | None, str | None]:
    host = context.host.packages
    for name in names:
        if candidate.installed:
            there = host.version(name)
            if isinstance(there, str) and versions.upstream(there) == candidate.version:
                return name, there
    if component == "fabricmanager" and candidate.installed and host_has(context, candidate.version):
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
    own = context.packaging.fabric_package(component, candidate.version or "", candidate.source)
    if own is None and component != "fabricmanager" and component in present(context) and names:
        return names[0], None  # it is there under a name that no row has: its version is known with the lists
    if own is None or not names:
        return None, None
    pattern = own.version_pattern
    return names[0], pattern.replace("{version}", candidate.version or "") if pattern else None
