# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that prove the GPUs of a cluster's nodes. Documentation: gpu_pods.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import gpu_pods as made


def gpu_pods(cluster: Any, options: Any) -> dict[str, Any]:
    """Return the pods, or say what is no cluster."""
    try:
        return made.pods(edge.plain(cluster), edge.plain(options))
    except (edge.EdgeError, AttributeError, TypeError, KeyError) as error:
        raise AnsibleFilterError(f"gpu_pods: {error}") from error


def gpu_pods_judged(cluster: Any, pods: Any, logs: Any, plans: Any = (), unread: Any = None) -> dict[str, list[str]]:
    """Return what differs, or say what cannot be compared."""
    try:
        return made.judge(*(edge.plain(one) for one in (cluster, list(pods), logs, list(plans), dict(unread or {}))))
    except (edge.EdgeError, AttributeError, TypeError, KeyError) as error:
        raise AnsibleFilterError(f"gpu_pods_judged: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"gpu_pods": gpu_pods, "gpu_pods_judged": gpu_pods_judged}
