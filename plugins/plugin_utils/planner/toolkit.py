# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container toolkit: which version, and where it comes from."""

from __future__ import annotations

from ..model import version as versions
from ..model.containers import TOOLKIT_PACKAGES, offline_packages
from ..model.facts import each
from ..rules.context import Context
from . import repositories

PACKAGES = TOOLKIT_PACKAGES
RUNTIME_PATH = "/usr/bin/nvidia-container-runtime"


def fill(context: Context) -> None:
    """Fill in ``context.toolkit``; it stays empty where no toolkit is wanted on the host."""
    if not context.has_gpus or not context.uses_containers:
        return
    if context.toolkit_by_operator or context.wishes.driver_owner == "operator":
        return
    decision = context.toolkit
    version = _version(context)
    decision.version = version
    decision.runtime_path = RUNTIME_PATH
    decision.mode = context.wishes.container_mode
    decision.hold = list(PACKAGES)
    offline = context.wishes.toolkit_offline
    if offline is not None:
        decision.offline = {"path": offline["path"], "on": offline["on"], "files": offline["sha256"]}
        decision.packages = dict(offline_packages(offline["sha256"]))
        return
    decision.repositories = repositories.for_toolkit(context)
    if version is None:
        return
    there = context.host.packages.version(PACKAGES[0])
    if not isinstance(there, str) and context.host.containers.toolkit == version and not _package_known(context):
        return
    for name in PACKAGES:
        installed = context.host.packages.version(name)
        if isinstance(installed, str) and versions.upstream(installed) == version:
            decision.packages[name] = installed
            continue
        offers = each(context.host.packages.offers(name))
        exact = next((one for one in offers if versions.upstream(one) == version), None)
        if exact is not None:
            decision.packages[name] = exact
        elif not _offered(context):
            decision.packages[name] = f"{version}-1"
            decision.predicted = True
    if isinstance(there, str) and versions.upstream(there) == version:
        decision.packages = {name: one for name, one in decision.packages.items()
                             if isinstance(context.host.packages.version(name), str)}


def _package_known(context: Context) -> bool:
    return isinstance(context.host.packages.installed, dict)


def _offered(context: Context) -> bool:
    return bool(context.host.packages.offers(PACKAGES[0]))


def _version(context: Context) -> str | None:
    if context.wishes.toolkit_version is not None:
        return context.wishes.toolkit_version
    if context.wishes.toolkit_offline is not None:
        return versions.upstream(offline_packages(context.wishes.toolkit_offline["sha256"])[PACKAGES[0]])
    floor = versions.try_loose(context.matrix.toolkit_floor())
    there = context.host.packages.version(PACKAGES[0])
    installed = versions.upstream(there) if isinstance(there, str) else context.host.containers.toolkit
    have = versions.try_loose(installed)
    if isinstance(installed, str) and have is not None and (floor is None or have >= floor):
        return installed
    offers = each(context.host.packages.offers(PACKAGES[0]))
    offered = [one for version in offers if (one := versions.upstream(version))]
    if offered:
        return max(offered, key=lambda one: versions.try_loose(one) or ())
    releases = context.matrix.toolkit_releases()
    return str(releases[0].version) if releases else None
