# SPDX-License-Identifier: GPL-3.0-or-later
"""The action gpu_plan: where facts come from, when a plan is used again, what a person is told."""

from __future__ import annotations

import datetime
import json
import time
import types
from typing import Any
from unittest import mock

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.baremetal.nvidia.plugins.action import gpu_plan
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import engine, freshness
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy as policy_model


def facts(**more: Any) -> dict[str, Any]:
    return {"os": {"id": "debian", "version": "12"}, "gpus": [], "read_at": int(time.time()), **more}


class FakePlanner:
    """A planner that writes down what it was given, and answers what the test wants."""

    def __init__(self, **answer: Any) -> None:
        self.calls: list[dict[str, Any]] = []
        self.answer = {"verdict": "ok", "changes": [], "pending": [], "findings": [], "decisions": {}, **answer}

    def plan(
        self, host: str, facts: Any, policy: Any, matrix: Any, now: datetime.date, cluster: Any = None
    ) -> dict[str, Any]:
        self.calls.append({"facts": facts, "policy": policy, "matrix": matrix, "now": now, "cluster": cluster})
        return json.loads(json.dumps(self.answer))


@pytest.fixture(name="planner")
def _planner(monkeypatch: pytest.MonkeyPatch) -> FakePlanner:
    fake = FakePlanner()

    def matrix(overlays: Any = ()) -> Any:
        return types.SimpleNamespace(digest=f"matrix{list(overlays)}", product=lambda pci, subsystem=None: None)

    made = engine.Engine(
        plan=fake.plan, validate=policy_model.validate, matrix=matrix, errors=(policy_model.PolicyError,)
    )
    monkeypatch.setattr(engine, "load", lambda: made)
    return fake


class Runner:
    """Runs the action as a task would, with the facts of a host that can be counted."""

    def __init__(self, variables: dict[str, Any] | None = None, on_host: Any = None, check_mode: bool = False) -> None:
        self.variables = {"inventory_hostname": "g1", "ansible_facts": {}, **(variables or {})}
        self.on_host = on_host
        self.check_mode = check_mode
        self.remote_calls = 0

    def __call__(self, **args: Any) -> dict[str, Any]:
        task = mock.MagicMock(args=args, async_val=0, check_mode=self.check_mode, environment=None, delegate_to=None)
        action = gpu_plan.ActionModule(
            task=task,
            connection=mock.MagicMock(),
            play_context=mock.MagicMock(check_mode=self.check_mode),
            loader=DataLoader(),
            templar=Templar(loader=DataLoader(), variables=self.variables),
            shared_loader_obj=None,
        )
        action._execute_module = self._module
        result = action.run(task_vars=self.variables)
        self.variables["ansible_facts"].update(result.get("ansible_facts", {}))
        return result

    def _module(self, module_name: str, module_args: Any, task_vars: Any) -> dict[str, Any]:
        assert module_name == "baremetal.nvidia.gpu_facts"
        self.remote_calls += 1
        if isinstance(self.on_host, dict) and "failed" not in self.on_host:
            found = {"gpu_facts": self.on_host, "discovered_interpreter_python": "/usr/bin/python3.11"}
            return {"changed": False, "ansible_facts": found}
        return self.on_host


def test_reads_the_host_once_and_plans(planner: FakePlanner) -> None:
    run = Runner(on_host=facts())
    result = run(gather="missing")
    assert run.remote_calls == 1
    assert not result["changed"] and result["verdict"] == "ok" and not result["reused"]
    plan = result["ansible_facts"]["gpu_plan"]
    assert plan["run_id"] == freshness.RUN_ID and set(plan["digests"]) == {"facts", "policy", "matrix"}
    assert planner.calls[0]["facts"]["controller"]["ansible_core"].startswith("2.")
    assert result["ansible_facts"]["discovered_interpreter_python"], "else each later module would look for it again"


@pytest.mark.parametrize(("changes", "pending", "required"), [
    ([{"disruption": "none"}], [{"disruption": "restart"}], False),
    ([{"disruption": "reboot"}], [], True), ([], [{"disruption": "reboot", "needs": "gpu_reboot_allowed"}], True)])
def test_a_host_that_waits_for_a_restart_says_so_whoever_gives_leave(
    planner: FakePlanner, changes: list[Any], pending: list[Any], required: bool
) -> None:
    planner.answer.update(changes=changes, pending=pending)
    assert Runner(on_host=facts())(gather="missing")["ansible_facts"]["gpu_reboot_required"] is required


