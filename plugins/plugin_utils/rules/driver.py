# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the driver: branch, version, life cycle, and what is on the host beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import version as versions
from ..model.facts import each
from . import kernels, lockstep
from .context import Candidate, Context
from .registry import Hit, candidate_rule, plan_rule

_LIFE = "https://docs.nvidia.com/datacenter/tesla/drivers/"
_SECURITY = "https://www.nvidia.com/en-us/security/"


@candidate_rule(
    "DRV001", "error", "A branch that is not known",
    why="A mistyped branch must not end in whatever a package manager makes of it.",
    remedy="set gpu_driver_branch to a known branch or leave it auto",
    sources=[_LIFE],
)
def unknown_branch(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires for a branch without a row."""
    if context.matrix.branch(candidate.branch) is None:
        known = [row.name for row in context.matrix.branches() if row.type in ("production", "lts")]
        yield Hit(f"R{candidate.branch}", f"there is no driver branch {candidate.branch} in the matrix; production "
                                          "and LTS "
                                          f"branches are {', '.join(sorted(known))}")


@candidate_rule(
    "DRV002", "error", "A new-feature branch that has ended",
    why="New-feature branches get neither security nor kernel fixes once the next one is out: the next kernel breaks "
        "them.",
    remedy="take a production or LTS branch, or leave gpu_driver_branch: auto",
    sources=[_LIFE],
)
def ended_feature_branch(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires for a new-feature branch past its end."""
    row = context.matrix.branch(candidate.branch)
    if row is not None and row.type == "new_feature" and not row.supported_on(context.now):
        yield Hit(f"R{candidate.branch}", f"R{candidate.branch} is a new-feature branch that ended {_day(row)}: "
                                          "nobody fixes "
                                          f"it for new kernels any more ({candidate.version or 'no version given'})",
                  sources=row.source)


@candidate_rule(
    "DRV003", "warning", "A branch past its end of life",
    why="After its end a branch gets no security fix, whatever is found in it.",
    remedy="plan the move to a maintained branch",
    sources=[_LIFE],
)
def ended_branch(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires for a production, LTS or legacy branch past its end; where nothing newer serves the GPU it is only told."""
    row = context.matrix.branch(candidate.branch)
    if row is None or row.type == "new_feature" or row.supported_on(context.now):
        return
    if context.wishes.driver_owner == "operator":
        return  # which driver runs is the operator's choice, and told by its own rules
    if _is_all_there_is(context, candidate):
        yield Hit(f"R{candidate.branch}", f"NVIDIA ended R{candidate.branch} {_day(row)}; {context.host.os.name} goes "
                                          "on "
                                          "shipping it and has nothing newer",
                  "gpu_driver_source: nvidia offers maintained branches", severity="info")
    else:
        yield Hit(f"R{candidate.branch}", f"R{candidate.branch} ended {_day(row)} and gets no fixes any more",
                  sources=row.source)


@candidate_rule(
    "DRV004", "warning", "A version below the security floor of its branch",
    why="NVIDIA's bulletins name the first fixed version of each branch; older ones let a user of the GPU take the "
        "host.",
    remedy="move to the floor or above with gpu_driver_version or gpu_driver_branch",
    sources=[_SECURITY],
)
def below_floor(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the version is older than the security floor of its branch."""
    row = context.matrix.branch(candidate.branch)
    if row is None or not row.security_floor or candidate.parsed is None:
        return
    if candidate.parsed >= versions.parse(row.security_floor):
        return
    text = f"{candidate.version} is below the security floor {row.security_floor} of R{candidate.branch}"
    if _is_all_there_is(context, candidate):
        yield Hit(candidate.label, f"{text}; {context.host.os.name} offers nothing newer",
                  "gpu_driver_source: nvidia offers a fixed version", severity="info", sources=row.source)
    else:
        yield Hit(candidate.label, text, f"move to {row.security_floor} or newer", sources=row.source)


@candidate_rule(
    "DRV005", "error", "A version that is known to be bad",
    why="Some releases have faults that no configuration mends.",
    remedy="take another version of the branch",
    sources=[_LIFE],
)
def known_bad(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires for a version that the matrix warns of."""
    row = context.matrix.version(candidate.version) if candidate.version else None
    if row is not None:
        for reason in row.known_bad:
            yield Hit(candidate.label, f"{candidate.version} is known to be bad: {reason}", sources=row.source)


@candidate_rule(
    "DRV006", "error", "Branch and version contradict each other",
    why="Two wishes for one thing: whichever is taken, the other one is broken without a word.",
    remedy="leave one of gpu_driver_branch and gpu_driver_version out",
    sources=["docs/design.md, section 4"],
)
def contradiction(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the wanted version is of another branch than the wanted one."""
    branch, version = context.wishes.driver_branch, context.wishes.driver_version
    if branch != "auto" and version is not None and versions.branch_of(version) != branch:
        yield Hit(f"{version}", f"gpu_driver_version {version} is not of gpu_driver_branch {branch}")


@candidate_rule(
    "DRV007", "error", "The branch has no modules of this flavour",
    why="Open modules exist from R515 on; proprietary ones are gone from R620 on.",
    remedy="leave gpu_driver_flavour: auto",
    sources=["https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/620/kernel-modules.html"],
)
def flavour_not_made(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the branch does not come in the flavour at all."""
    row = context.matrix.branch(candidate.branch)
    if row is None:
        return
    if row.open_modules == "none" and candidate.flavour == "open":
        yield Hit(candidate.label, f"R{candidate.branch} has no open modules", "set gpu_driver_flavour: proprietary")
    if row.open_modules == "only" and candidate.flavour == "proprietary":
        yield Hit(candidate.label, f"R{candidate.branch} has open modules only", "set gpu_driver_flavour: open")


@candidate_rule(
    "DRV008", "error", "A part of the fabric is not to be had in the driver's version",
    why="On an NVSwitch host CUDA does not start without a fabric manager of exactly the driver's version; IMEX and "
        "NSCQ fail likewise.",
    remedy="take a driver version that the same source has all parts for, or leave gpu_driver_version out",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/544",
             "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"],
)
def no_fabric_manager(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when a lock-step component of the fabric has no version that fits."""
    if not context.wants_driver:
        return
    for name in candidate.fabric_missing:
        offers = [versions.upstream(one) for one in each(context.host.packages.offers(name))]
        has = f"it is on offer in {', '.join(str(one) for one in offers)}" if offers else "it is not on offer at all"
        title = lockstep.TITLES.get(lockstep.component_of(name) or "", "fabric manager")
        pins = [pin for pin in each(context.host.packages.pins) if pin.priority < 0 and _pin_hits(pin.package, name)]
        if pins:
            yield Hit(name, f"{title} {name} for driver {candidate.version} has no candidate: the pin "
                            f"{pins[0].package} with priority {int(pins[0].priority)} in {pins[0].file} hides it",
                      f"remove the pin from {pins[0].file}")
        else:
            if offers:
                text = f"{title} has to be of exactly {candidate.version}, the driver's version, and {name} {has[3:]}"
            else:
                text = f"{title} {candidate.version} is needed, and {name} is not on offer"
            yield Hit(name, text)


def _pin_hits(pattern: str, name: str) -> bool:
    return any(word == name or (word.endswith("*") and name.startswith(word[:-1])) for word in pattern.split())


@plan_rule(
    "DRV014", "warning", "A part of the driver is of another version",
    why="A fabric manager of another version than the loaded module does not start the fabric: CUDA fails on every "
        "GPU. NSCQ, IMEX and NVSDM refuse a driver of another patch level.",
    remedy="move it to the driver's version, and hold both",
    sources=["https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"],
)
def fabric_out_of_step(context: Context) -> Iterator[Hit]:
    """Fires when fabric manager, IMEX, NSCQ, NVSDM or persistenced on the host is not of the driver's version."""
    there = context.host.driver.fabricmanager
    driver = context.host.driver.loaded or (context.installed.version if context.installed is not None else None)
    if isinstance(there, str) and isinstance(driver, str) and there != driver and context.has_gpus:
        yield Hit(f"fabric manager {there}", f"fabric manager is {there} and the driver is {driver}: both must be the "
                                             "same")
    for title, name, version, of_driver in lockstep.out_of_step(context) if context.wants_driver else ():
        if not (title == "fabric manager" and isinstance(there, str)):
            yield Hit(name, f"{title} is {version} and the driver is {of_driver}: both must be the same")


@plan_rule(
    "DRV009", "error", "Two owners of the driver",
    why="A driver on the host and one in the operator's container fight for the same module; the loser is the node.",
    remedy="remove the host's driver, or set gpu_driver_owner: host and driver.enabled: false in the operator",
    sources=["https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html"],
)
def two_owners(context: Context) -> Iterator[Hit]:
    """Fires when the operator is to own the driver and the host has one."""
    installed, driver = context.installed, context.host.driver
    if context.wishes.driver_owner == "operator" and context.has_gpus and installed is not None:
        if driver.origin in ("operator",):
            return
        yield Hit(f"driver {installed.version}", "gpu_driver_owner is operator, but this host has a driver of its own "
                                                 f"({installed.version}, from {driver.origin or 'packages'})")


@plan_rule(
    "DRV010", "warning", "Loaded module and library are of different versions",
    why="Every new process that uses the GPU fails (driver/library version mismatch) until both are the same.",
    remedy="restart the host (gpu_reboot_allowed: true), or stop the GPU processes and reload the module",
    sources=["https://github.com/lyulyul/shine-cluster/issues/30"],
)
def library_mismatch(context: Context) -> Iterator[Hit]:
    """Fires when the library on disk is not of the loaded module's version."""
    driver = context.host.driver
    if isinstance(driver.loaded, str) and isinstance(driver.library, str) and driver.loaded != driver.library:
        if context.borrowed_kernel:
            yield Hit(context.name, f"this container uses the module {driver.loaded} of its host, and its own library "
                                    "is "
                                    f"{driver.library}: both must be the same",
                      f"install the library {driver.loaded} in the container, or {driver.library} on its host")
        else:
            yield Hit(context.name, f"module {driver.loaded} is loaded and the library on disk is {driver.library}: "
                                    "every new GPU process fails")


@plan_rule(
    "DRV011", "warning", "The driver came from a runfile",
    why="A runfile's files belong to no package: packages overwrite them, and no hold or upgrade knows of them.",
    remedy="set gpu_driver_runfile: replace, and packages take its place (its own uninstaller is run once they are "
           "proved and fetched); or gpu_driver_owner: none",
    sources=["https://github.com/lyulyul/shine-cluster/issues/50"],
)
def runfile(context: Context) -> Iterator[Hit]:
    """Fires when the driver was put there by a runfile."""
    origin = context.host.driver.origin
    if origin == "runfile" and context.wants_driver:
        version = context.installed.version if context.installed is not None else "the driver"
        beside = sorted({str(versions.upstream(package)) for name, package in _driver_packages(context)
                         if versions.upstream(package) != version})
        also = f", and driver packages of {', '.join(beside)} lie beside it" if beside else ""
        yield Hit(f"driver {version}", f"{version} was installed from a runfile{also}: no package manager knows its "
                                       "files")


@plan_rule(
    "DRV030", "error", "The runfile has no uninstaller",
    why="Only the uninstaller of a runfile knows which files are its own, and which it had set aside.",
    remedy="run the .run file of that version with --uninstall, then run this again; or gpu_driver_runfile: keep",
    sources=["https://github.com/NVIDIA/nvidia-installer"],
)
def no_uninstaller(context: Context) -> Iterator[Hit]:
    """Fires when packages are to take the place of a runfile whose own uninstaller is gone."""
    runfile = context.driver.runfile
    facts = context.host.driver.runfile
    if runfile is None or runfile["cut_off"] or context.wishes.driver_runfile != "replace":
        return
    if isinstance(facts, dict) and facts.get("uninstaller", "unknown") is None:
        yield Hit(f"driver {runfile['version'] or ''}".strip(), "the runfile's files are there and nvidia-uninstall is "
                                                                "not: nobody knows which of them are its own")


def _driver_packages(context: Context) -> Iterator[tuple[str, str]]:
    installed = context.host.packages.installed
    if isinstance(installed, dict):
        for name, package in installed.items():
            if name.startswith(("nvidia-", "libnvidia-", "cuda-drivers", "kmod-nvidia")) and "container" not in name:
                yield name, package


@plan_rule(
    "DRV012", "warning", "The installed branch cannot stay",
    why="auto keeps what is installed unless a rule of severity error excludes it; then it moves, and says why.",
    remedy="agree to the move, or set gpu_driver_branch yourself",
    sources=["docs/design.md, section 4"],
)
def left_branch(context: Context) -> Iterator[Hit]:
    """Fires when auto leaves the installed branch."""
    if context.left is not None and context.candidate is not None:
        old = context.left.candidate
        yield Hit(f"R{old.branch}", f"the installed {old.version or 'R' + old.branch} cannot stay: "
                                    f"{context.left.summary}",
                  f"the plan moves the host to {context.candidate.version or 'R' + context.candidate.branch}; "
                  "set gpu_driver_branch to decide otherwise")


@plan_rule(
    "DRV013", "info", "A newer branch is out",
    why="auto never moves a host by itself; somebody has to know that there is something to move to.",
    remedy="gpu_driver_branch moves the host when you decide to, with gpu_driver_source where the archive ends",
    sources=[_LIFE],
)
def newer_branch(context: Context) -> Iterator[Hit]:
    """Fires when auto stays on a branch that has a newer production or LTS successor for these GPUs."""
    chosen = context.candidate
    if chosen is None or not chosen.installed or context.wishes.driver_is_asked or context.left is not None:
        return
    limit = min((int(last) for card in each(context.cards) if (last := _last(card))), default=9999)
    newer = [row.name for row in context.matrix.branches()
             if row.type in ("production", "lts") and row.latest and row.supported_on(context.now)
             and int(chosen.branch) < int(row.name) <= limit]
    if newer:
        yield Hit(f"R{chosen.branch}", f"R{max(newer, key=int)} is out; this host stays on R{chosen.branch}")


def _last(card: object) -> str | None:
    from .gpu import last_branch

    return last_branch(card)  # type: ignore[arg-type]


def _is_all_there_is(context: Context, candidate: Candidate) -> bool:
    """Say whether the driver is the best that the wanted source, the distribution's own archive, has."""
    if candidate.source != "distro" or context.wishes.driver_source == "nvidia":
        return False
    return _newest_of_source(context, candidate)


def _newest_of_source(context: Context, candidate: Candidate) -> bool:
    """Say whether the distribution has nothing newer than this version."""
    series, packaging = candidate.series, context.packaging
    if series is None or packaging is None or candidate.version is None:
        return False
    offers = next((found for name in candidate.versions
                   if candidate.packages is not None and (found := context.host.packages.offers(name))), None)
    offered = [upstream for one in each(offers) if (upstream := versions.upstream(one))] if offers else []
    newest = max((versions.try_parse(one) or versions.DriverVersion("0") for one in offered), default=None)
    if newest is not None and candidate.parsed is not None and newest > candidate.parsed:
        return False
    return not any(int(row.branch) > int(candidate.branch) and row.transitional_to is None
                   for row in packaging.find(source="distro", flavour=candidate.flavour))


def _day(row: object) -> str:
    eol = getattr(row, "eol", None)
    if eol is None:
        return "long ago"
    return f"in {eol:%Y-%m}" if getattr(row, "eol_precision", "day") == "month" else f"on {eol}"


@candidate_rule(
    "DRV015", "warning", "A known trouble of this driver on this system",
    why="Others ran into it with the same driver, kernel and system; it is told before it happens here.",
    remedy="see the finding",
    sources=[_LIFE],
)
def known_trouble(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires for a reported trouble of packaging or toolchain, while the module still has to be built."""
    kernel, system = context.host.kernel(context.boot), context.host.os
    built = kernel is not None and kernels.has_module_of(kernel, candidate)
    if candidate.version is None or built or not isinstance(system.id, str) or not isinstance(system.version, str):
        return
    source = "distro" if candidate.source == "distro" else "nvidia"
    rows = context.matrix.breakages(
        candidate.version, context.boot, system.id, system.version, candidate.flavour, source
    )
    for row in rows:
        if row.kind in ("packaging", "toolchain") and row.drivers and row.decides and not _is_settled(context, row):
            yield Hit(candidate.label, f"{candidate.version} on {system.name}: {row.symptom}", row.workaround,
                      sources=row.source)


def _is_settled(context: Context, row: Any) -> bool:
    """Say whether the package that the way out names is installed already."""
    installed = context.host.packages.installed
    words = str(row.workaround or "").replace(",", " ").split()
    return isinstance(installed, dict) and "install" in words and any(word in installed for word in words)


@plan_rule(
    "DRV016", "warning", "GPUDirect RDMA is asked for and cannot work",
    why="nvidia_peermem registers with NVIDIA's OFED; with the kernel's own RDMA stack, or none, it does not load.",
    remedy="install NVIDIA's OFED (DOCA) and then the driver once more, or leave gpu_driver_peermem out: with the "
           "kernel's own RDMA stack the open modules do the same by DMA-BUF",
    sources=["https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html"],
)
def no_peer_memory(context: Context) -> Iterator[Hit]:
    """Fires when nvidia_peermem is asked for and the kernel that starts has no OFED."""
    if not context.wishes.driver_peermem or not context.wants_driver:
        return
    kernel = context.host.kernel(context.boot)
    if kernel is not None and isinstance(kernel.extra_modules, tuple) and "mlnx-ofed" not in kernel.extra_modules:
        yield Hit(kernel.release, f"gpu_driver_peermem is true, and {kernel.release} has no modules of NVIDIA's OFED")


@plan_rule(
    "DRV017", "info", "A fabric manager where there is no NVSwitch",
    why="It finds nothing to manage and ends with an error at every start.",
    remedy="take the package out, or disable nvidia-fabricmanager.service",
    sources=["https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"],
)
def needless_fabric_manager(context: Context) -> Iterator[Hit]:
    """Fires when fabric manager is installed and neither a switch nor a GPU of NVLink 5 is there."""
    there, switches = context.host.driver.fabricmanager, context.host.nvswitches
    if not context.wants_driver or not isinstance(there, str) or not isinstance(switches, tuple) or switches:
        return
    cards = list(each(context.cards))
    if cards and not any(context.matrix.fabric_of(card.gpu.id) for card in cards if isinstance(card.gpu.id, str)):
        yield Hit(f"fabric manager {there}", f"fabric manager {there} is installed, and this host has no NVSwitch")
