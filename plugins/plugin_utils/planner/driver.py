# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver decision: the chosen candidate as packages, files, services and kernels."""

from __future__ import annotations

from ..model import version as versions
from ..model.decisions import DriverDecision
from ..model.facts import each
from ..rules import kernels, ready_modules
from ..rules.context import Candidate, Context
from . import (
    candidates,
    directory,
    exchange,
    fabric,
    family,
    modules,
    priority,
    ramdisks,
    repositories,
    runfiles,
    secure_boot,
    strays,
)

BUILD_MB = 2500
PERSISTENCED = "nvidia-persistenced.service"


def fill(context: Context) -> None:
    """Fill in ``context.driver`` from the chosen candidate."""
    decision = context.driver
    decision.owner = context.wishes.driver_owner
    if not context.has_gpus:
        decision.because = ["there is no GPU"] if context.cards is not None else decision.because
        return
    chosen = context.candidate
    decision.hold_pattern = family.HOLD_PATTERN
    decision.hold = _installed_family(context)
    if chosen is None:
        decision.because = [refusal.summary for refusal in context.refusals[:3]]
        return
    _identity(decision, chosen)
    if not context.wants_driver:
        decision.packages = {}
        return
    _packages(context, decision, chosen)
    _prerequisites(context, decision, chosen)
    _module(context, decision, chosen)
    decision.mok = secure_boot.decision(context, chosen)
    _fabric(context, decision, chosen)
    _services(context, decision, chosen)
    _exchange(context, decision, chosen)
    decision.prebuilt = _prebuilt(context, decision, chosen)
    decision.repositories = repositories.for_driver(context, chosen)
    decision.mend = strays.find(context)
    decision.runfile = runfiles.decide(context, chosen)
    decision.offline = directory.decide(context)
    decision.preferences = priority.preferences(context, chosen)
    decision.components = list(chosen.series.components) if chosen.series is not None else []
    decision.hold = sorted({*decision.packages, *decision.fabric, *_staying_family(context, decision)})


def _identity(decision: DriverDecision, chosen: Candidate) -> None:
    decision.branch = chosen.branch
    decision.version = chosen.version
    decision.predicted = chosen.predicted
    decision.flavour = chosen.flavour
    decision.source = chosen.source
    decision.method = chosen.method


def _packages(context: Context, decision: DriverDecision, chosen: Candidate) -> None:
    decision.packages = dict(chosen.versions)
    decision.packages.update(_other_modules(context, chosen))
    if chosen.packages is None:
        return
    source = chosen.packages.source_package
    if source is not None:
        decision.source_package = family.fill(source, chosen.branch, chosen.version, context.boot)
    if chosen.method == "dkms" and chosen.packages.dkms_name and chosen.version:
        decision.dkms = {"name": chosen.packages.dkms_name, "version": chosen.version}
    decision.module = chosen.packages.module


def _other_modules(context: Context, chosen: Candidate) -> dict[str, str | None]:
    """Return the packages with prebuilt modules for the other kernels that may start."""
    if chosen.method != "precompiled" or chosen.packages is None or not candidates.needs_own_module(chosen.packages):
        return {}
    found: dict[str, str | None] = {}
    for release in context.kernel.allowed:
        name = candidates.module_package(chosen.packages, chosen.branch, chosen.version, release)
        there, offer = context.host.packages.version(name), ready_modules.version_for(context, name, chosen.version)
        if isinstance(there, str) or offer is not None:
            found[name] = there if isinstance(there, str) and chosen.installed else offer or str(there)
    return found


def _prebuilt(context: Context, decision: DriverDecision, chosen: Candidate) -> dict[str, dict[str, str]]:
    """Return, for each kernel, the package with its ready module that comes in: it is opened before anything goes."""
    packages = chosen.packages
    if chosen.method != "precompiled" or packages is None or not packages.precompiled or packages.built_by_package:
        return {}
    found: dict[str, dict[str, str]] = {}
    for release in decision.kernels if candidates.needs_own_module(packages) else [context.boot]:
        name = candidates.module_package(packages, chosen.branch, chosen.version, release or "")
        version = decision.packages.get(name)
        if release is not None and version is not None and context.host.packages.version(name) != version:
            found[release] = {name: version}
    return found


