# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.cluster_wait: look at a cluster until it is as wanted, a line for each look."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.baremetal.nvidia.plugins.module_utils import cluster_spec
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, trouble, waiting

display = Display()
_SPEC: dict[str, Any] = {
    "until": {"type": "str", "required": True, "choices": sorted(waiting.JUDGES)},
    "objects": cluster_spec.OBJECTS,
    "drivers": {"type": "list", "elements": "str", "default": []},
    "policy": {"type": "bool", "default": True},
    "steady": {"type": "int", "default": 1},
    **cluster_spec.WAIT,
    "fail": {"type": "bool", "default": True},
}


class ActionModule(ActionBase):
    """Read with cluster_read, judge, say what was seen, and look again."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset(_SPEC)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what was seen last; failed where time ran out (and ``fail``) or the server takes no credentials."""
        result = super().run(tmp, task_vars)
        _result, given = self.validate_argument_spec(_SPEC)
        given = edge.plain(given)
        begun, steady = time.monotonic(), 0
        while True:
            seen, error = self._look(given["objects"], task_vars)
            if error:
                look = waiting.Look(False, error)
            elif given["until"] == "operator":
                look = waiting.operator(seen, given["drivers"], given["policy"])
            else:
                look = waiting.JUDGES[given["until"]](seen)
            waited = round(time.monotonic() - begun)
            display.display(f"[{waited:4} s] {look.words}")
            steady = steady + 1 if look.done else 0
            result.update(changed=False, done=look.done, waited=waited, words=look.words, moving=look.moving,
                          resources=seen)
            if steady >= given["steady"] or (look.done and self._play_context.check_mode):
                return result
            if (error and trouble.is_final(error)) or (
                    waited + given["interval"] > given["timeout"] and not look.done):
                break
            time.sleep(given["interval"])
        result.update(failed=given["fail"], done=False, msg=f"After {waited} s: {result['words']}.")
        return result

    def _look(self, objects: list[dict[str, Any]], task_vars: dict[str, Any] | None) -> tuple[dict[str, Any], str]:
        """Return (lists by kind, what the server answered instead)."""
        wanted = [{key: value for key, value in one.items() if value not in (None, [])} for one in objects]
        try:
            answer = self._execute_module(module_name="baremetal.nvidia.cluster_read", module_args={"objects": wanted},
                                          task_vars=task_vars)
        except AnsibleError as exc:
            return {}, str(exc)
        if answer.get("failed"):
            return {}, trouble.words(str(answer.get("msg") or "the API server did not answer"))
        return {one["kind"]: [] for one in objects} | edge.plain(answer["resources"]), ""
