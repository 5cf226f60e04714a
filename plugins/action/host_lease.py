# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host_lease on the controller: says where this run is at home, and sees whether the run with the lease still lives."""
from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import holder


class ActionModule(ActionBase):
    """One remote call; a second one only to take over the lease of a run that was killed here."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call the module, and once more where the other run is known to be dead."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        arguments.setdefault("holder", holder.describe(os.getppid()))    # a worker's parent is the run
        result = self._call(arguments, task_vars)
        held_by = result.get("held_by")
        if result.get("failed") and isinstance(held_by, dict) and holder.is_dead(held_by.get("holder")):
            result = self._call({**arguments, "dead": held_by["run_id"]}, task_vars)
        return result

    def _call(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        name = "baremetal.nvidia.host_lease"
        return dict(self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars))
