# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers that could be there: every version of a branch that a package source offers, best first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from ..model import version as versions
from ..model.facts import each
from ..model.host import Module
from ..rules import ready_modules
from ..rules.context import Candidate, Context
from ..rules.gpu import flavour_rule
from . import fabric, family

_MOST_VERSIONS = 4


def sources(context: Context) -> list[str]:
    """Return the package sources to look at, the preferred one first."""
    asked = context.wishes.driver_source
    if asked != "auto":
        return [asked]
    if context.installed is not None and context.installed.source is not None:
        first = context.installed.source
    elif cuda_repository(context) or any(card.product is None for card in each(context.cards)):
        first = "nvidia"
    else:
        first = "distro"
    return [first, "nvidia" if first == "distro" else "distro"]


def cuda_repository(context: Context) -> bool:
    """Say whether NVIDIA's repository, or the mirror that is asked for, is configured on the host."""
    wish = context.wishes.driver_repository
    mirror = wish["url"].rstrip("/") if wish is not None else None
    return any(
        repository.enabled
        and (repository.url.partition("?")[0].rstrip("/") == mirror if mirror else family.is_cuda_url(repository.url))
        and not family.is_of_other_release(context, repository.url)
        for repository in each(context.host.packages.repositories)
    )


def offers(context: Context, name: str) -> Any:
    """Return what is on offer of a package.

    The facts leave out Ubuntu's headless metapackages, which come from one source package with nvidia-driver-*.
    """
    found = context.host.packages.offers(name)
    if not found and name.startswith("nvidia-headless-"):
        twin = name.replace("nvidia-headless-no-dkms-", "nvidia-headless-").replace("-headless-", "-driver-")
        return context.host.packages.offers(twin)
    return found


def of_branch(context: Context, branch: str, source: str, version: str | None = None) -> Iterator[Candidate]:
    """Yield the candidates of a branch from a source, best first; only ``version`` if one is given."""
    if context.packaging is None:
        return
    for flavour in flavours(context, branch):
        for series in _series(context, branch, source, flavour):
            packages = series.flavour(flavour)
            yield from _installed(context, series, flavour, packages, version)
            yield from _offered(context, series, flavour, packages, version)


def flavours(context: Context, branch: str) -> list[str]:
    """Return the module flavours to look at, the preferred one first."""
    asked = context.wishes.driver_flavour
    if asked != "auto":
        return [asked]
    installed = context.installed
    if installed is not None and installed.flavour is not None and installed.branch == branch:
        first = installed.flavour
    else:
        row = context.matrix.branch(branch)
        first = "open" if row is not None and row.open_modules in ("default", "only") else "proprietary"
    return [first, "proprietary" if first == "open" else "open"]


def _series(context: Context, branch: str, source: str, flavour: str) -> list[Any]:
    wanted = "distro" if source == "custom" else source
    rows = list(context.packaging.find(branch=branch, source=wanted, flavour=flavour, transitional=True))
    if source == "custom":
        rows += context.packaging.find(branch=branch, source="nvidia", flavour=flavour)
    asked = context.wishes.driver_method
    if asked != "auto":
        rows = [row for row in rows if row.method == asked]
    if context.wishes.driver_variant != "auto":
        rows = [row for row in rows if has_variant(row, context.wishes.driver_variant)] or (
            [] if context.host.os.id == "ubuntu" and source == "distro" else rows)
    installed = context.installed
    if installed is not None and installed.branch == branch:
        rows.sort(key=lambda row: (row is not installed.series, row.method != installed.method))
    elif asked == "auto":
        rows = [row for row in rows if row.method == "dkms" or _precompiled_is_there(context, row, flavour)] or rows
        rows.sort(key=lambda row: (row.method != "precompiled", not row.default))
    return rows


def has_variant(series: Any, variant: str) -> bool:
    """Say whether a series is of the variant that is asked for."""
    return bool(series.variant == ("server" if variant == "server" else ""))


