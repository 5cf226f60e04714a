# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the GPU Operator of a cluster is to be like, from the plans of its hosts. Documentation: gpu_operator.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, operator


def gpu_operator(plans: Any, cluster: Any) -> Any:
    """Bring the plans together, or say what is no plan."""
    try:
        return operator.for_cluster(edge.plain(list(plans)), edge.plain(cluster))
    except (edge.EdgeError, AttributeError, TypeError) as error:
        raise AnsibleFilterError(f"gpu_operator: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_operator": gpu_operator}
