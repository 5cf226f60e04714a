# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases from the field and the healthy hosts, planned exactly as hosts are."""
from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest
import run
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix

CASES = pathlib.Path(run.__file__).parent
FIELD = [case for path in sorted(CASES.glob("*.yml")) for case in run.load(path)]
HEALTHY = [case for path in sorted((CASES / "healthy").glob("*.yml")) for case in run.load(path)]


@pytest.mark.parametrize("case", [*FIELD, *HEALTHY], ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any]) -> None:
    assert list(run.differences(case, run.make_plan(case, matrix.load()))) == []


MORE = sorted((CASES.parents[2] / "shared" / "cases").glob("*.yml"))


@pytest.mark.skipif(not MORE, reason="the cases that lie beside the checkout are not here (../shared/cases)")
@pytest.mark.parametrize("path", MORE, ids=lambda path: str(path.stem))
def test_cases_that_lie_beside_the_checkout(path: pathlib.Path) -> None:
    wrong = {str(case["id"]): list(run.differences(case, run.make_plan(case, matrix.load())))
             for case in run.load(path)}
    assert {name: said for name, said in wrong.items() if said} == {}


def test_every_id_is_given_once() -> None:
    ids = [case["id"] for case in (*FIELD, *HEALTHY)]
    assert len(ids) == len(set(ids))


def test_there_are_thirty_healthy_hosts_over_all_systems() -> None:
    assert len(HEALTHY) >= 30
    assert {case["facts"]["os"]["id"] for case in HEALTHY} >= {"debian", "ubuntu", "rhel", "rocky", "almalinux", "sles"}
    assert all(set(case["expect"]["no_findings"]) == {"error", "warning"} for case in HEALTHY)


@pytest.mark.parametrize(
    ("expect", "word"),
    [
        ({"verdict": "ok"}, "verdict"),
        ({"decisions": {"driver.branch": "390"}}, "driver.branch"),
        ({"decisions": {"driver.branch": {"regex": "^9"}}}, "driver.branch"),
        ({"decisions": {"kernel.hold": {"contains": "no-such-package"}}}, "kernel.hold"),
        ({"decisions": {"driver.version": None}}, "driver.version"),
        ({"findings": [{"severity": "error", "mentions": ["nonsense"]}]}, "no finding"),
        ({"changes": [{"role": "gpu_driver", "mentions": ["nonsense"]}]}, "no change"),
        ({"no_findings": ["info"]}, "unwanted"),
    ],
)
def test_what_differs_is_said(expect: dict[str, Any], word: str) -> None:
    case = {**FIELD[1], "expect": expect}
    plan = run.make_plan(case, matrix.load())
    plan["findings"].append({"rule": "XXX001", "severity": "info", "subject": "s", "summary": "t", "remedy": "r"})
    assert word in " ".join(run.differences(case, plan))


def test_the_runner_counts_and_exits(tmp_path: pathlib.Path) -> None:
    good, bad = tmp_path / "good.yml", tmp_path / "bad.yml"
    good.write_text("- {id: a, facts: {gpus: []}, policy: {}, expect: {verdict: ok}}\n", encoding="utf-8")
    bad.write_text("- {id: b, facts: {gpus: []}, policy: {}, expect: {verdict: blocked}}\n", encoding="utf-8")

    def out(*files: pathlib.Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(CASES / "run.py"), *map(str, files)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    one = out(good)
    assert (one.returncode, one.stdout.splitlines()) == (0, ["PASS a", "1 passed, 0 failed"])
    two = out(good, bad)
    assert two.returncode == 1
    assert two.stdout.splitlines()[1].startswith("FAIL b: verdict is ok, not blocked")
    assert two.stdout.splitlines()[-1] == "1 passed, 1 failed"
