# SPDX-License-Identifier: GPL-3.0-or-later
"""The action gpu_report: which files it writes, and what it refuses."""

from __future__ import annotations

import datetime
import json
import pathlib
from typing import Any
from unittest import mock

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.baremetal.nvidia.plugins.action import gpu_report
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import freshness
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy

PLAN = {"verdict": "ok", "changes": [], "pending": [], "findings": [], "decisions": {}, "run_id": freshness.RUN_ID}


class HostVars(dict):
    def raw_get(self, host: str) -> Any:
        return self[host]


def report(variables: dict[str, Any] | None = None, **args: Any) -> dict[str, Any]:
    hosts = HostVars(g1={"ansible_facts": {"gpu_plan": PLAN}}, g2={"ansible_facts": {}})
    known = {"ansible_play_hosts_all": ["g1", "g2"], "hostvars": hosts, **(variables or {})}
    action = gpu_report.ActionModule(
        task=mock.MagicMock(args=args, async_val=0, check_mode=False),
        connection=mock.MagicMock(),
        play_context=mock.MagicMock(),
        loader=DataLoader(),
        templar=Templar(loader=DataLoader(), variables=known),
        shared_loader_obj=None,
    )
    return action.run(task_vars=known)


@pytest.mark.parametrize("together", ["{0}/plan.json,{0}/fleet.html", ["{0}/plan.json", "{0}/fleet.html"]])
def test_the_suffix_says_what_is_written(tmp_path: pathlib.Path, together: Any) -> None:
    given = together.format(tmp_path) if isinstance(together, str) else [one.format(tmp_path) for one in together]
    result = report(path=given, title="After")
    assert result["summary"]["reports"] == [str(tmp_path / "plan.json"), str(tmp_path / "fleet.html")]
    assert result["summary"]["report"] == str(tmp_path / "plan.json")
    content = json.loads((tmp_path / "plan.json").read_text())
    assert list(content["hosts"]) == ["g1"] and content["unread"] == ["g2"] and content["matrix"]["days"] == 180
    page = (tmp_path / "fleet.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "GPU hosts: After" in page and content["matrix"]["oldest"] in page
    assert sorted(one.name for one in tmp_path.iterdir()) == ["fleet.html", "plan.json"], "nothing half-written is left"


def test_a_name_without_suffix_is_json_and_no_name_is_no_file(tmp_path: pathlib.Path) -> None:
    report(path=str(tmp_path / "plan"))
    assert json.loads((tmp_path / "plan").read_text())["summary"]["hosts"] == 2
    for nothing in ("", [], None):
        assert "reports" not in report(path=nothing)["summary"]


def test_old_rows_are_counted_by_the_age_that_a_person_sets() -> None:
    assert report()["summary"]["matrix_rows_old"] == 0
    matrix = mock.MagicMock()
    matrix.unchecked_for.return_value = {"branches": 2, "cuda_toolkits": 1}
    matrix.oldest_check.return_value = datetime.date(2026, 1, 2)
    planner = mock.MagicMock(matrix=lambda overlays: matrix, validate=policy.validate, refusals=(policy.PolicyError,))
    with (
        mock.patch.object(gpu_report.engine, "load", lambda: planner),
        mock.patch.object(gpu_report.display, "display") as shown,
    ):
        result = report({"gpu_matrix_max_age": trust_as_template("{{ 15 * 2 }}")})
    assert result["summary"]["matrix_rows_old"] == 3
    assert matrix.unchecked_for.call_args.args[1] == 30
    assert "3 row(s) of the compatibility matrix were not checked for more than 30 days" in shown.call_args.args[0]


@pytest.mark.parametrize(
    ("args", "variables", "says"),
    [
        ({"path": "plan.htlm"}, {}, "'plan.htlm'; a name that ends in .json or .html"),
        ({"path": 7}, {}, "path is 7"),
        ({"path": ["a.json", 7]}, {}, "a list of them"),
        ({"path": "a.json,"}, {}, "a list of them"),
        ({"path": "/no/such/place/plan.json"}, {}, "/no/such/place/plan.json cannot be written: No such file"),
        ({}, {"gpu_matrix_max_age": "soon"}, "gpu_matrix_max_age"),
        ({}, {"gpu_matrix_max_age": trust_as_template("{{ nothing }}")}, "gpu_matrix_max_age cannot be evaluated"),
    ],
)
def test_refusals_name_the_value(args: dict[str, Any], variables: dict[str, Any], says: str) -> None:
    result = report(variables, **args)
    assert result["failed"] and says in result["msg"]
