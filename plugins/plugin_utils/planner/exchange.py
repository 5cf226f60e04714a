# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A move between drivers: what goes out when another branch, flavour, variant, method or source comes in, what moves
along in lock-step, which module stream it needs, and what has to be installed once more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..model import version as versions
from ..model.facts import each
from ..model.host import Module
from ..rules import kernels
from ..rules.context import Candidate, Context
from . import candidates, fabric, family

MODULE = "nvidia-driver"  # the module of dnf that has NVIDIA's streams
# Packages that bring a kernel module or its source, no metapackages: of these exactly the chosen ones may be there.
_KERNEL_SIDE = re.compile(
    r"(nvidia-(tesla-\d+-|legacy-\d+xx-)?(open-)?kernel-(open-)?dkms\Z|nvidia-dkms(-|\Z)|nvidia-kernel-source(-|\Z)"
    r"|linux-(modules|objects|signatures)-nvidia-|kmod-nvidia|nvidia-(open-)?driver-G0[67].*-kmp-)"
)

# NVIDIA's packages that have apt keep a branch or a version: each brings the same file of preferences.
_PINNING = re.compile(r"nvidia-driver-pinning-(\d{3}(?:\.\d+)*)\Z")
_WITH_VERSION = re.compile(r"kmod-nvidia-(open-)?\d")


def removed(context: Context, chosen: Candidate, coming: Mapping[str, Any]) -> list[str]:
    """Return the driver packages that have to go: those of another branch, flavour, variant, method or source."""
    installed = context.host.packages.installed
    if not isinstance(installed, dict):
        return []
    gone = []
    for name, version in installed.items():
        if name not in coming and _pins_another(name, chosen):
            gone.append(name)
        if name in coming or not (family.names_driver_version(name) or _KERNEL_SIDE.match(name)):
            continue
        if (
            _of_other_branch(name, version, chosen)
            or _of_other_flavour(context, name, chosen)
            or _of_other_variant(context, name, chosen)
            or _of_other_method(name, chosen)
        ):
            gone.append(name)
    return sorted({*gone, *fabric.replaced(context, coming)})


def _of_other_branch(name: str, version: str, chosen: Candidate) -> bool:
    upstream = versions.upstream(version)
    if upstream is None or len(versions.branch_of(upstream)) != 3:
        return bool(_KERNEL_SIDE.match(name)) and _branch_in(name) not in (None, chosen.branch)
    if _WITH_VERSION.match(name):
        return upstream != chosen.version
    if versions.branch_of(upstream) == chosen.branch:
        return _branch_in(name) not in (None, chosen.branch)  # a shell of another branch: what it installed is here
    return _branch_in(name) is not None


def _pins_another(name: str, chosen: Candidate) -> bool:
    """Say whether a package has apt prefer another driver than the chosen one, or one of another place."""
    pinned = _PINNING.match(name)
    return pinned is not None and (chosen.source != "nvidia" or pinned[1] not in (chosen.branch, chosen.version))


def _branch_in(name: str) -> str | None:
    """Return the branch that a name carries: 580 of nvidia-dkms-580-server-open, None of nvidia-dkms-open."""
    return next((part for part in name.replace("tesla-", "").split("-") if part.isdigit() and len(part) == 3), None)


def _of_other_flavour(context: Context, name: str, chosen: Candidate) -> bool:
    installed = context.installed
    if installed is None or installed.flavour is None or installed.flavour == chosen.flavour:
        return False
    return family.is_module_package(name) or bool(_KERNEL_SIDE.match(name))


def _of_other_variant(context: Context, name: str, chosen: Candidate) -> bool:
    """Say whether a name belongs to Ubuntu's other set of the same branch: -server or not."""
    if context.host.os.id != "ubuntu" or _branch_in(name) != chosen.branch or chosen.series is None:
        return False
    ours = chosen.series.variant == "server"
    return ("-server" in name) != ours and not name.startswith(("linux-signatures-nvidia-", "nvidia-fabricmanager-"))


def _of_other_method(name: str, chosen: Candidate) -> bool:
    """Say whether a package brings the module in another way than is chosen: two ways hide each other's files."""
    if chosen.method not in ("dkms", "precompiled") or not _KERNEL_SIDE.match(name):
        return False
    built_here = "dkms" in name
    if chosen.method == "precompiled":
        return built_here
    return not built_here and ("linux-modules-nvidia" in name or "kmod-nvidia" in name or "-kmp-" in name)


def alongside(context: Context, chosen: Candidate, coming: Mapping[str, Any], gone: list[str]) -> dict[str, str]:
    """Return the installed packages of the driver that are not in the chosen set and have to move with it."""
    host, found = context.host.packages, {}
    if chosen.installed or not isinstance(host.installed, dict) or chosen.version is None:
        return {}
    for name, there in host.installed.items():
        if name in coming or name in gone or not family.names_driver_version(name):
            continue
        if versions.upstream(there) == chosen.version:
            continue
        offered = each(candidates.offers(context, name))
        offer = next((one for one in offered if versions.upstream(one) == chosen.version), None)
        if offer is not None:
            found[name] = offer
    return found


def streams(context: Context, chosen: Candidate) -> dict[str, str]:
    """Return the module stream that goes with a driver that is to be installed, or in the place of another one's.

    dnf switches the default stream on with the first package of a module. The repository that this collection writes
    is not filtered by streams (module_hotfixes), but an upgrade by hand would follow a stream of another branch.
    """
    modules, packages = context.host.packages.modules, chosen.packages
    if packages is None or not packages.stream or chosen.source != "nvidia" or not isinstance(modules, dict):
        return {}
    wanted = family.fill(packages.stream, chosen.branch, chosen.version)
    here = modules.get(MODULE)
    stream = here.get("stream") if isinstance(here, dict) and here.get("state") == "enabled" else None
    if stream == wanted or (chosen.installed and (stream is None or _follows(str(stream), wanted))):
        return {}
    return {MODULE: wanted}


def _follows(stream: str, wanted: str) -> bool:
    """Say whether a rolling stream (latest-dkms, open-dkms) holds what the stream of the branch would."""
    ends = {"latest-dkms": "-dkms", "open-dkms": "-open"}.get(stream)
    return ends is not None and wanted.endswith(ends)


def again(context: Context, chosen: Candidate, decision_packages: Mapping[str, Any]) -> list[str]:
    """Return installed packages of the right version whose kernel module is not there: a run was cut off in them."""
    host = context.host
    if not chosen.installed or chosen.packages is None or context.boot is None:
        return []
    found: list[str] = []
    for release in context.kernel.allowed:
        kernel = host.kernel(release)
        if kernel is None or kernels.has_module_of(kernel, chosen) or not _is_known_not_to(kernel):
            continue
        if chosen.method == "precompiled" and candidates.needs_own_module(chosen.packages):
            found.append(candidates.module_package(chosen.packages, chosen.branch, chosen.version, release))
        elif chosen.packages.source_package is not None and context.packaging.manager != "apt":
            found.append(family.fill(chosen.packages.source_package, chosen.branch, chosen.version, release))
    return [name for name in dict.fromkeys(found)
            if isinstance(host.packages.version(name), str) and name in decision_packages]


def _is_known_not_to(kernel: Any) -> bool:
    """Say whether the facts looked for a module of this kernel and found none, or one that does not fit it."""
    module = kernel.module
    return module is None or (isinstance(module, Module) and module.vermagic_ok is False)
