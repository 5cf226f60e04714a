# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All subjects, put together into one set of facts."""

from __future__ import annotations

import time
from typing import Any

from . import (
    boot,
    candidates,
    containers,
    cuda,
    daemons,
    dkms,
    driver,
    files,
    health,
    kernel,
    nouveau,
    packages,
    pci,
    processes,
    secure_boot,
    services,
    state,
    storage,
    system,
)
from .context import Context, Facts
from .tree import Tree
from .trim import LIMIT, trim
from .workers import Subject, gather

_INTERNAL = ("kernel_packages", "kernel_arrivals", "nouveau_images", "nvidia_images", "smi_gpus", "smi_silent")
_FABRIC_PACKAGES = "nvidia-fabricmanager", "cuda-drivers-fabricmanager", "nvidia-fabric-manager", "nv-fabricmanager"


def groups(smi_timeout: float, ask_resolver: bool = False) -> list[list[Subject]]:
    """What is read side by side; the order within a group matters where one subject builds on another."""
    return [
        [
            Subject("hung", processes.read_hung, ("driver.hung_tasks",)),
            Subject(
                "driver",
                driver.read,
                ("driver.loaded", "driver.library", "driver.smi", "health.ecc_uncorrected", "health.row_remap_failure"),
                limit=smi_timeout + 10,
            ),
        ],
        # the resolver first: what is offered for the kernels that it names is read as for those that are installed
        [Subject("candidates", candidates.read, ("kernel.candidates",), limit=45)] * ask_resolver
        + [Subject("packages", packages.read, ("packages",), limit=40)],
        [Subject("initrd", nouveau.read_images, ("nouveau_images", "nvidia_images"), limit=60)],
        [
            Subject("system", system.read, ("os", "host")),
            Subject("kernel", kernel.read, ("kernel.running", "kernel.cmdline", "kernel.modules", "kernel.installed")),
            Subject("pci", pci.read, ("gpus", "nvswitches")),
            Subject("boot", boot.read, ("boot", "kernel.default_boot")),
            Subject("storage", storage.read, ("storage",)),
            Subject("secure_boot", secure_boot.read, ("secure_boot",)),
            Subject("services", services.read, ("services",)),
            Subject("daemons", daemons.read, ("driver.persistenced", "driver.fabricmanager")),
            Subject("nouveau", nouveau.read, ("driver.nouveau.loaded", "driver.nouveau.blocked")),
            Subject("dkms", dkms.read, ("driver.dkms",)),
            Subject("containers", containers.read, ("containers",)),
            Subject("cuda", cuda.read, ("cuda",)),
            Subject("files", files.read, ("files",)),
            Subject("state", state.read, ("state",)),
            Subject("health", health.read, ("health.xids",)),
            Subject("holders", processes.read_holders, ("driver.processes",)),
        ],
    ]


def collect(
    root: str = "/",
    timeout: float = 90.0,
    smi_timeout: float = 60.0,
    command_timeout: float = 10.0,
    limit: int = LIMIT,
    ask_resolver: bool = False,
) -> Facts:
    """Everything that ``gpu_facts`` returns. Never raises for what a host is like."""
    tree = Tree(root)
    deadline = time.monotonic() + timeout

    def make(known: Facts, until: float) -> Context:
        return Context(tree, deadline=until, command_timeout=command_timeout, smi_timeout=smi_timeout, known=known)

    outcome = gather(groups(smi_timeout, ask_resolver), make, deadline)
    facts, unknown = outcome.facts, outcome.unknown
    join(facts, unknown, tree)
    facts["read_at"] = int(time.time())
    facts["unknown"] = unknown
    return trim(facts, limit)


def join(facts: Facts, unknown: dict[str, str], tree: Tree) -> None:
    """What takes two subjects to tell; the internal keys are gone afterwards."""
    _kernels(facts, unknown)
    _gpus(facts, unknown)
    installed = facts.get("packages", {}).get("installed")
    facts.setdefault("driver", {})
    try:
        origin = driver.origin(tree, installed, facts)
        facts["driver"]["origin"] = origin
        facts["driver"]["runfile"] = driver.runfile(tree, facts["driver"]) if origin == "runfile" else None
    except (OSError, ValueError) as error:
        unknown["driver.origin"] = str(error)
    _fabric_manager(facts, unknown, installed)
    _auto_upgrades(facts)
    for key in _INTERNAL:
        facts.pop(key, None)
        unknown.pop(key, None)