def test_a_plan_of_this_run_is_used_again(planner: FakePlanner) -> None:
    run = Runner(on_host=facts())
    run(gather="missing")
    result = run(gather="missing")
    assert result["reused"] and "ansible_facts" not in result
    assert (run.remote_calls, len(planner.calls)) == (1, 1)


def test_a_plan_from_yesterday_in_the_fact_cache_is_not_used(planner: FakePlanner) -> None:
    run = Runner(on_host=facts())
    run(gather="missing")
    run.variables["ansible_facts"]["gpu_plan"]["run_id"] = "20261129T000000Z-00000000"
    result = run(gather="missing")
    assert not result["reused"]
    assert (run.remote_calls, len(planner.calls)) == (2, 2), (
        "cached facts may be of yesterday too: the host is read again"
    )


@pytest.mark.parametrize("what", ["policy", "facts", "matrix"])
def test_a_plan_is_made_anew_when_what_it_rests_on_changed(planner: FakePlanner, what: str) -> None:
    run = Runner(on_host=facts())
    run(gather="missing")
    if what == "policy":
        run.variables["gpu_driver_branch"] = "580"
    elif what == "facts":
        run.variables["ansible_facts"]["gpu_facts"]["gpus"] = [{"id": "10de:1eb8"}]
    else:
        run.variables["gpu_matrix_overlay"] = ["/own.yml"]
    assert not run(gather="missing")["reused"]
    assert len(planner.calls) == 2


def test_a_cluster_is_part_of_what_a_plan_rests_on(planner: FakePlanner) -> None:
    run = Runner(on_host=facts())
    run(gather="missing")
    result = run(gather="missing", cluster={"version": "1.34"})
    assert not result["reused"] and planner.calls[-1]["cluster"] == {"version": "1.34"}
    assert run(gather="missing", cluster={"version": "1.34"})["reused"]
    assert not run(gather="missing", cluster={"version": "1.35"})["reused"]


def test_the_moment_of_reading_is_no_change(planner: FakePlanner) -> None:
    run = Runner({"ansible_facts": {"gpu_facts": facts()}})
    run()
    run.variables["ansible_facts"]["gpu_facts"]["read_at"] -= 60
    assert run()["reused"]


def test_always_reads_the_host_again(planner: FakePlanner) -> None:
    run = Runner(on_host=facts())
    run(gather="missing")
    run(gather="always")
    assert run.remote_calls == 2


def test_what_roles_applied_is_remembered_over_a_reading(planner: FakePlanner) -> None:
    planner.answer["decisions"] = {"driver": {"version": "580.1", "predicted": False}}
    run = Runner(on_host=facts())
    run(gather="always")
    result = run(gather="always")
    assert result["ansible_facts"]["gpu_plan"]["previous"] == {"driver": {"version": "580.1", "predicted": False}}


def test_missing_facts_are_refused_with_the_way_out(planner: FakePlanner) -> None:
    result = Runner()()
    assert result["failed"] and "gpu_facts" in result["msg"] and "gather: missing" in result["msg"]


def test_old_facts_are_refused_with_the_way_out(planner: FakePlanner) -> None:
    run = Runner({"ansible_facts": {"gpu_facts": facts(read_at=int(time.time()) - 7200)}})
    result = run()
    assert result["failed"] and "2 h old" in result["msg"] and "gather: always" in result["msg"]
    assert not run(max_age=0).get("failed"), "0 takes facts of any age"


def test_a_host_whose_clock_is_ahead_has_fresh_facts(planner: FakePlanner) -> None:
    result = Runner({"ansible_facts": {"gpu_facts": facts(read_at=int(time.time()) + 7200)}})()
    assert result["ansible_facts"]["gpu_plan"]["facts_age"] == 0


def test_a_misspelt_policy_variable_is_refused(planner: FakePlanner) -> None:
    result = Runner({"gpu_driver_brnach": "580"}, on_host=facts())(gather="missing")
    assert result["failed"]
    assert "gpu_driver_brnach" in result["msg"] and "580" in result["msg"] and "gpu_driver_branch?" in result["msg"]


def test_a_persons_own_variable_is_left_alone(planner: FakePlanner) -> None:
    assert not Runner({"gpu_rack": "a7", "gpu_owner_mail": "x@y"}, on_host=facts())(gather="missing").get("failed")


def test_a_version_given_as_a_float_is_refused_by_name(planner: FakePlanner) -> None:
    result = Runner({"gpu_driver_version": 535.1}, on_host=facts())(gather="missing")
    assert result["failed"] and "gpu_driver_version" in result["msg"] and "quote" in result["msg"]


