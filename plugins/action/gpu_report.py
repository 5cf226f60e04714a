# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.gpu_report: the plans of all hosts of a play as table, JSON and statistics."""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from typing import Any

from ansible import constants as C
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.color import stringc
from ansible.utils.display import Display
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, freshness
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import fleet, table

display = Display()

#: Read in the parent process: a worker's stdout is no terminal.
WIDTH = display.columns if sys.stdout is not None and sys.stdout.isatty() else 120
COLOURS = {
    "head": C.COLOR_HIGHLIGHT,
    "ok": C.COLOR_OK,
    "change": C.COLOR_CHANGED,
    "blocked": C.COLOR_ERROR,
    "unread": C.COLOR_UNREACHABLE,
    "error": C.COLOR_ERROR,
    "warning": C.COLOR_WARN,
    "pending": C.COLOR_WARN,
    "info": C.COLOR_VERBOSE,
}
#: Callbacks whose output is read by a program, where a table would be noise.
MACHINE_CALLBACKS = ("json", "jsonl", "junit", "null")


class ActionModule(ActionBase):
    """Print and store the plans of all hosts, once a play."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset(("path", "show", "title", "failed", "hosts"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the summary, also as ansible_stats.gpu_summary (AWX: an artifact of the job)."""
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        arguments = self._task.args
        hosts = edge.plain(arguments.get("hosts") or variables.get("ansible_play_hosts_all") or [])
        plans, unread = self._plans(variables, hosts)
        failed = edge.plain(arguments.get("failed") or [])
        summary = {
            "run_id": freshness.RUN_ID,
            **fleet.summary(plans, unread, failed),
        }
        path = edge.plain(arguments.get("path") or "")
        if path:
            path = os.path.abspath(os.path.expanduser(path))
            try:
                _write(path, fleet.as_json(plans, unread, failed, {"run_id": freshness.RUN_ID, "written": _now()}))
            except OSError as error:
                result.update(failed=True, msg=f"gpu_report: {path} cannot be written: {error.strerror or error}")
                return result
            summary["report"] = path
        if boolean(arguments.get("show", True)) and _for_people():
            title = edge.plain(arguments.get("title") or "Plan")
            display.display(f"\n{title}\n" + table.render(plans, unread, WIDTH, _paint))
        result.update(
            changed=False,
            summary=summary,
            msg=", ".join(f"{count} {verdict}" for verdict, count in summary["verdicts"].items()),
            ansible_stats={"data": {"gpu_summary": summary}, "per_host": False, "aggregate": False},
        )
        return result

    @staticmethod
    def _plans(variables: dict[str, Any], hosts: list[str]) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Return (plans of this run by host, hosts without one)."""
        hostvars = variables["hostvars"]
        plans: dict[str, dict[str, Any]] = {}
        unread: list[str] = []
        for host in hosts:
            plan = hostvars.raw_get(host).get("ansible_facts", {}).get("gpu_plan")
            if isinstance(plan, dict) and plan.get("run_id") == freshness.RUN_ID:
                plans[host] = edge.plain(plan)
            else:
                unread.append(host)
        return plans, unread


def _paint(text: str, style: str) -> str:
    colour = COLOURS.get(style)
    return stringc(text, colour) if colour else text


def _for_people() -> bool:
    return str(C.DEFAULT_STDOUT_CALLBACK).rsplit(".", maxsplit=1)[-1] not in MACHINE_CALLBACKS


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write(path: str, text: str) -> None:
    """Write the file whole or not at all."""
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".gpu_report-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except OSError:
        os.unlink(partial)
        raise