def _kernels(facts: Facts, unknown: dict[str, str]) -> None:
    rows: list[dict[str, Any]] | None = facts.get("kernel", {}).get("installed")
    if rows is None:
        unknown["driver.nouveau.in_initramfs"] = "the installed kernels could not be read"
        return
    owners = facts.get("kernel_packages")
    if owners is None and rows:
        unknown["kernel.installed[].packages"] = "the installed packages were not read"
    arrivals = facts.get("kernel_arrivals")
    looked: dict[str, bool] = facts.get("nouveau_images") or {}
    why = unknown.get("nouveau_images")
    found: list[bool | None] = []
    for row in rows:
        if owners is not None:
            row["packages"] = owners.get(row["release"], {"image": None, "headers": None})
        if arrivals is not None:
            row["arrived"] = arrivals.get(row["release"])
        if not row.get("initrd"):
            row["nouveau_in_initrd"] = False
        elif row["release"] in looked:
            row["nouveau_in_initrd"] = looked[row["release"]]
        elif why:
            unknown[f"kernel.installed[{row['release']}].nouveau_in_initrd"] = why
        found.append(row.get("nouveau_in_initrd"))
        _initrd_driver(facts, unknown, row)
    if any(found):
        facts.setdefault("driver", {}).setdefault("nouveau", {})["in_initramfs"] = True
    elif None in found:
        unknown["driver.nouveau.in_initramfs"] = "not every initial ramdisk could be looked into"
    else:
        facts.setdefault("driver", {}).setdefault("nouveau", {})["in_initramfs"] = False


def _initrd_driver(facts: Facts, unknown: dict[str, str], row: dict[str, Any]) -> None:
    """``nvidia_in_initrd`` of a kernel: what is not known of its image is not known here."""
    where = f"kernel.installed[{row['release']}]."
    images: dict[str, Any] = facts.get("nvidia_images") or {}
    if not row.get("initrd"):
        row["nvidia_in_initrd"] = None
    elif row["release"] in images:
        row["nvidia_in_initrd"] = images[row["release"]]
    else:
        why = unknown.get(f"{where}nouveau_in_initrd", "it was not looked into")
        unknown.setdefault(f"{where}nvidia_in_initrd", why)


def _gpus(facts: Facts, unknown: dict[str, str]) -> None:
    told: dict[str, Any] = facts.get("smi_gpus") or {}
    silent = facts.get("smi_silent") or unknown.get("driver.smi")
    for row in facts.get("gpus") or []:
        for key in ("persistence", "mig", "fabric"):
            if row["address"] in told:
                row[key] = told[row["address"]][key]
            elif silent:
                row.pop(key, None)
                unknown[f"gpus[].{key}"] = silent


def _fabric_manager(facts: Facts, unknown: dict[str, str], installed: dict[str, str] | None) -> None:
    if installed is None:
        unknown["driver.fabricmanager.version"] = "the installed packages were not read"
        return
    version = None
    for name, full in installed.items():
        if name.startswith(_FABRIC_PACKAGES) and "dev" not in name:
            version = full.split(":")[-1].split("-")[0].split("+")[0]
    facts["driver"].setdefault("fabricmanager", {})["version"] = version


# timers that start upgrades as they are configured, and those that upgrade whatever is configured
_TIMERS = {
    "apt": (("apt-daily-upgrade.timer",), ()),
    "dnf": (("dnf-automatic.timer", "dnf5-automatic.timer"), ("dnf-automatic-install.timer",)),
    "zypper": (("os-update.timer", "transactional-update.timer"), ()),
}


def _auto_upgrades(facts: Facts) -> None:
    """Upgrades are set up and no timer starts them: then nothing is upgraded."""
    packages = facts.get("packages", {})
    upgrades, services = packages.get("auto_upgrades"), facts.get("services")
    if not isinstance(upgrades, dict) or not isinstance(services, dict) or packages.get("manager") not in _TIMERS:
        return
    configured, always = _TIMERS[packages["manager"]]
    states = {name: row for name in (*configured, *always) if (row := services.get(name))}
    running = {name for name, row in states.items() if row["enabled"] or row["active"]}
    if running & set(always):
        upgrades["enabled"] = True
    elif states and not running:
        upgrades["enabled"] = False
