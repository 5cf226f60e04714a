# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot: whose modules the kernel takes, and how the key of this host stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..model.facts import each
from ..model.host import Module, SigningKey
from .context import Candidate, Context
from .registry import Hit, candidate_rule, plan_rule

#: Who gives leave for what waits on the enrolment of a key: no variable, a person.
CONSOLE = "the console step of Secure Boot (MokManager)"
STEPS = ("restart the host with a person at its console (the BMC's will do): MokManager waits ten seconds, so press a "
         "key, then Enroll MOK, Continue, Yes, the one-time password, Reboot; then run the playbook again")
_DEBIAN = "https://wiki.debian.org/SecureBoot"
_UBUNTU = "https://ubuntu.com/blog/how-to-sign-things-for-secure-boot"
_SHIM = "https://github.com/rhboot/shim/blob/main/MokVars.txt"


def enforced(context: Context) -> bool:
    """Say whether the kernel refuses modules without a signature that it trusts."""
    return context.host.secure_boot is True and context.host.secure_boot_enforced is not False


def key_state(context: Context) -> Literal["enrolled", "requested", "absent", "unknown"]:
    """Say how the key that DKMS signs with stands with the firmware."""
    key, mok = context.host.signing_key, context.host.mok
    if isinstance(key, SigningKey) and isinstance(key.enrolled, bool):
        if key.enrolled:
            return "enrolled"
        return "requested" if key.requested is True else "absent"
    if not isinstance(mok, tuple):
        return "unknown"
    return "enrolled" if mok else "absent"


def is_taken(context: Context) -> bool:
    """Say whether the kernel takes modules built here already: one is loaded, or signed with another enrolled key."""
    running = context.host.kernel(context.host.running)
    module = running.module if running is not None else None
    built_here = not isinstance(module, Module) or module.origin == "dkms"
    if isinstance(context.host.driver.loaded, str) and built_here:
        return True
    return isinstance(module, Module) and isinstance(module.signer, str) and module.signer in each(context.host.mok)


def needs_key(context: Context, candidate: Candidate) -> bool:
    """Say whether modules of this driver are built here, for a kernel that insists on an enrolled key."""
    return context.wants_driver and candidate.method == "dkms" and enforced(context)


def waits(context: Context, candidate: Candidate) -> bool:
    """Say whether this driver could not be loaded yet: its key has to be enrolled first."""
    return needs_key(context, candidate) and key_state(context) in ("absent", "requested") and not is_taken(context)


@candidate_rule(
    "KRN008", "error", "Secure Boot would refuse the module",
    why="With Secure Boot on, the kernel loads signed modules only; a module built here is signed with a key nobody "
        "enrolled.",
    remedy="give a one-time password as gpu_mok_password (from a vault or a prompt): the key is made and its enrolment "
           "asked for, then confirmed once at the console; or take prebuilt signed modules (gpu_driver_method: "
           "precompiled). A request that was not confirmed at the console is gone after that start",
    sources=[_DEBIAN, _UBUNTU],
)
def not_enrolled(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when Secure Boot is on, the module is built on the host, and its key is not enrolled nor to be."""
    if not waits(context, candidate) or key_state(context) == "requested" or context.wishes.mok_password:
        return
    key = context.host.signing_key
    if isinstance(key, SigningKey) and isinstance(key.name, str):
        which = f"the key that DKMS signs with ({key.name}, {key.certificate}) is not enrolled"
    else:
        which = "no machine owner key is enrolled"
    yield Hit(context.name, f"Secure Boot is on and {which}: a module built here is not loaded")


def _is_loaded(context: Context, candidate: Candidate) -> bool:
    """Say whether this very driver is installed and loaded: its modules are trusted here, whoever signed them."""
    return candidate.installed and context.host.driver.loaded == candidate.version


@candidate_rule(
    "KRN027", "error", "Secure Boot would refuse a module that its own package builds",
    why="The package builds the module on the host and signs it with a key that it makes for that build. Nobody "
        "enrolled that key: the GPUs are gone until somebody confirms it at the console, after each update once more.",
    remedy="take the open modules, which are signed (gpu_driver_flavour: open; Turing and newer), or switch Secure "
           "Boot off on this host",
    sources=["https://github.com/openSUSE/nvidia-driver-G06"],
)
def signs_for_itself(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires where Secure Boot insists and the package of the module builds it, unless this very driver is loaded."""
    packages = candidate.packages
    if not context.wants_driver or packages is None or not packages.built_by_package or not enforced(context):
        return
    if _is_loaded(context, candidate):
        return
    yield Hit(candidate.label, f"Secure Boot is on, and {packages.precompiled} builds its module here and signs it "
                               "with a key that nobody enrolled")


@candidate_rule(
    "SYS008", "error", "Secure Boot would refuse a module that is signed with its vendor's key",
    why="NVIDIA signs its prebuilt modules for RHEL with a key of its own. The kernel trusts the distribution's keys "
        "and enrolled ones: until NVIDIA's is enrolled, none of these modules loads.",
    remedy="enrol NVIDIA's certificate (mokutil --import, then the console step; it lies in the repository that has "
           "the modules, as *public_key.der), or build the module with a key of this host (gpu_driver_method: dkms "
           "with gpu_mok_password)",
    sources=["https://github.com/NVIDIA/yum-packaging-precompiled-kmod/blob/main/UEFI.md"],
)
def vendor_not_enrolled(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires where Secure Boot insists and no enrolled key has the vendor's name, unless this very driver is loaded."""
    vendor = candidate.packages.vendor_key if candidate.packages is not None else None
    if not context.wants_driver or vendor is None or not enforced(context) or not isinstance(context.host.mok, tuple):
        return
    if _is_loaded(context, candidate):
        return
    own = context.host.signing_key.name if isinstance(context.host.signing_key, SigningKey) else None
    if not any(vendor.lower() in name.lower() and "dkms" not in name.lower() and name != own
               for name in context.host.mok):
        yield Hit(candidate.label, f"Secure Boot is on, {candidate.packages.precompiled} is signed with {vendor}'s "
                                   "key, and that is not enrolled")


@plan_rule(
    "SYS006", "warning", "The enrolment of a key waits for the console",
    why="Only a person at the console can enrol a key; until then modules built here are not loaded, so none is "
        "installed.",
    remedy=STEPS,
    sources=[_SHIM, _DEBIAN],
)
def waits_for_console(context: Context) -> Iterator[Hit]:
    """Fires when the enrolment of the key was asked for and is not confirmed yet."""
    chosen, key = context.candidate, context.host.signing_key
    if chosen is not None and waits(context, chosen) and key_state(context) == "requested":
        name = key.name if isinstance(key, SigningKey) and isinstance(key.name, str) else "the key"
        yield Hit(name, f"the enrolment of {name} is asked for and waits for the console step; the driver follows "
                        "after it")


@plan_rule(
    "SYS007", "warning", "The private key of the modules can be read by others",
    why="Whoever has it signs modules that this kernel loads, and with them takes the host although Secure Boot is on.",
    remedy="chmod 0600 the file; where others may have read it, make a new key and enrol that",
    sources=[_DEBIAN],
)
def open_key(context: Context) -> Iterator[Hit]:
    """Fires when an enrolled key's file is open to others than root."""
    key = context.host.signing_key
    if not isinstance(key, SigningKey) or key.enrolled is not True or not enforced(context):
        return
    if isinstance(key.mode, str) and not key.mode.endswith("00"):
        yield Hit(key.private_key, f"{key.private_key} has the mode {key.mode}, and its certificate is enrolled")