def _prerequisites(context: Context, decision: DriverDecision, chosen: Candidate) -> None:
    """Fill in what a build needs beside the headers: the compiler of each kernel, and what DKMS needs.

    A kernel without headers may not say its compiler. It is the system's own then, as the matrix has it.
    """
    if chosen.method != "dkms" or context.packaging is None:
        return
    system = context.packaging.system
    names = list(system.build_packages)
    for kernel in each(context.host.kernels):
        compiler = kernels.compiler_package(context, kernel) or system.default_compiler
        if kernel.release in context.kernel.allowed and compiler is not None:
            names.append(str(compiler))
    decision.prerequisites = list(dict.fromkeys(names))


def _exchange(context: Context, decision: DriverDecision, chosen: Candidate) -> None:
    """Fill in what goes, what moves along, the module stream, and what was cut off in the middle."""
    coming = {**decision.packages, **decision.fabric}
    if not chosen.installed:
        decision.remove = exchange.removed(context, chosen, coming)
        decision.packages.update(exchange.alongside(context, chosen, coming, decision.remove))
    decision.streams = exchange.streams(context, chosen)
    decision.reinstall = exchange.again(context, chosen, decision.packages)


def _module(context: Context, decision: DriverDecision, chosen: Candidate) -> None:
    decision.kernels = list(context.kernel.allowed)
    modules.fill(context, decision)
    decision.initramfs = [
        kernel.release
        for kernel in each(context.host.kernels)
        if kernel.release in context.kernel.allowed
        and (ramdisks.holds_nouveau(context, kernel) or ramdisks.holds_another(context, kernel))
    ]
    decision.build_mb = BUILD_MB if chosen.method == "dkms" else 800


def _fabric(context: Context, decision: DriverDecision, chosen: Candidate) -> None:
    decision.fabric = dict(chosen.fabric)
    if not chosen.fabric:
        return
    names = fabric.package_names(context, "fabricmanager", chosen.version or "", chosen.source)
    name = next((one for one in chosen.fabric if one in names), None)
    if name is not None:
        decision.fabricmanager = {
            "package": name,
            "version": chosen.fabric[name] or chosen.version,
            "service": "nvidia-fabricmanager.service",
        }


def _services(context: Context, decision: DriverDecision, chosen: Candidate) -> None:
    row = None
    if context.packaging is not None and chosen.version is not None:
        row = context.packaging.fabric_package("persistenced", chosen.version, chosen.source)
    known = context.host.services if isinstance(context.host.services, dict) else {}
    companions = tuple(chosen.packages.companions) if chosen.packages is not None else ()
    packaged = chosen.series is not None and (row is not None or "nvidia-persistenced" in companions)
    if packaged or PERSISTENCED in known:
        decision.services[PERSISTENCED] = {"enabled": True, "state": "started"}
    own = row.packages[:1] if row is not None else ()
    if chosen.series is not None and chosen.series.variant != "server":  # Ubuntu's row names the one of -server
        own = tuple(name.removesuffix("-server") for name in own)
    for name in dict.fromkeys((*companions, *own)):
        locked = row is not None and row.lockstep and name in own
        _add_package(context, decision, chosen, family.fill(name, chosen.branch, chosen.version), locked)
    if decision.fabricmanager is not None:
        decision.services["nvidia-fabricmanager.service"] = {"enabled": True, "state": "started"}


def _add_package(context: Context, decision: DriverDecision, chosen: Candidate, name: str, locked: bool) -> None:
    if name in decision.packages or (chosen.installed and name.startswith("nvidia-driver-pinning")):
        return
    host = context.host.packages
    there, offers = host.version(name), list(each(host.offers(name)))
    fitting = [one for one in offers if versions.upstream(one) == chosen.version]
    if isinstance(there, str):
        decision.packages[name] = fitting[0] if fitting and (locked or not chosen.installed) else there
    elif fitting or offers:
        decision.packages[name] = (fitting or offers)[0]
    elif chosen.predicted or not candidates.is_offered_fact(context, chosen.series):
        decision.packages[name] = None


def _installed_family(context: Context) -> list[str]:
    installed = context.host.packages.installed
    return sorted(filter(family.is_driver_package, installed)) if isinstance(installed, dict) else []


def _staying_family(context: Context, decision: DriverDecision) -> list[str]:
    gone = set(decision.remove)
    return [name for name in _installed_family(context) if name not in gone]


def needs_build(context: Context, candidate: Candidate, release: str) -> bool:
    """Say whether the module of a candidate still has to be built for a kernel."""
    kernel = context.host.kernel(release)
    return kernel is None or not kernels.has_module_of(kernel, candidate)
