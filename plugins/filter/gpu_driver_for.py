# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver would be planned for these GPUs? Documentation: gpu_driver_for.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import ask


def gpu_driver_for(*args: Any, **kwargs: Any) -> Any:
    """Answer, or say what was wrong with the question."""
    try:
        return ask.driver_for(*args, **kwargs)
    except (ask.AskError, TypeError) as error:
        raise AnsibleFilterError(f"gpu_driver_for: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_driver_for": gpu_driver_for}
