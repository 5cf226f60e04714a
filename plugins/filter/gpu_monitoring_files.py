# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts, dashboard and metrics for hosts without Kubernetes. Documentation: gpu_monitoring_files.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import files


def gpu_monitoring_files(kind: Any, plan: Any = None, job: Any = "nvidia-dcgm-exporter",
                         labels: Any = None) -> dict[str, str]:
    """Return the files as text, or say what is no kind."""
    try:
        return files.for_hosts(edge.plain(kind), edge.plain(plan), str(edge.plain(job)), edge.plain(labels) or {})
    except (edge.EdgeError, ValueError, AttributeError) as error:
        raise AnsibleFilterError(f"gpu_monitoring_files: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_monitoring_files": gpu_monitoring_files}
