# SPDX-License-Identifier: GPL-3.0-or-later
"""The flow of kernel_upgrade.yml: what is due, in which order, who goes first, and what stops the others."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from world import BLOCKED, CHANGE, ROOT, World

PLAYBOOK = "playbook kernel_upgrade.yml"


def pending(*steps: tuple[str, str]) -> dict[str, Any]:
    """Return a plan in which these steps wait: (action, what for)."""
    return {
        "verdict": "change",
        "pending": [{"role": "gpu_kernel", "action": action, "target": "6.1.0-57-amd64", "before": None, "after": "x",
                     "disruption": "none", "needs": needs} for action, needs in steps],
        "decisions": {"kernel": {"commit": "6.1.0-57-amd64"}},
    }


STAGE, TRIAL, COMMIT = (pending((step, PLAYBOOK)) for step in ("stage", "trial", "commit"))


@pytest.fixture(name="world")
def _world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


def add(world: World, name: str, **variables: Any) -> None:
    """Add a host whose kernel is to be staged, then tried."""
    world.add(name, STAGE, **variables)
    world.becomes(name, "stage", TRIAL)
    world.becomes(name, "trial", {"verdict": "ok"})


def test_staged_tried_and_nothing_left(world: World) -> None:
    add(world, "g1")
    world.add("g2")
    result = world.run("kernel_upgrade")
    assert result.rc == 0, result
    assert world.events() == ["g1 gpu_kernel", "g1 stage", "g1 trial"]
    assert not (world.place / "g1" / "lease").exists(), "the lease is released"
    again = world.run("kernel_upgrade")
    assert again.rc == 0 and again.counts["g1"]["changed"] == 0, again


def test_the_canary_goes_first_and_alone(world: World) -> None:
    for number in range(1, 4):
        add(world, f"g{number}")
    result = world.run("kernel_upgrade")
    assert result.rc == 0, result
    assert world.events()[:3] == ["g1 gpu_kernel", "g1 stage", "g1 trial"]
    assert len(world.events()) == 9


def test_without_leave_to_restart_the_kernel_is_staged_and_its_trial_waits(world: World) -> None:
    world.add("g1", STAGE)
    world.becomes("g1", "stage", pending(("trial", "gpu_reboot_allowed")))
    result = world.run("kernel_upgrade")
    assert result.rc == 0, result
    assert world.events() == ["g1 gpu_kernel", "g1 stage"]
    assert "trial of 6.1.0-57-amd64 waits for" in result.output and "gpu_reboot_allowed" in result.output


def test_a_trial_that_was_healthy_before_a_run_was_cut_off_is_committed(world: World) -> None:
    world.add("g1", COMMIT)
    world.becomes("g1", "commit", pending(("prune", PLAYBOOK)))
    world.becomes("g1", "prune", {"verdict": "ok"})
    result = world.run("kernel_upgrade")
    assert result.rc == 0, result
    assert world.events() == ["g1 gpu_kernel", "g1 commit", "g1 prune"]


@pytest.mark.parametrize("step", ["stage", "trial"])
def test_a_canary_that_fails_stops_the_others(world: World, step: str) -> None:
    add(world, "g1", fail_in=step)
    add(world, "g2")
    result = world.run("kernel_upgrade")
    assert result.rc == 2, result
    assert "g2 stage" not in world.events()
    said = " ".join(result.output.split())
    assert "not begun: g2" in said
    assert "non-zero return code. The others" in said, "what an item of a loop said, not that one failed"
    assert not (world.place / "g1" / "lease").exists(), "the lease is released"


def test_a_canary_that_is_lost_in_its_trial_stops_the_others(world: World) -> None:
    add(world, "g1", lost_in="trial")
    add(world, "g2")
    result = world.run("kernel_upgrade")
    assert result.rc != 0, result
    assert "g2 stage" not in world.events()


def test_the_others_of_its_batch_come_to_their_end_and_no_more_are_begun(world: World) -> None:
    add(world, "g1")
    add(world, "g2", fail_in="trial")
    add(world, "g3")
    add(world, "g4")
    result = world.run("kernel_upgrade", gpu_serial=[1, 2])
    assert result.rc != 0, result
    assert "g3 trial" in world.events(), result
    assert not (world.place / "g3" / "lease").exists(), "the lease is released"
    assert not [event for event in world.events() if event.startswith("g4 ")]
    said = " ".join(result.output.split())
    assert "not begun: g4. Put" in said
    assert "g3 failed" not in said


BACK = """---
- hosts: all
  gather_facts: false
  vars:
    gpu_kernel_reboot_timeout: 2
    __gpu_kernel_tried: 6.1.0-57-amd64
    __gpu_kernel_former: 6.1.0-47-amd64
    __gpu_kernel_armed_for: 0
  tasks:
    - ansible.builtin.include_tasks: %s
    - ansible.builtin.debug: {msg: went on}
"""


def test_a_host_that_does_not_come_back_ends_with_what_to_do(world: World) -> None:
    """The module reboot refuses a local connection, as it fails for a host that does not answer in time."""
    world.add("g1")
    book = world.place / "back.yml"
    book.write_text(BACK % (ROOT / "roles/gpu_kernel/tasks/trial_boot.yml"))
    result = world.run_file(book)
    said = " ".join(result.output.split())
    assert result.rc == 2 and "went on" not in said, result
    assert "g1 did not come back from its trial boot of 6.1.0-57-amd64, for which it has 2 s: " in said
    assert "switch its power off and on, and it starts 6.1.0-47-amd64, which is still the default" in said


def test_a_blocked_host_is_not_moved_and_says_why(world: World) -> None:
    world.add("g1", {**STAGE, **BLOCKED})
    result = world.run("kernel_upgrade")
    assert result.rc == 2 and world.events() == [], result
    assert "R595 does not know Volta" in result.output


def test_a_host_that_differs_otherwise_is_sent_to_site_first(world: World) -> None:
    world.add("g1", {**STAGE, "changes": CHANGE["changes"]})
    result = world.run("kernel_upgrade")
    assert result.rc == 2 and "g1 stage" not in world.events(), result
    assert "Run site.yml first" in " ".join(result.output.split())


def test_a_package_manager_that_does_not_answer_is_no_quiet_success(world: World) -> None:
    world.add("g1", {"findings": [{"rule": "KRN026", "severity": "warning", "subject": "kernel.candidates",
                                   "summary": "the resolver did not answer in time", "remedy": "run again"}]})
    result = world.run("kernel_upgrade")
    assert result.rc == 2, result
    assert "the resolver did not answer in time. run again" in " ".join(result.output.split())


def test_check_mode_moves_nothing(world: World) -> None:
    add(world, "g1")
    result = world.run("kernel_upgrade", "--check")
    assert result.rc == 0 and world.events() == [], result
    assert "waits for playbook kernel_upgrade.yml" in result.output


def test_what_a_cut_off_run_left_is_put_right_without_anything_else_to_do(world: World) -> None:
    recover = {"role": "gpu_kernel", "action": "recover", "target": "x", "before": "cut off", "after": "finished",
               "disruption": "none"}
    world.add("g1", {"verdict": "change", "changes": [recover]})
    result = world.run("kernel_upgrade")
    assert world.events() == ["g1 gpu_kernel"], result


def test_site_leaves_a_kernel_that_waits_alone_and_says_so(world: World) -> None:
    world.add("g1", STAGE)
    result = world.run("site", gpu_kernel_policy="gated")
    assert result.rc == 0, result
    assert world.events() == [] and result.counts["g1"]["remote_calls"] == 1, "nothing for the roles to do"
    assert "waits for playbook kernel_upgrade.yml" in result.output
