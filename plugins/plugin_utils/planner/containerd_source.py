# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where containerd comes from: the distribution, Docker's repository or the project's own archive."""

from __future__ import annotations

from ..model import version as versions
from ..model.facts import each
from ..rules.context import Context
from . import repositories

PACKAGES = ("containerd.io", "containerd")
SOURCE_OF = {"containerd.io": "docker", "containerd": "distro"}


def installed(context: Context) -> tuple[str, str] | None:
    """Return the package that containerd is from, with its version."""
    for name in PACKAGES:
        version = context.host.packages.version(name)
        if isinstance(version, str):
            return name, version
    return None


def fill(context: Context) -> str | None:
    """Fill in packages, repositories and archive; return the version of containerd that the host is to have.

    None: there is none, and what would be installed is not known yet.
    """
    decision, wishes = context.containerd, context.wishes
    there = installed(context)
    program = context.host.containers.containerd
    if there is not None:
        return _installed(context, *there)
    if isinstance(program, str):
        decision.source = "archive"
        if wishes.containerd_source == "archive" and context.host.containers.owner in ("host", None):
            decision.archive = dict(wishes.containerd_archive or {})
        return program
    source = decision.source = "distro" if wishes.containerd_source == "auto" else wishes.containerd_source
    if source == "archive":
        decision.archive = dict(wishes.containerd_archive or {})
        return decision.archive["containerd"]["version"] if decision.archive else None
    named = tuple(name for name in PACKAGES if SOURCE_OF[name] == source)
    return _offered(context, PACKAGES if wishes.containerd_source == "auto" else named)


def _installed(context: Context, name: str, version: str) -> str | None:
    """The package that is there stays, at its version unless another one is asked for."""
    decision, wish = context.containerd, context.wishes.containerd_version
    decision.source, decision.hold = SOURCE_OF[name], [name]
    decision.packages = {name: version}
    program = context.host.containers.containerd
    if wish is None or versions.upstream(version) == wish:
        return program if isinstance(program, str) else versions.upstream(version)
    exact = _exact(context, name, wish)
    if exact is None:
        decision.because.append(f"gpu_containerd_version is {wish}, and no source of the host offers {name} in it")
        return program if isinstance(program, str) else versions.upstream(version)
    decision.packages = {name: exact}
    return wish


def _offered(context: Context, names: tuple[str, ...]) -> str | None:
    decision, wish = context.containerd, context.wishes.containerd_version
    if "containerd.io" in names and len(names) == 1:
        decision.repositories = _repository(context)
    for name in names:
        offers = [one for one in each(context.host.packages.offers(name)) if versions.upstream(one) is not None]
        chosen = _exact(context, name, wish) if wish is not None else next(iter(offers), None)
        if chosen is not None:
            decision.packages, decision.hold, decision.source = {name: chosen}, [name], SOURCE_OF[name]
            return versions.upstream(chosen)
    name = names[-1]
    if decision.repositories:  # its source comes first; what it offers is known then
        decision.packages, decision.hold = {name: None}, [name]
        return wish
    system = context.host.os
    row = context.matrix.distro_package(f"{system.id} {system.version}", name)
    version = versions.upstream(row.version) if row is not None else None
    if row is None or version is None or wish not in (None, version):
        decision.because.append("there is no containerd, and no source of the host is known to offer "
                                + (f"{name} {wish}" if wish else "one"))
        return None
    decision.packages, decision.hold = {name: str(row.version)}, [name]
    return version


def _exact(context: Context, name: str, wish: str) -> str | None:
    return next((one for one in each(context.host.packages.offers(name)) if versions.upstream(one) == wish), None)


def _repository(context: Context) -> list[dict[str, object]]:
    """Docker's repository or its mirror, unless a source of the host has the package already."""
    wish = context.wishes.containerd_repository
    if wish is not None:
        return [repositories.own(context, "docker", wish)]
    row = context.packaging.containerd_repository if context.packaging is not None else None
    if row is None:
        return []
    found = repositories.describe(context, row)
    offered = bool(context.host.packages.offers("containerd.io"))
    return [] if offered and found["missing"] else [found]
