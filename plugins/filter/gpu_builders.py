# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts build a module for others of their shape? Documentation: gpu_builders.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner.builders import builders


def gpu_builders(looks: Any, stored: Any = ()) -> dict[str, list[str]]:
    """Return host → shapes, or say what was wrong with the input."""
    try:
        return builders(edge.plain(looks), edge.plain(list(stored)))
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"gpu_builders: a dictionary of hosts with kernels is wanted: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_builders": gpu_builders}
