# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that GPU tenants are to have. Documentation: gpu_tenant_objects.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, tenants


def gpu_tenant_objects(given: Any, there: Any = None, nodes: Any = ()) -> dict[str, Any]:
    """Return what is to be made and what goes, or say what is wrong with the variable."""
    try:
        return tenants.plan(edge.plain(given), edge.plain(there or {}), edge.plain(list(nodes)))
    except (tenants.TenantError, edge.EdgeError) as error:
        raise AnsibleFilterError(f"{error}. Nothing was changed") from error


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_tenant_objects": gpu_tenant_objects}
