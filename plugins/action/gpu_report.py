# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.gpu_report: the plans of all hosts of a play as table, files and statistics."""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.color import stringc
from ansible.utils.display import Display
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge, engine, freshness
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import fleet, html, table

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
#: What a file is written as; a name without a suffix is JSON.
SUFFIXES = {".json": "json", "": "json", ".html": "html", ".htm": "html"}


class _Refused(Exception):
    """What the person has to put right; the message says it all."""


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
        title = edge.plain(arguments.get("title") or "Plan")
        try:
            age = _matrix_age(self._templar, variables)
            paths = _paths(edge.plain(arguments.get("path") or []))
            about = {"run_id": freshness.RUN_ID, "written": _now()}
            for path, kind in paths.items():
                if kind == "html":
                    _write(path, html.render(plans, unread, {**about, "title": title}, age))
                else:
                    _write(path, fleet.as_json(plans, unread, failed, {**about, "matrix": age}))
        except _Refused as refused:
            result.update(failed=True, msg=f"gpu_report: {refused}")
            return result
        if paths:
            summary.update(report=next(iter(paths)), reports=list(paths))
        summary["matrix_rows_old"] = sum(age["unchecked"].values())
        if boolean(arguments.get("show", True)) and _for_people():
            display.display(f"\n{title}\n" + table.render(plans, unread, WIDTH, _paint) + _old_rows(age))
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


def _paths(given: Any) -> dict[str, str]:
    """Return the files to write, each with its kind; raise _Refused for what cannot be meant."""
    wanted = given.split(",") if isinstance(given, str) else given
    if not isinstance(wanted, list) or not all(isinstance(one, str) and one.strip() for one in wanted):
        raise _Refused(f"path is {given!r}; a file name or a list of them is needed")
    found = {}
    for one in wanted:
        kind = SUFFIXES.get(os.path.splitext(one.strip())[1].lower())
        if kind is None:
            raise _Refused(f"path is {one!r}; a name that ends in .json or .html is needed")
        found[os.path.abspath(os.path.expanduser(one.strip()))] = kind
    return found


def _matrix_age(templar: Any, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many rows of the collection's matrix are older than gpu_matrix_max_age: days, unchecked, oldest."""
    given = variables.get("gpu_matrix_max_age")
    try:
        planner = engine.load()
        wanted = {} if given is None else {"gpu_matrix_max_age": edge.plain(templar.template(given))}
        days = planner.validate(wanted)["gpu_matrix_max_age"]
        matrix = planner.matrix(())
    except AnsibleError as error:
        raise _Refused(f"gpu_matrix_max_age cannot be evaluated: {error}") from error
    except engine.load().refusals as error:  # pylint: disable=catching-non-exception
        raise _Refused(str(error)) from error
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return {
        "days": days,
        "unchecked": matrix.unchecked_for(today, days),
        "oldest": matrix.oldest_check().isoformat(),
    }


def _old_rows(age: Mapping[str, Any]) -> str:
    number = sum(age["unchecked"].values())
    if not number:
        return ""
    return f"\n{number} row(s) of the compatibility matrix were not checked for more than {age['days']} days"


def _write(path: str, text: str) -> None:
    """Write the file whole or not at all."""
    partial = ""
    try:
        handle, partial = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".gpu_report-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except OSError as error:
        if partial:
            os.unlink(partial)
        raise _Refused(f"{path} cannot be written: {error.strerror or error}") from error
