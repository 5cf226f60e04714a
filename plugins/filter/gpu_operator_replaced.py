# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIADriver objects that have to go before others are applied. Documentation: gpu_operator_replaced.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, operator


def gpu_operator_replaced(there: Any, wanted: Any) -> list[str]:
    """Return names, or say what is no list of objects."""
    try:
        return operator.in_the_way(edge.plain(list(there)), edge.plain(list(wanted)))
    except (edge.EdgeError, AttributeError, TypeError, KeyError) as error:
        raise AnsibleFilterError(f"gpu_operator_replaced: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_operator_replaced": gpu_operator_replaced}
