# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between the host and the decisions, as the steps of the roles, in their order."""

from __future__ import annotations

from ...model.plan import Change
from ...rules.context import Context
from . import containerd, containers, cuda, driver, kernel, operator
from .leave import split


def collect(context: Context) -> tuple[list[Change], list[Change]]:
    """Return the changes that may be made, and those that wait for leave."""
    found = [*kernel.changes(context), *driver.changes(context), *containers.changes(context)]
    found += containerd.changes(context)
    found += cuda.changes(context)
    found += operator.changes(context)
    return split(context, found)
