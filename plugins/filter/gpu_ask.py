# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver, kernels and changes does this question lead to? Documentation: gpu_ask.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import answer, edge
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller.question import AskError


def gpu_ask(*args: Any, **kwargs: Any) -> Any:
    """Answer, or say what was wrong with the question."""
    try:
        return answer.answer(*map(edge.plain, args), **kwargs)
    except (AskError, TypeError) as error:
        raise AnsibleFilterError(f"gpu_ask: {error}") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_ask": gpu_ask}
