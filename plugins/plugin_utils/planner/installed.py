# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver is on the host: told by its packages, else by module and library."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..model import version as versions
from ..model.facts import UNKNOWN, each
from ..model.host import Module
from ..rules.context import Context, Installed
from . import family, runfiles


def find(context: Context) -> Installed | None:
    """Return the installed driver, or None if there is none or nobody can tell."""
    host = context.host
    runfile = host.driver.origin == "runfile"
    version = (None if runfile else _by_packages(context)) or _by_files(context) or _by_packages(context)
    if version is None and runfiles.cut_off(context):  # taken out, and nothing in its place yet
        runfile, version = True, runfiles.version_of(context)
    if version is None:
        return None
    branch = versions.branch_of(version)
    module = boot_module(context)
    flavour = _flavour(context, module) or runfiles.flavour_of(context)
    method = module.origin if module is not None and isinstance(module.origin, str) else None
    series, packages = _series(context, branch, flavour)
    if runfile:
        series = packages = None
        method = "runfile"
    return Installed(
        version=version,
        branch=branch,
        flavour=flavour,
        source=series.package_source if series is not None else None,
        method=method or (series.method if series is not None else None),
        series=series,
        packages=packages,
    )


def boot_module(context: Context) -> Module | None:
    """Return the nvidia module of the kernel that runs or starts next, else of any installed kernel."""
    host = context.host
    order = [host.kernel(host.running), host.kernel(host.default_boot), *each(host.kernels)]
    for kernel in order:
        if kernel is not None and isinstance(kernel.module, Module):
            return kernel.module
    return None


def _by_packages(context: Context) -> str | None:
    names = context.host.packages.installed
    if not isinstance(names, dict):
        return None
    counted: Counter[str] = Counter()
    for name, package_version in names.items():
        if family.names_driver_version(name):
            version = versions.upstream(package_version)
            if version is not None and versions.try_parse(version) and len(versions.branch_of(version)) == 3:
                counted[version] += 1
    if not counted:
        return None
    return max(counted, key=lambda version: (counted[version], versions.parse(version)))


def _by_files(context: Context) -> str | None:
    driver = context.host.driver
    module = boot_module(context)
    for version in (driver.library, module.version if module is not None else None, driver.loaded):
        if isinstance(version, str) and versions.try_parse(version) is not None and len(version) > 3:
            return version
    return None


def _flavour(context: Context, module: Module | None) -> str | None:
    if module is not None and module.flavour in ("open", "proprietary"):
        return str(module.flavour)
    loaded = context.host.driver.loaded_flavour
    if loaded in ("open", "proprietary"):
        return str(loaded)
    names = context.host.packages.installed
    if isinstance(names, dict):
        kernel_side = [name for name in names if family.is_module_package(name)]
        if kernel_side:
            return "open" if any("open" in name for name in kernel_side) else "proprietary"
    return None


def _series(context: Context, branch: str, flavour: str | None) -> tuple[Any, Any]:
    names = context.host.packages.installed
    if context.packaging is None or not isinstance(names, dict):
        return None, None
    best: tuple[tuple[int, int, int, int], Any, Any] | None = None
    for index, series in enumerate(context.packaging.find(branch=branch)):
        for kind in (flavour,) if flavour else ("open", "proprietary"):
            packages = series.flavour(kind)
            if packages is None:
                continue
            filled = [family.fill(name, branch) for name in packages.packages]
            there = sum(1 for name in filled if name in names)
            there += sum(1 for group in packages.alternatives for name in group if family.fill(name, branch) in names)
            if not there:
                continue
            share = there * 100 // max(len(filled), 1)
            key = (share, _looks_like(context, filled, series.package_source), there, -index)
            if best is None or key > best[0]:
                best = (key, series, packages)
    return (best[1], best[2]) if best else (None, None)


def _looks_like(context: Context, names: list[str], source: str) -> int:
    """Tell by origin or by the form of the version which source an installed package came from."""
    host = context.host.packages
    for name in names:
        version = host.version(name)
        if not isinstance(version, str):
            continue
        origins = host.origins.get(name) if isinstance(host.origins, dict) else None
        origin = origins.get(version) if isinstance(origins, dict) else None
        if isinstance(origin, str):
            return 1 if family.is_nvidia_repository(context, origin) == (source == "nvidia") else 0
        if "0ubuntu0." in version or "deb1" in version:
            return 1 if source == "distro" else 0
    repositories = host.repositories
    if repositories is UNKNOWN:
        return 1 if source == "distro" else 0
    configured = any(family.is_cuda_url(repository.url) for repository in each(repositories))
    return 1 if configured == (source == "nvidia") else 0
