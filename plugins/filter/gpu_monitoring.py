# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that watch the GPUs of a cluster. Documentation: gpu_monitoring.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import objects


def gpu_monitoring(wanted: Any, cluster: Any, settings: Any) -> dict[str, Any]:
    """Return the objects, or say which setting cannot be read."""
    try:
        return objects.for_cluster(edge.plain(wanted), edge.plain(cluster), edge.plain(settings))
    except objects.SettingError as error:
        raise AnsibleFilterError(str(error)) from error
    except (edge.EdgeError, AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"gpu_monitoring: {error!r}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_monitoring": gpu_monitoring}
