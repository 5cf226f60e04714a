# SPDX-License-Identifier: GPL-3.0-or-later
"""The flow of site.yml, preflight.yml and verify.yml: order, canary, groups, costs, and bad days."""

from __future__ import annotations

import json
import pathlib

import pytest
import world as play
from world import BLOCKED, CHANGE, FORCED, PENDING, ROLES, World


@pytest.fixture(name="world")
def _world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


def test_a_fleet_as_planned_costs_one_remote_call_and_few_evaluations(world: World) -> None:
    for number in range(4):
        world.add(f"g{number}")
    result = world.run("site")
    assert result.rc == 0, result
    assert "4 ok" in result.output and "g[0-3] (4)" in result.output
    for counts in result.counts.values():
        assert counts["remote_calls"] == 1 and counts["changed"] == 0
        assert counts["evaluations"] <= 6
    # the report runs once for all of them, so most hosts have one
    assert sorted(counts["evaluations"] for counts in result.counts.values())[:3] == [1, 1, 1]
    assert world.events() == []


def test_a_changing_host_goes_through_all_roles_in_order_and_is_proved(world: World) -> None:
    world.add("g1", CHANGE)
    result = world.run("site")
    assert result.rc == 0, result
    assert world.events() == [f"g1 {role}" for role in ROLES]
    assert "nvidia-kernel-dkms: absent → 535.309.01-1" in result.output
    assert "as planned" in result.output or "1 ok" in result.output.split("Result")[1]
    assert not (world.place / "g1" / "lease").exists(), "the lease is released"
    again = world.run("site")
    assert again.rc == 0 and again.counts["g1"]["changed"] == 0 and again.counts["g1"]["remote_calls"] == 1, again


def test_a_host_is_read_again_under_the_lease_and_after_the_change(world: World) -> None:
    world.add("g1", CHANGE)
    result = world.run("site")
    assert result.rc == 0, result
    assert (world.place / "g1" / "log").read_text().count("facts") == 3, "first plan, under the lease, proof"


def test_force_runs_the_roles_on_a_host_that_is_as_planned(world: World) -> None:
    world.add("g1")
    result = world.run("site", gpu_force_apply=True)
    assert result.rc == 0, result
    assert world.events() == [f"g1 {role}" for role in FORCED]


def test_check_mode_prints_the_plan_and_applies_nothing(world: World) -> None:
    world.add("g1", CHANGE)
    world.add("g2")
    world.add("g3", BLOCKED)
    result = world.run("site", "--check", "--diff")
    assert world.events() == []
    assert result.rc == 2, "a blocked host fails in check mode too"
    assert result.counts["g1"]["changed"] == 1 and result.counts["g1"]["failures"] == 0
    assert "-gpu_driver install nvidia-kernel-dkms: absent" in result.output
    assert "+gpu_driver install nvidia-kernel-dkms: 535.309.01-1" in result.output
    assert result.counts["g2"]["changed"] == 0


def test_the_canary_goes_first_and_alone(world: World) -> None:
    for number in range(1, 5):
        world.add(f"g{number}", CHANGE)
    result = world.run("site")
    assert result.rc == 0, result
    events = world.events()
    assert events[:4] == [f"g1 {role}" for role in ROLES], "nobody else begins before the canary is through"
    assert len(events) == 16


def test_a_failing_canary_leaves_the_others_untouched(world: World) -> None:
    world.add("g1", CHANGE, fail_in="gpu_driver")
    world.add("g2", CHANGE)
    world.add("g3", CHANGE)
    result = world.run("site", gpu_report=str(world.place / "plan.json"))
    assert result.rc != 0
    assert world.events() == ["g1 gpu_kernel"], result
    assert "g1 failed in" in result.output and "not begun: g2, g3" in result.output
    assert not (world.place / "g1" / "lease").exists(), "the lease is released after a failure too"
    assert result.counts["g2"]["changed"] == 0
    report = json.loads((world.place / "plan.json").read_text())
    assert report["summary"]["failed_hosts"] == ["g1"]
    assert sorted(report["hosts"]) == ["g1", "g2", "g3"]


def test_a_host_lost_in_the_middle_stops_the_rest(world: World) -> None:
    world.add("g1", CHANGE)
    world.add("g2", CHANGE, lost_in="gpu_driver")
    world.add("g3", CHANGE)
    result = world.run("site", gpu_serial=[2, 1])
    assert result.rc != 0
    hosts = {event.split()[0] for event in world.events()}
    assert hosts == {"g1", "g2"}, result
    assert world.events().count("g1 gpu_containerd") == 1, "the other host of the batch is finished, not left half done"
    assert "Not begun, because an earlier host was lost: g2" in result.output


def test_a_host_that_is_not_as_planned_after_the_change_fails_with_what_differs(world: World) -> None:
    world.add("g1", CHANGE, after=CHANGE)
    world.add("g2", CHANGE)
    result = world.run("site")
    assert result.rc != 0
    assert "still to be done: gpu_driver install nvidia-kernel-dkms" in result.output
    assert not [event for event in world.events() if event.startswith("g2")], "an unproved canary stops the rest"


def test_a_second_run_does_not_get_past_the_lease(world: World) -> None:
    world.add("g1", CHANGE)
    (world.place / "g1" / "lease").write_text("run-of-somebody-else")
    result = world.run("site")
    assert result.rc != 0 and world.events() == []
    assert "held by run run-of-somebody-else" in result.output
    assert (world.place / "g1" / "lease").read_text() == "run-of-somebody-else", "their lease stays theirs"


