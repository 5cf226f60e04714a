# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.cluster_evict: ask again until the pods are gone, a line for each look."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, evicting, trouble

display = Display()


class ActionModule(ActionBase):
    """Have the module look and evict, say what holds, and ask again."""

    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what became of the pods; failed where one may not be evicted, or is there when time runs out."""
        super().run(tmp, task_vars)
        given = edge.plain(dict(self._task.args))
        begun, timeout, interval = time.monotonic(), int(given.get("timeout", 1800)), int(given.get("interval", 15))
        progress = evicting.Progress(str(given.get("node")))
        looks = 0
        while True:
            looks += 1
            seen = edge.plain(self._execute_module(module_name="baremetal.nvidia.cluster_evict", module_args=given,
                                                   task_vars=task_vars))
            waited = round(time.monotonic() - begun)
            error = trouble.words(str(seen.get("msg") or "the API server did not answer")) if seen.get("failed") else ""
            if error and (not progress.asked or trouble.is_final(error)):
                return {**seen, "msg": error}
            if not error:
                progress.saw(seen)
            if given.get("state") == "looked" or self._play_context.check_mode:
                return {**seen, **progress.result()}
            if progress.refused:
                return {**seen, **progress.result(), "failed": True, "msg": progress.words()}
            if not error and not progress.left:
                return {**seen, **progress.result()}
            display.display(f"[{waited:4} s] {error or progress.words()}")
            if waited + interval > timeout and looks > 1:    # what was told to go is looked for once more in any case
                return {**seen, **progress.result(), "failed": True,
                        "msg": f"After {waited} s: {error or progress.words()}"}
            time.sleep(interval)
