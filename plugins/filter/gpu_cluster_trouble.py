# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An error of an API server or of helm in words that name the way out. Documentation: gpu_cluster_trouble.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, trouble


def gpu_cluster_trouble(failed: Any) -> str:
    """Return what the result of a failed task means."""
    try:
        result = edge.plain(failed)
    except edge.EdgeError as error:
        raise AnsibleFilterError(f"gpu_cluster_trouble: {error}") from error
    if not isinstance(result, dict):
        return trouble.words(str(result))
    for one in result.get("results") or ():
        if isinstance(one, dict) and one.get("failed"):
            return gpu_cluster_trouble(one)
    told = [str(result.get(key) or "") for key in ("msg", "stderr", "exception")]
    return trouble.words(next((text for text in told if text), "a task failed without a word"))


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_cluster_trouble": gpu_cluster_trouble}