def _precompiled_is_there(context: Context, series: Any, flavour: str) -> bool:
    """Say whether the prebuilt module of the kernel to start is on offer (or installed), in whatever version."""
    packages = series.flavour(flavour)
    if packages is None or context.boot is None:
        return False
    if not needs_own_module(packages):
        return True
    host = context.host.packages
    if "{version}" not in packages.precompiled:
        return _known(context, family.fill(packages.precompiled, series.branch, None, context.boot))
    head, _mark, tail = packages.precompiled.partition("{version}")
    end = family.fill(tail, series.branch, None, context.boot)
    names = [*(host.available if isinstance(host.available, dict) else ()),
             *(host.installed if isinstance(host.installed, dict) else ())]
    return any(name.startswith(f"{head}{series.branch}.") and name.endswith(end) for name in names)


def needs_own_module(packages: Any) -> bool:
    """Say whether prebuilt modules come in one package for each kernel."""
    return any(mark in (packages.precompiled or "") for mark in ("{release}", "{kernel}"))


def module_package(packages: Any, branch: str, version: str | None, release: str) -> str:
    """Return the package with the prebuilt module of a driver for a kernel."""
    return family.fill(packages.precompiled, branch, version, release)


def _known(context: Context, name: str) -> bool:
    host = context.host.packages
    return bool(host.offers(name)) or isinstance(host.version(name), str)


def _installed(context: Context, series: Any, flavour: str, packages: Any, version: str | None) -> Iterator[Candidate]:
    installed = context.installed
    if installed is None or installed.branch != series.branch or (version and installed.version != version):
        return
    if installed.series is not series or (installed.flavour or flavour) != flavour:
        return
    host = context.host.packages
    there: dict[str, str | None] = {}
    missing: tuple[str, ...] = ()
    for name in packages.packages:
        filled = family.fill(name, series.branch, installed.version, context.boot)
        found = host.version(filled)
        if isinstance(found, str):
            there[filled] = found
    if series.method == "precompiled" and needs_own_module(packages) and context.boot is not None:
        name = module_package(packages, series.branch, installed.version, context.boot)
        found, offer = host.version(name), ready_modules.version_for(context, name, installed.version)
        if isinstance(found, str):
            there[name] = found
        elif not _runs_already(context, installed.version):
            if offer is not None:
                there[name] = offer
            elif ready_modules.others(context, name, installed.version):
                missing = (name,)
    if _is_half(context, series, packages, there) and is_offered_fact(context, series):
        rest, lacking = _package_versions(context, series, packages, installed.version, predicted=False)
        there, missing = {**rest, **there}, (*missing, *lacking)
    yield _with_fabric(
        context,
        Candidate(
            branch=series.branch,
            version=installed.version,
            flavour=flavour,
            source=series.package_source,
            method=installed.method if installed.method in ("dkms", "precompiled") else series.method,
            series=series,
            packages=packages,
            versions=dict(there),
            predicted=False,
            missing=missing,
            installed=True,
        ),
    )


def _is_half(context: Context, series: Any, packages: Any, there: dict[str, str | None]) -> bool:
    """Say whether the packages that are there make no driver: module or libraries lack.

    A transaction that was cut off leaves that. A person who takes fewer packages than the series has keeps these two.
    """
    installed = context.installed
    if installed is None:
        return False
    names = [family.fill(name, series.branch, installed.version, context.boot) for name in packages.packages]
    module = packages.source_package if series.method == "dkms" else None
    if module in names and module not in there and not _runs_already(context, installed.version):
        return True
    libraries = [name for name in names if family.is_library_package(name)]
    return bool(libraries) and context.host.driver.library is None and not any(name in there for name in libraries)


def _runs_already(context: Context, version: str) -> bool:
    kernel = context.host.kernel(context.boot)
    return kernel is not None and isinstance(kernel.module, Module) and kernel.module.version == version


