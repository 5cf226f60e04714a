# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a cluster from what kubernetes.core read. Documentation: gpu_cluster.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import cluster, edge


def gpu_cluster(read: Any) -> dict[str, Any]:
    """Return the facts, or say what is missing."""
    try:
        return cluster.shape(edge.plain(read))
    except (cluster.ClusterError, edge.EdgeError, AttributeError) as error:
        raise AnsibleFilterError(f"gpu_cluster: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_cluster": gpu_cluster}