def test_a_policy_that_cannot_be_templated_names_the_variable(planner: FakePlanner) -> None:
    from ansible.template import trust_as_template

    result = Runner({"gpu_cuda": trust_as_template("{{ nowhere }}")}, on_host=facts())(gather="missing")
    assert result["failed"] and "gpu_cuda" in result["msg"] and "nowhere" in result["msg"]


def test_policy_is_templated_and_plain(planner: FakePlanner) -> None:
    from ansible.template import trust_as_template

    run = Runner({"gpu_driver_branch": trust_as_template("{{ '5' ~ '80' }}")}, on_host=facts())
    run(gather="missing")
    assert planner.calls[0]["policy"]["gpu_driver_branch"] == "580"
    assert planner.calls[0]["policy"]["gpu_driver_branch"].__class__ is str


def test_facts_are_never_templated(planner: FakePlanner) -> None:
    Runner(on_host=facts(kernel={"cmdline": "{{ lookup('pipe', 'id') }}"}))(gather="missing")
    assert planner.calls[0]["facts"]["kernel"]["cmdline"] == "{{ lookup('pipe', 'id') }}"


def test_an_explicit_policy_wins_and_is_checked(planner: FakePlanner) -> None:
    run = Runner({"gpu_driver_branch": "535"}, on_host=facts())
    run(gather="missing", policy={"gpu_driver_branch": "580"})
    assert planner.calls[0]["policy"]["gpu_driver_branch"] == "580"
    assert "gpu_nonsense" in run(policy={"gpu_nonsense": 1})["msg"]


def test_check_mode_is_changed_with_a_diff(planner: FakePlanner) -> None:
    planner.answer.update(
        verdict="change",
        changes=[
            {
                "role": "gpu_driver",
                "action": "install",
                "target": "nvidia-kernel-dkms",
                "before": None,
                "after": "535.309.01-1",
                "disruption": "none",
            }
        ],
    )
    run = Runner(on_host=facts(), check_mode=True)
    result = run(gather="missing")
    assert result["changed"]
    assert result["diff"]["before"] == "gpu_driver install nvidia-kernel-dkms: absent\n"
    assert result["diff"]["after"] == "gpu_driver install nvidia-kernel-dkms: 535.309.01-1\n"
    assert result["ansible_facts"]["gpu_plan"]["group"] == "gpu_planned"
    assert not Runner(on_host=facts())(gather="missing")["changed"], "outside of check mode planning changes nothing"


def test_grouping_is_never_changed_and_leaves_the_diff_to_another_task(planner: FakePlanner) -> None:
    planner.answer.update(verdict="change", changes=[{"role": "gpu_driver", "action": "install", "target": "x"}])
    run = Runner(on_host=facts(packages={"cache_age": 10**6}), check_mode=True)
    result = run(gather="always", group="refresh", keep_facts=False)
    assert result["add_group"] == "gpu_planned" and not result["changed"] and "diff" not in result
    assert result["ansible_facts"]["gpu_facts"] is None
    shown = run()
    assert shown["reused"] and shown["changed"] and shown["diff"], "no facts were kept, and none are needed"
    assert Runner(on_host=run.on_host)(gather="always", group="refresh")["add_group"] == "gpu_refresh"
    assert Runner(on_host=run.on_host)(gather="always", group="verdict")["add_group"] == "gpu_change"
    assert "group is 'x'" in Runner(on_host=run.on_host)(gather="always", group="x")["msg"]


def test_facts_of_yesterday_do_not_outlive_a_reading_that_keeps_none(planner: FakePlanner) -> None:
    run = Runner({"ansible_facts": {"gpu_facts": facts(gpus=["yesterday"])}}, on_host=facts())
    run(gather="always", keep_facts=False)
    assert run()["reused"] and len(planner.calls) == 1
    run.variables["gpu_driver_branch"] = "580"
    assert "no GPU facts" in run()["msg"], "never planned from what a fact cache holds"
    assert not run(gather="missing").get("failed") and run.remote_calls == 2


def test_stored_facts_come_from_the_variable_where_that_is_wanted(planner: FakePlanner, tmp_path: Any) -> None:
    (tmp_path / "g1.json").write_text(json.dumps(facts()))
    run = Runner({"gpu_facts_file": str(tmp_path)}, on_host=facts())
    assert run(gather="always", stored=True)["ansible_facts"]["gpu_plan"]["facts_from"] == "stored"
    assert run(gather="always")["ansible_facts"]["gpu_plan"]["facts_from"] == "host"
    assert Runner(on_host=facts())(gather="always", stored=True)["ansible_facts"]["gpu_plan"]["facts_from"] == "host"


