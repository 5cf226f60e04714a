# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions gpu_report and gpu_compare: what they print, write and refuse."""

from __future__ import annotations

import json
import pathlib
from typing import Any
from unittest import mock

import pytest
from ansible import constants
from ansible_collections.baremetal.nvidia.plugins.action import gpu_compare, gpu_report
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import freshness

OK = {"verdict": "ok", "changes": [], "pending": [], "findings": [], "decisions": {}, "run_id": freshness.RUN_ID}


class HostVars:
    def __init__(self, plans: dict[str, Any]) -> None:
        self.plans = plans

    def raw_get(self, host: str) -> dict[str, Any]:
        plan = self.plans[host]
        return {"ansible_facts": {} if plan is None else {"gpu_plan": plan}}


def run(module: Any, variables: dict[str, Any], **args: Any) -> dict[str, Any]:
    task = mock.MagicMock(args=args, async_val=0, check_mode=False)
    action = module.ActionModule(
        task=task,
        connection=mock.MagicMock(),
        play_context=mock.MagicMock(),
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    result: dict[str, Any] = action.run(task_vars=variables)
    return result


@pytest.fixture(name="shown")
def _shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(gpu_report.display, "display", lines.append)
    return lines


def fleet(**plans: Any) -> dict[str, Any]:
    return {"hostvars": HostVars(plans), "ansible_play_hosts_all": list(plans)}


def test_prints_once_and_hands_the_summary_to_awx(shown: list[str]) -> None:
    result = run(gpu_report, fleet(g1=OK, g2=OK, lost=None), title="Result")
    assert len(shown) == 1 and shown[0].startswith("\nResult\n") and "g[1-2] (2)" in shown[0] and "lost" in shown[0]
    assert result["summary"]["verdicts"] == {"blocked": 0, "change": 0, "ok": 2, "unread": 1}
    assert result["ansible_stats"] == {
        "data": {"gpu_summary": result["summary"]},
        "per_host": False,
        "aggregate": False,
    }
    assert not result["changed"]


def test_a_plan_of_another_run_counts_as_not_read(shown: list[str]) -> None:
    result = run(gpu_report, fleet(g1={**OK, "run_id": "yesterday"}))
    assert result["summary"]["unread_hosts"] == ["g1"]


def test_json_is_written_whole(shown: list[str], tmp_path: pathlib.Path) -> None:
    target = tmp_path / "plan.json"
    result = run(gpu_report, fleet(g1=OK), path=str(target), show=False)
    assert shown == [] and json.loads(target.read_text())["hosts"]["g1"]["verdict"] == "ok"
    assert result["summary"]["report"] == str(target)
    assert [item.name for item in tmp_path.iterdir()] == ["plan.json"], "no partial file is left"


def test_a_place_that_cannot_be_written_is_named(shown: list[str], tmp_path: pathlib.Path) -> None:
    result = run(gpu_report, fleet(g1=OK), path=str(tmp_path / "nowhere" / "plan.json"))
    assert result["failed"] and "nowhere" in result["msg"] and "Traceback" not in result["msg"]


def test_programs_get_no_table(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_STDOUT_CALLBACK", "ansible.posix.json")
    run(gpu_report, fleet(g1=OK))
    assert shown == []


def test_chosen_hosts_and_failed_ones(shown: list[str]) -> None:
    result = run(gpu_report, fleet(g1=OK, g2=OK), hosts=["g2"], failed=["g2"])
    assert result["summary"]["hosts"] == 1 and result["summary"]["failed_hosts"] == ["g2"]


PLANNED = {"ansible_facts": {"gpu_plan": OK, "gpu_facts": {"kernel": {"installed": []}}}}


def test_compare_passes_a_host_as_planned_and_says_the_level() -> None:
    result = run(gpu_compare, PLANNED)
    assert not result.get("failed") and result["level"] == "static" and result["differences"] == []


def test_compare_fails_with_what_differs() -> None:
    changed = {**OK, "changes": [{"role": "gpu_kernel", "action": "hold", "target": "linux-image-amd64"}]}
    result = run(gpu_compare, {"ansible_facts": {**PLANNED["ansible_facts"], "gpu_plan": changed}})
    assert result["failed"] and "- still to be done: gpu_kernel hold linux-image-amd64" in result["msg"]


@pytest.mark.parametrize(
    "known",
    [{}, {"gpu_plan": OK}, {"gpu_plan": {**OK, "run_id": "old"}, "gpu_facts": {}}, {"gpu_plan": OK, "gpu_facts": None}],
)
def test_compare_needs_a_reading_of_this_run(known: dict[str, Any]) -> None:
    result = run(gpu_compare, {"ansible_facts": known})
    assert result["failed"] and "gather: always" in result["msg"]


def test_compare_refuses_a_level_that_there_is_not() -> None:
    result = run(gpu_compare, PLANNED, level="deep")
    assert result["failed"] and "gpu_verify_level" in result["msg"] and "'deep'" in result["msg"]