def test_a_blocked_host_fails_last_and_the_others_are_changed(world: World) -> None:
    world.add("g1", BLOCKED)
    world.add("g2", CHANGE)
    result = world.run("site")
    assert result.rc != 0
    assert {event.split()[0] for event in world.events()} == {"g2"}
    assert result.counts["g1"]["failures"] == 1 and result.counts["g2"]["failures"] == 0
    assert "DRV003 Tesla V100: R595 does not know Volta — take 580" in result.output


def test_pending_changes_are_listed_and_fail_only_if_asked(world: World) -> None:
    world.add("g1", PENDING)
    world.add("g2", CHANGE, after=PENDING)
    result = world.run("site")
    assert result.rc == 0, result
    assert "waits for gpu_reboot_allowed: true" in result.output
    assert "2 pending change(s), allowed by gpu_reboot_allowed" in result.output.split("Result")[1]
    strict = world.run("site", gpu_pending_fails=True)
    assert strict.rc == 2 and strict.counts["g1"]["failures"] == 1 and strict.counts["g2"]["failures"] == 1


def test_an_unreachable_host_is_said_and_does_not_stop_the_plan_of_others(world: World) -> None:
    world.add("g1", CHANGE)
    world.add(
        "g2",
        ansible_connection="ssh",
        ansible_host="127.0.0.1",
        ansible_port=1,
        ansible_ssh_common_args="-oBatchMode=yes",
    )
    result = world.run("site")
    assert result.rc == 4, result
    assert "not read" in result.output and len(world.events()) == 4


def test_a_plan_from_yesterday_in_the_fact_cache_is_not_used(world: World) -> None:
    world.add("g1")
    assert world.run("site").rc == 0
    cached = next((world.place / "cache").glob("*g1*"))
    assert "gpu_plan" in cached.read_text(), "the test needs a cached plan"
    facts = json.loads((world.place / "g1" / "facts.json").read_text())
    (world.place / "g1" / "facts.json").write_text(json.dumps({**facts, "plan": CHANGE}))
    playbook = world.place / "alone.yml"
    playbook.write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.import_role: {name: baremetal.nvidia.gpu_kernel}\n"
        "    - ansible.builtin.debug: {msg: \"verdict {{ ansible_facts['gpu_plan'].verdict }}\"}\n"
    )
    result = world.run_file(playbook)
    assert result.rc == 0 and "verdict change" in result.output, result


def test_old_package_lists_are_refreshed_once_and_the_host_planned_again(world: World) -> None:
    world.add("g1", facts={"packages": {"manager": "none", "cache_age": 999999}})
    world.add("g2")
    result = world.run("site")
    assert result.rc == 0, result
    assert result.counts["g1"]["remote_calls"] == 2 and result.counts["g2"]["remote_calls"] == 1
    assert result.counts["g1"]["changed"] == 0
    checked = world.run("site", "--check")
    assert checked.counts["g1"]["remote_calls"] == 1, "check mode leaves the lists alone"


def test_preflight_reads_and_reports_and_changes_nothing(world: World) -> None:
    world.add("g1", CHANGE)
    world.add("g2", BLOCKED)
    result = world.run("preflight", gpu_report=str(world.place / "plan.json"))
    assert result.rc == 2 and world.events() == []
    assert result.counts["g1"]["changed"] == 0 and result.counts["g1"]["failures"] == 0
    report = json.loads((world.place / "plan.json").read_text())
    assert report["hosts"]["g1"]["verdict"] == "change" and report["summary"]["verdicts"]["blocked"] == 1


def test_preflight_from_stored_facts_asks_no_host(world: World) -> None:
    world.add("g1", ansible_connection="ssh", ansible_host="192.0.2.1")
    result = world.run("preflight", gpu_facts_file=str(world.place / "g1" / "facts.json"))
    assert result.rc == 0, result
    assert result.counts["g1"]["remote_calls"] == 0


def test_verify_proves_without_changing(world: World) -> None:
    world.add("g1")
    world.add("g2", CHANGE)
    result = world.run("verify")
    assert result.rc == 2 and world.events() == []
    assert result.counts["g1"]["failures"] == 0 and result.counts["g2"]["failures"] == 1
    assert "still to be done" in result.output


def test_tags_of_a_role_run_that_role_alone_but_always_plan(world: World) -> None:
    world.add("g1", CHANGE)
    result = world.run("site", "--tags", "gpu_kernel")
    assert world.events() == ["g1 gpu_kernel"], result


def test_bad_policy_fails_that_host_with_name_value_and_allowed(world: World) -> None:
    world.add("g1", gpu_kernel_policy="sometimes")
    world.add("g2", gpu_driver_version=535.1)
    world.add("g3", gpu_reboot_alowed=True)
    world.add("g4")
    result = world.run("site")
    assert result.rc == 2
    for words in (
        ("gpu_kernel_policy", "sometimes", "gated"),
        ("gpu_driver_version", "535.1", "quote"),
        ("gpu_reboot_alowed", "gpu_reboot_allowed"),
    ):
        assert all(word in result.output for word in words), words
    assert result.counts["g4"]["failures"] == 0 and "Traceback" not in result.output


def test_the_world_can_tell_a_flow_that_applies_too_much(world: World) -> None:
    """The events that other tests expect to be absent do appear when a role runs."""
    world.add("g1", CHANGE)
    world.run("site")
    assert len(world.events()) == len(play.ROLES)
