# SPDX-License-Identifier: GPL-3.0-or-later
"""Count, for every host, remote module calls and task evaluations (skipped ones too); written as JSON at the end.

A remote module call is one module sent to the host, whichever task or action sends it (copy sends two). Workers are
forked, so each call appends a line to a file that the parent reads at the end.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: gpu_count
type: aggregate
short_description: Count remote module calls and task evaluations (bench only)
description: Writes JSON to $GPU_BENCH_COUNT.
"""


class CallbackModule(CallbackBase):
    """Counts in the parent what it is told, and in the workers what is sent."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "gpu_count"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        handle, self._calls = tempfile.mkstemp(prefix="gpu-count-")
        os.close(handle)
        self._evaluations: Counter[str] = Counter()
        self._tasks: dict[str, list[str]] = {}
        _watch(self._calls)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """Count an evaluation: a worker is started for it whether the task is then skipped or not."""
        self._evaluations[host.get_name()] += 1
        self._tasks.setdefault(host.get_name(), []).append(task.get_name())

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Write the counts."""
        calls: dict[str, list[str]] = {}
        with open(self._calls, encoding="utf-8") as stream:
            for line in stream:
                host, module = line.rstrip("\n").split("\t")
                calls.setdefault(host, []).append(module)
        os.unlink(self._calls)
        hosts = sorted({*self._evaluations, *calls, *stats.processed})
        content = {
            host: {
                "remote_calls": len(calls.get(host, ())),
                "modules": calls.get(host, []),
                "evaluations": self._evaluations[host],
                "tasks": self._tasks.get(host, []),
                **stats.summarize(host),
            }
            for host in hosts
        }
        with open(os.environ["GPU_BENCH_COUNT"], "w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=1)


def _watch(path: str) -> None:
    original = ActionBase._execute_module

    def counted(self: Any, module_name: Any = None, *args: Any, **kwargs: Any) -> Any:
        variables = kwargs.get("task_vars") or next(
            (item for item in args if isinstance(item, dict) and "groups" in item), {}
        )
        host = str(variables.get("inventory_hostname", "?"))
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(f"{host}\t{module_name or self._task.action}\n")
        return original(self, module_name, *args, **kwargs)

    ActionBase._execute_module = counted