def _offered(context: Context, series: Any, flavour: str, packages: Any, version: str | None) -> Iterator[Candidate]:
    main = main_package(context, series, packages)
    offered = offers(context, main)
    if not is_offered_fact(context, series):
        found = [version] if version else _predicted(context, series)
        for one in found:
            yield _candidate(context, series, flavour, packages, one, predicted=True)
        return
    known = _versions_of(series.branch, offered)
    if version is not None:
        yield _candidate(context, series, flavour, packages, version, lacking=() if version in known else (main,))
        return
    for one in known[:_MOST_VERSIONS]:
        yield _candidate(context, series, flavour, packages, one)
    if not known:
        lies = [versions.upstream(one) for one in each(offered)] if offered else []
        newest = next((one for one in lies if one), None)
        yield _candidate(context, series, flavour, packages, newest, lacking=() if newest else (main,))


def main_package(context: Context, series: Any, packages: Any) -> str:
    """Return the package whose candidates decide the version."""
    names = [packages.packages[0], *(name for group in packages.alternatives for name in group)]
    filled = [family.fill(name, series.branch, series.version, context.boot) for name in names]
    return next((name for name in filled if offers(context, name)), filled[0])


def is_offered_fact(context: Context, series: Any) -> bool:
    """Say whether the facts can tell what this source offers: its repository is there and was looked at."""
    host = context.host.packages
    if context.wishes.driver_offline is not None:
        return True
    if not isinstance(host.available, dict) or not any(map(family.names_driver_version, host.available)):
        return False
    if host.cache_age is None:  # a source that was written by a run that was cut off has no list yet
        return False
    if not isinstance(host.repositories, tuple):
        return True
    if series.package_source == "nvidia":
        return cuda_repository(context)
    return not missing_components(context, series)


def missing_components(context: Context, series: Any) -> list[str]:
    """Return the archive components that a distribution's driver needs and that no source of the host enables."""
    repositories = context.host.packages.repositories
    if not series.components or not isinstance(repositories, tuple):
        return []
    enabled: set[str] = set()
    told = False
    for repository in repositories:
        if repository.enabled and isinstance(repository.components, tuple):
            told = True
            enabled.update(repository.components)
    return [name for name in series.components if name not in enabled] if told else []


def _predicted(context: Context, series: Any) -> list[str | None]:
    if series.transitional_to is not None:
        return [None]
    if series.version is not None:
        return [series.version]
    rows = [row.version for row in context.matrix.versions(series.branch) if not row.known_bad]
    return list(rows[:_MOST_VERSIONS]) or [None]


def _versions_of(branch: str, offered: Any) -> list[str]:
    found: list[str] = []
    for one in each(offered):
        upstream = versions.upstream(one)
        if upstream and versions.try_parse(upstream) and versions.branch_of(upstream) == branch:
            found.append(upstream)
    return sorted(dict.fromkeys(found), key=versions.parse, reverse=True)


def _candidate(
    context: Context,
    series: Any,
    flavour: str,
    packages: Any,
    version: str | None,
    *,
    predicted: bool = False,
    lacking: tuple[str, ...] = (),
) -> Candidate:
    chosen, missing = _package_versions(context, series, packages, version, predicted)
    return _with_fabric(
        context,
        Candidate(
            branch=series.branch,
            version=version,
            flavour=flavour,
            source=series.package_source,
            method=series.method,
            series=series,
            packages=packages,
            versions=chosen,
            predicted=predicted,
            missing=tuple(dict.fromkeys([*lacking, *missing])),
        ),
    )


