# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ubuntu's ready modules: the version of their package is the kernel's, and only its dependencies tell the driver."""

from __future__ import annotations

from ..model.facts import each
from .context import Context


def drivers(context: Context, name: str) -> dict[str, str]:
    """Return the versions of a package that are on offer, with the driver of each that tells it."""
    table = context.host.packages.made_for
    told = table.get(name) if isinstance(table, dict) else None
    return {str(version): str(driver) for version, driver in told.items()} if isinstance(told, dict) else {}


def version_for(context: Context, name: str, driver: str | None) -> str | None:
    """Return the newest version of a package whose modules are of this driver, as far as its versions tell."""
    told, offers = drivers(context, name), list(each(context.host.packages.offers(name)))
    rest = [version for version in told if version not in offers]
    exact = [version for version in [*offers, *rest] if told.get(version) == driver]
    return next(iter(exact), None) or next((version for version in offers if version not in told), None)


def others(context: Context, name: str, driver: str | None) -> list[str]:
    """Return the drivers that a package's versions are made for, where none of them is this one."""
    return sorted(set(drivers(context, name).values())) if version_for(context, name, driver) is None else []
