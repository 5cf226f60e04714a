# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.gpu_compare: is the host as its plan says? Documentation: modules/."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, freshness
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import compare, describe


class ActionModule(ActionBase):
    """Compare one host with its plan; fail with what differs."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset(("drift", "level"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the level that was proved and the differences."""
        result = super().run(tmp, task_vars)
        kept = (task_vars or {}).get("ansible_facts", {})
        plan, facts = edge.plain(kept.get("gpu_plan")), edge.plain(kept.get("gpu_facts"))
        if not isinstance(plan, dict) or not isinstance(facts, dict) or plan.get("run_id") != freshness.RUN_ID:
            result.update(
                failed=True,
                msg="the host was not read and planned in this run: run baremetal.nvidia.gpu_plan with gather: always.",
            )
            return result
        try:
            level = compare.level_of(facts, edge.plain(self._task.args.get("level") or "auto"))
        except ValueError as error:
            result.update(failed=True, msg=str(error))
            return result
        wanted = edge.plain(self._task.args.get("drift") or "tell")
        if wanted not in ("tell", "fail"):
            result.update(failed=True, msg=f"drift is {wanted!r}; allowed are tell and fail.")
            return result
        found, drift = compare.differences(plan, facts, level), compare.drift(plan)
        result.update(
            changed=False, level=level, differences=found, drift=drift,
            msg="; ".join([f"as planned ({level})", describe.headline(plan), *drift]),
        )
        found = [*drift, *found] if wanted == "fail" else found
        if found:
            result.update(
                failed=True, msg=f"The host is not as planned ({level}):\n" + "\n".join(f"- {line}" for line in found)
            )
        return result