def _package_versions(
    context: Context, series: Any, packages: Any, version: str | None, predicted: bool
) -> tuple[dict[str, str | None], list[str]]:
    """Return the exact version of each package, and the packages that must be there and are not on offer."""
    main = main_package(context, series, packages)
    chosen: dict[str, str | None] = {}
    missing: list[str] = []
    for pattern in packages.packages:
        name = family.fill(pattern, series.branch, version, context.boot)
        if predicted or version is None:
            chosen[name] = _predicted_version(series, packages, pattern, version)
            continue
        offered = list(each(offers(context, name)))
        found = next((one for one in offered if versions.upstream(one) == version), None)
        if found is None and offered and not any(_is_driver_version(one) for one in offered):
            found = offered[0]
        if found is not None:
            chosen[name] = found
        elif name == packages.source_package and isinstance(offers(context, name), tuple):
            missing.append(name)
    if not predicted and version is not None:
        chosen.update(dict.fromkeys(_untold(context, series, packages, version, chosen)))
    if not predicted and main not in chosen and version is not None:
        found = next((one for one in each(offers(context, main)) if versions.upstream(one) == version), None)
        if found is not None:
            chosen = {main: found, **chosen}
    if series.method == "precompiled" and needs_own_module(packages) and context.boot is not None and version:
        name = module_package(packages, series.branch, version, context.boot)
        there = context.host.packages.version(name)
        offer = ready_modules.version_for(context, name, version)
        kept = there if isinstance(there, str) and not ready_modules.others(context, name, version) else None
        chosen[name] = offer or kept
        if chosen[name] is None and not predicted:
            del chosen[name]
            missing.append(name)
    return chosen, missing


def _untold(context: Context, series: Any, packages: Any, version: str, chosen: Collection[str]) -> list[str]:
    """Return the packages of a series whose offers the facts left out for their size.

    Of branches that are not installed they then tell the main packages alone. Those bring the others, where one is a
    metapackage; a DKMS package brings no library.
    """
    if "packages.available[]" not in context.host.reasons or any(map(family.brings_whole_driver, chosen)):
        return []
    if not any(map(family.is_module_package, chosen)):
        return []
    names = [family.fill(name, series.branch, version, context.boot) for name in packages.packages]
    return [name for name in names
            if f"-{series.branch}" in name and name not in chosen and offers(context, name) is None]


def _is_driver_version(package_version: str) -> bool:
    upstream = versions.upstream(package_version)
    return upstream is not None and len(versions.try_parse(upstream) or ()) > 1


def _predicted_version(series: Any, packages: Any, pattern: str, version: str | None) -> str | None:
    exact = (packages.versions or {}).get(pattern)
    if exact is not None:
        return str(exact)
    if version is None:
        return None
    if series.package_version is not None and versions.upstream(series.package_version) == version:
        return str(series.package_version)
    return series.package_pattern.replace("{version}", version) if series.package_pattern else None


def _with_fabric(context: Context, candidate: Candidate) -> Candidate:
    needed, missing = fabric.packages(context, candidate)
    return replace(candidate, fabric=needed, fabric_missing=missing) if needed or missing else candidate


def bare(context: Context, branch: str, version: str | None, source: str) -> Candidate:
    """Return the candidate for a branch that no source of this system has; the rules say so."""
    order = flavours(context, branch)
    wrong = {"open_only": "proprietary", "proprietary_only": "open"}
    excluded = {wrong.get(flavour_rule(card) or "") for card in each(context.cards)}
    flavour = next((one for one in order if one not in excluded), order[0])
    method = context.wishes.driver_method if context.wishes.driver_method != "auto" else "dkms"
    return Candidate(branch, version, flavour, source, method, None, None, {}, True)


def present(context: Context) -> Candidate | None:
    """Return the installed driver as a candidate of the series that its packages belong to, None if there is none."""
    installed = context.installed
    if installed is None or installed.series is None:
        return None
    for flavour in (installed.flavour,) if installed.flavour else ("open", "proprietary"):
        packages = installed.series.flavour(flavour)
        if packages is not None:
            return next(_installed(context, installed.series, flavour, packages, None), None)
    return None


def as_it_is(context: Context) -> Candidate | None:
    """Return the installed driver as a candidate when no row of the matrix describes its packages."""
    installed = context.installed
    if installed is None:
        return None
    return Candidate(
        branch=installed.branch,
        version=installed.version,
        flavour=installed.flavour or flavours(context, installed.branch)[0],
        source=installed.source or "custom",
        method=installed.method or "dkms",
        series=installed.series,
        packages=installed.packages,
        versions={},
        predicted=False,
        installed=True,
    )
