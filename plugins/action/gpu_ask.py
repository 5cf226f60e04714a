# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.gpu_ask: a question in, an answer out; no host is asked."""

from __future__ import annotations

import sys
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import answer, edge, names, policy_vars
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller.question import AskError
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import answer as words

display = Display()

#: Read in the parent process: a worker's stdout is no terminal.
WIDTH = min(display.columns, 120) if sys.stdout is not None and sys.stdout.isatty() else 120
#: Callbacks whose output is read by a program, where text would be noise.
MACHINE_CALLBACKS = ("json", "jsonl", "junit", "null")


class ActionModule(ActionBase):
    """Answer one question."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset(("question", "show"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer, also as ansible_stats.gpu_answer."""
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        try:
            policy_vars.refuse_misspelt(variables, names.known())
            policy = policy_vars.collect(variables, names.policy(), self._templated)
            found = answer.answer(edge.plain(self._task.args.get("question"), "gpu_ask"), policy)
        except (AskError, AnsibleError, policy_vars.UnknownVariable, edge.EdgeError) as error:
            result.update(failed=True, msg=str(error))
            return result
        text = words.render(found, WIDTH)
        callback = str(C.DEFAULT_STDOUT_CALLBACK).rsplit(".", maxsplit=1)[-1]
        if boolean(self._task.args.get("show", True)) and callback not in MACHINE_CALLBACKS:
            display.display(f"\n{text}\n")
        result.update(
            changed=False,
            answer=found,
            lines=text.splitlines(),
            msg=words.driver_line(found),
            ansible_stats={"data": {"gpu_answer": found}, "per_host": False, "aggregate": False},
        )
        return result

    def _templated(self, name: str, value: Any) -> Any:
        return edge.plain(self._templar.template(value), name)
