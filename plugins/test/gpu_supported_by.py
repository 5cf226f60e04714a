# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does this driver run this GPU? Documentation: gpu_supported_by.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleTemplateError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import ask


def gpu_supported_by(*args: Any, **kwargs: Any) -> Any:
    """Answer, or say what was wrong with the question."""
    try:
        return ask.supported_by(*args, **kwargs)
    except (ask.AskError, TypeError) as error:
        raise AnsibleTemplateError(f"gpu_supported_by: {error}") from error


class TestModule:
    """What Ansible asks for."""

    def tests(self) -> dict[str, Callable[..., Any]]:
        """Return the test by name."""
        return {"gpu_supported_by": gpu_supported_by}
