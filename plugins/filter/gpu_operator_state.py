# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster says of its GPU Operator, in words. Documentation: gpu_operator_state.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, operator


def gpu_operator_state(seen: Any) -> str:
    """Put it into words, or say what cannot be read."""
    try:
        return operator.state(edge.plain(dict(seen)))
    except (edge.EdgeError, AttributeError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"gpu_operator_state: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_operator_state": gpu_operator_state}