def test_blocked_stops_when_asked_to(planner: FakePlanner) -> None:
    planner.answer.update(
        verdict="blocked",
        findings=[
            {
                "rule": "DRV003",
                "severity": "error",
                "subject": "V100",
                "summary": "R595 does not know it",
                "remedy": "take 580",
            }
        ],
    )
    run = Runner(on_host=facts())
    assert not run(gather="missing").get("failed")
    result = run(gather="missing", stop_on_blocked=True)
    assert result["failed"] and "DRV003 V100: R595 does not know it — take 580" in result["msg"]


def test_pending_fails_only_where_it_was_asked_for(planner: FakePlanner) -> None:
    planner.answer.update(
        pending=[{"role": "gpu_driver", "action": "reboot", "target": "host", "needs": "gpu_reboot_allowed"}]
    )
    run = Runner(on_host=facts())
    assert not run(gather="missing", stop_on_pending=True).get("failed")
    assert run.variables["ansible_facts"]["gpu_plan"]["group"] == "gpu_pending"
    run.variables["gpu_pending_fails"] = True
    result = run(gather="missing", stop_on_pending=True)
    assert result["failed"] and "gpu_reboot_allowed" in result["msg"]


def test_an_old_python_on_the_host_is_said_in_one_sentence(planner: FakePlanner) -> None:
    broken = {"failed": True, "msg": "ansible-core requires a minimum of Python version 3.8. Current version: 3.6.8"}
    result = Runner(on_host=broken)(gather="missing")
    assert result["failed"] and "python3.11" in result["msg"] and "ansible_python_interpreter" in result["msg"]


def test_another_failure_of_the_facts_is_told_as_it_is(planner: FakePlanner) -> None:
    result = Runner(on_host={"failed": True, "msg": "disk on fire"})(gather="missing")
    assert result["failed"] and "disk on fire" in result["msg"]


def test_stored_facts_need_no_host(planner: FakePlanner, tmp_path: Any) -> None:
    (tmp_path / "g1.json").write_text(json.dumps({"gpu_facts": facts(read_at=1)}))
    run = Runner()
    result = run(gather="always", facts_file=str(tmp_path))
    assert run.remote_calls == 0 and not result.get("failed")
    assert result["ansible_facts"]["gpu_plan"]["facts_from"] == "stored"
    (tmp_path / "g1.json").unlink()
    assert "g1.json" in run(gather="always", facts_file=str(tmp_path))["msg"]


def test_a_failed_refresh_reaches_the_planner(planner: FakePlanner) -> None:
    Runner(on_host=facts(packages={"manager": "apt"}))(gather="always", refresh_error="no route to archive")
    assert planner.calls[0]["facts"]["packages"] == {"manager": "apt", "refresh_error": "no route to archive"}


def test_old_package_lists_are_marked_for_the_play(planner: FakePlanner) -> None:
    run = Runner(on_host=facts(packages={"cache_age": 90000}))
    assert run(gather="always")["ansible_facts"]["gpu_plan"]["lists_old"] is True
    run.variables["gpu_cache_max_age"] = 100000
    assert run(gather="always")["ansible_facts"]["gpu_plan"]["lists_old"] is False


def test_another_ansible_core_is_refused_before_the_host_is_asked(
    planner: FakePlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_plan, "core_version", "2.16.3")
    run = Runner(on_host=facts())
    result = run(gather="always")
    assert result["failed"] and "2.16.3" in result["msg"] and "2.19" in result["msg"] and run.remote_calls == 0


@pytest.mark.parametrize(
    "args", [{"gather": "maybe"}, {"facts": "text"}, {"gather": "missing", "stop_on_blocked": "perhaps"}]
)
def test_bad_arguments_are_named(planner: FakePlanner, args: dict[str, Any]) -> None:
    planner.answer["verdict"] = "blocked"
    result = Runner(on_host=facts())(**args)
    assert result["failed"] and list(args)[-1] in result["msg"]


def test_a_planner_that_does_not_load_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ValueError("products.yml line 3: no source")

    monkeypatch.setattr(engine, "load", broken)
    result = Runner(on_host=facts())(gather="missing")
    assert result["failed"] and "products.yml line 3" in result["msg"]
