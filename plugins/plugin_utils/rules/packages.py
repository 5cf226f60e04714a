# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about packages: what the sources offer and what state the package manager is in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..model import version as versions
from ..model.facts import each
from . import names, ready_modules, sources
from .context import Candidate, Context
from .registry import Hit, candidate_rule, plan_rule

_CUDA_DIRECTORY = re.compile(r"/compute/cuda/repos/([a-z]+[0-9]+)/")


@candidate_rule(
    "PKG001", "error", "No package source has this driver",
    why="Every package has to be on offer before anything is changed; a play that dies in the middle leaves half a "
        "driver.",
    remedy="take a branch or version that the source has, another gpu_driver_source, or add the repository that has it",
    sources=["https://github.com/NVIDIA/ansible-role-nvidia-driver/pull/89",
             "https://github.com/NVIDIA/ansible-role-nvidia-driver/issues/60"],
)
def not_offered(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the branch is not packaged for this system, or the package or version is not on offer."""
    if context.packaging is None or (candidate.installed and not candidate.missing):
        return
    where = f"{context.host.os.name} ({_source(candidate.source)})"
    if context.wishes.driver_offline is not None:
        where = f"the directory {context.wishes.driver_offline['path']}"
    if candidate.series is None:
        asked = context.wishes.driver_source
        where = context.host.os.name if asked == "auto" else where
        rows = context.packaging.find(source=asked if asked in ("distro", "nvidia") else None)
        known = sorted({row.branch for row in rows}, key=int)
        yield Hit(f"R{candidate.branch}", f"R{candidate.branch}{_exact(candidate)} is not packaged for {where}; "
                                          f"it has {', '.join(known) or 'none'}")
        return
    if candidate.predicted and (released := _never_released(context, candidate)):
        yield Hit(f"{candidate.version}", f"no driver {candidate.version} was ever released; the nearest are "
                                          f"{', '.join(released)}",
                  "take a version that exists; if this one does, name it in gpu_matrix_overlay")
        return
    for name in candidate.missing:
        if made_for := ready_modules.others(context, name, candidate.version):
            yield _of_another_driver(candidate, name, made_for)
            continue
        offered = each(context.host.packages.offers(name))
        offers = [str(upstream) for one in offered if (upstream := versions.upstream(one))]
        if offers:
            yield Hit(name, f"{name} {candidate.version} is not on offer from {where}; on offer is {', '.join(offers)}")
        else:
            near = ", ".join(_neighbours(context, name)) or "nothing like it"
            yield Hit(name, f"no package {name} is on offer from {where} for R{candidate.branch}{_exact(candidate)}; "
                            f"the nearest are {near}")


def _of_another_driver(candidate: Candidate, name: str, made_for: list[str]) -> Hit:
    """Return the words for a package whose modules the libraries beside it would not take."""
    beside = [f"{one} {version}" for one, version in candidate.versions.items() if version and one != name]
    return Hit(name, f"the modules in {name} are made for driver {', '.join(made_for)}, and not for "
                     f"{beside[0] if beside else candidate.label}, which would be beside it: its libraries do not work "
                     "with them",
               f'set gpu_driver_version: "{made_for[-1]}", or gpu_driver_method: dkms, or wait for the modules')


def _never_released(context: Context, candidate: Candidate) -> list[str]:
    """Return the neighbours of a version that lies among the known ones of its branch and is none of them."""
    if candidate.parsed is None or candidate.version != context.wishes.driver_version:
        return []
    known = [row.version for row in context.matrix.versions(candidate.branch)]
    if candidate.version in known:
        return []
    older = [one for one in known if versions.parse(one) < candidate.parsed]
    newer = [one for one in known if versions.parse(one) > candidate.parsed]
    return [*older[:1], newer[-1]] if newer else []


def _source(source: str) -> str:
    return {"distro": "its own archive", "nvidia": "NVIDIA's repository"}.get(source, "the configured repositories")


def _exact(candidate: Candidate) -> str:
    return f" ({candidate.version})" if candidate.version else ""


def _neighbours(context: Context, name: str) -> list[str]:
    available = context.host.packages.available
    stem = re.split(r"[0-9]", name, maxsplit=1)[0].rstrip("-")
    names = sorted(other for other in (available if isinstance(available, dict) else {}) if other.startswith(stem))
    return names[:3]


@candidate_rule(
    "PKG002", "error", "A package name that lies",
    why="Transitional packages carry the old branch in their name and install the next one.",
    remedy="ask for the branch that the package really installs",
    sources=["https://packages.ubuntu.com/"],
)
def lying_name(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the packages of a branch install another one."""
    if candidate.installed or candidate.series is None:
        return
    real = versions.branch_of(candidate.version) if candidate.version else None
    if candidate.predicted or real is None:
        real = candidate.series.transitional_to
    if real and real != candidate.branch:
        first = candidate.packages.packages[0].replace("{branch}", candidate.branch)
        main = next(iter(candidate.versions), first)
        what = "" if candidate.predicted else _exact(candidate)
        yield Hit(main, f"the packages of R{candidate.branch} are empty shells: {main} installs R{real}{what}",
                  f'set gpu_driver_branch: "{real}"')


@plan_rule(
    "PKG003", "warning", "Half-installed packages",
    why="The package manager refuses further work, or finishes a broken installation at the worst moment.",
    remedy="the plan repairs what belongs to driver and kernel; look at the rest with dpkg --audit",
    sources=["docs/design.md, section 7"],
)
def broken(context: Context) -> Iterator[Hit]:
    """Fires for packages that are half-installed or half-configured."""
    for name in each(context.host.packages.broken):
        yield Hit(name, f"{name} is half-installed or half-configured")


@plan_rule(
    "PKG004", "warning", "The package manager is in use",
    why="A second transaction fails or waits; a run must not kill what holds the lock.",
    remedy="wait until it is done; the roles wait up to gpu_lock_timeout seconds",
    sources=["https://github.com/sassoftware/viya4-iac-k8s/issues/151"],
)
def locked(context: Context) -> Iterator[Hit]:
    """Fires when something holds the package manager's lock."""
    if context.host.packages.locked:
        yield Hit(context.name, f"the package manager is locked by {context.host.packages.lock_holder}")


@plan_rule(
    "PKG005", "error", "Too little disk space",
    why="A module build that runs out of space leaves half-configured packages behind.",
    remedy="free space on the file system",
    sources=["docs/design.md, section 11"],
)
def no_space(context: Context) -> Iterator[Hit]:
    """Fires when something has to be installed or built and its file system has no room."""
    if not context.wants_driver or context.driver.build_mb is None or not context.needs_space:
        return
    for path, needed in (("/var", context.driver.build_mb), ("/usr/src", 400), ("/", 1000), ("/boot", 100)):
        free = context.host.free_mb(path)
        if free is not None and free < needed:
            yield Hit(path, f"{path} has {int(free)} MB free, and {needed} MB are needed to build and install the "
                            "driver")


@plan_rule(
    "PKG006", "warning", "A package source of another release",
    why="Its packages are built for other libraries and kernels, and the newest version wins whatever it was built "
        "for.",
    remedy="disable the source that is not for this release",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/544"],
)
def foreign_repository(context: Context) -> Iterator[Hit]:
    """Fires for a CUDA repository of another system or release."""
    own = context.packaging.system.cuda_repo if context.packaging is not None else None
    if own is None:
        return
    for repository in each(context.host.packages.repositories):
        found = _CUDA_DIRECTORY.search(repository.url)
        if found and repository.enabled and found.group(1) != own:
            yield Hit(repository.id, f"{repository.id} in {repository.file} is the repository of {found.group(1)}; "
                                     "this host "
                                     f"is {context.host.os.name} ({own})", f"remove {repository.file}")


@candidate_rule(
    "PKG013", "error", "DKMS has nowhere to come from",
    why="The module is built by DKMS, which RHEL and its rebuilds do not have: it comes from EPEL. Without it the "
        "driver's own package cannot be installed either.",
    remedy="enable EPEL (dnf install epel-release; on RHEL with CodeReady Builder), a mirror of it, or take prebuilt "
           "modules: gpu_driver_method: precompiled",
    sources=["https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/red-hat-enterprise-linux.html"],
)
def no_dkms(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when a module has to be built and dkms is neither installed nor on offer, as far as the lists were read."""
    host = context.host.packages
    if candidate.method != "dkms" or candidate.installed or context.packaging is None or host.cache_age is None:
        return
    known = isinstance(host.available, dict) and isinstance(host.installed, dict) and bool(host.available)
    if context.packaging.manager == "dnf" and known and not host.offers("dkms") and host.version("dkms") is None:
        yield Hit("dkms", f"dkms is neither installed nor on offer, and {candidate.label} is built by it; it comes "
                          "from EPEL")


@candidate_rule(
    "PKG007", "error", "A pin hides the driver",
    why="A negative pin leaves no candidate: the package manager then says only that there is none.",
    remedy="remove the pin",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/544"],
)
def hidden(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when a preference with negative priority covers a wanted package that has no candidate."""
    if candidate.installed:
        return
    for name in candidate.missing:
        for pin in each(context.host.packages.pins):
            if pin.priority < 0 and any(_matches(word, name) for word in pin.package.split()):
                yield Hit(name, f"the pin {pin.package} with priority {int(pin.priority)} in {pin.file} hides {name}",
                          f"remove the pin from {pin.file}")


def _matches(word: str, name: str) -> bool:
    return word == name or (word.endswith("*") and name.startswith(word[:-1]))


@plan_rule(
    "PKG008", "error", "The key of a needed repository is not known",
    why="A repository is trusted by the full fingerprint of its key; an unconfirmed key is not trusted unseen.",
    remedy="configure the repository yourself, or give its fingerprint in gpu_matrix_overlay",
    sources=["docs/design.md, section 11"],
)
def unknown_key(context: Context) -> Iterator[Hit]:
    """Fires when a repository has to be added whose key has no known fingerprint."""
    for repository in [*context.driver.repositories, *context.toolkit.repositories]:
        key = repository.get("key")
        if key is not None and not key.get("fingerprint") and repository.get("missing"):
            yield Hit(repository["name"], f"the full fingerprint of the key of {repository['name']} is not confirmed")


@plan_rule(
    "PKG009", "warning", "The package lists could not be refreshed",
    why="What is planned from old lists may no longer be on offer, and the run would stop in the middle.",
    remedy="see that the host reaches its package sources (proxy, DNS, certificates), then run again",
    sources=["https://github.com/NVIDIA/ansible-role-nvidia-driver/issues/60"],
)
def not_refreshed(context: Context) -> Iterator[Hit]:
    """Fires when refreshing failed; an error when something has to be fetched, unless the plan takes the cause away."""
    error = context.host.refresh_error
    if isinstance(error, str):
        offline = context.wishes.driver_offline is not None
        mended = bool(context.driver.mend) or ("Signed-By" in error and sources.ours_to_mend(context))
        yield Hit(context.name, f"the package sources cannot be reached: {error}",
                  severity="error" if context.needs_space and not mended and not offline else None)


@plan_rule(
    "PKG010", "warning", "Driver packages of different versions side by side",
    why="Half of one driver and half of another: libraries, firmware and module refuse to work together.",
    remedy="bring all driver packages to one version from one source, and hold them",
    sources=["https://github.com/lyulyul/shine-cluster/issues/50"],
)
def mixed_versions(context: Context) -> Iterator[Hit]:
    """Fires when lock-step packages of the driver are installed in more than one version."""
    installed = context.host.packages.installed
    if not isinstance(installed, dict) or not context.has_gpus:
        return
    found: dict[str, list[str]] = {}
    for name, package in installed.items():
        upstream = versions.upstream(package)
        if names.in_lockstep(name) and upstream is not None and len(versions.branch_of(upstream)) == 3:
            found.setdefault(upstream, []).append(name)
    if len(found) > 1:
        told = "; ".join(f"{version}: {', '.join(sorted(packages)[:3])}" for version, packages in sorted(found.items()))
        yield Hit("driver packages", f"driver packages of {len(found)} versions are installed ({told})")


@plan_rule(
    "PKG011", "warning", "A hold that somebody else set is in the way",
    why="A hold by hand has its reason; it is not lifted without asking, so the change cannot be made.",
    remedy="lift the hold (apt-mark unhold, dnf versionlock delete), or leave the version as it is",
    sources=["docs/design.md, section 7"],
)
def foreign_hold(context: Context) -> Iterator[Hit]:
    """Fires when a package that has to move or go is held, and the hold is not ours."""
    ours = set(context.host.own_holds)
    held = {name for name in each(context.host.packages.held) if name not in ours}
    moves = [change for change in (*context.changes, *context.pending) if change.action in ("upgrade", "remove")]
    for change in moves:
        if change.target in held:
            yield Hit(change.target, f"{change.target} is held by hand at {change.before}, and the plan has "
                                     f"{change.after or 'it removed'}")


@plan_rule(
    "PKG012", "warning", "A repository that any key on the host may sign",
    why="Without a key of its own a source is trusted by every key that was ever added; the vendor's old key was "
        "withdrawn.",
    remedy="name the key in the source (Signed-By), with its full fingerprint checked",
    sources=["https://github.com/NVIDIA/cuda-repo-management/issues/4"],
)
def unsigned_source(context: Context) -> Iterator[Hit]:
    """Fires when a source of NVIDIA's names no key."""
    if context.host.packages.manager != "apt":
        return
    for repository in each(context.host.packages.repositories):
        theirs = "developer.download.nvidia.com" in repository.url or "nvidia.github.io" in repository.url
        if theirs and repository.enabled and repository.signed_by is None:
            yield Hit(repository.id, f"{repository.id} in {repository.file} names no key: every key of the host may "
                                     "sign it")
