# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields that are not in a cluster as they were sent. Documentation: gpu_operator_dropped.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, operator


def gpu_operator_dropped(sent: Any, kept: Any = ()) -> list[str]:
    """Compare, or say what cannot be compared."""
    try:
        return operator.dropped([one for one in edge.plain(list(sent)) if one], edge.plain(list(kept)))
    except (edge.EdgeError, AttributeError, TypeError) as error:
        raise AnsibleFilterError(f"gpu_operator_dropped: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_operator_dropped": gpu_operator_dropped}
