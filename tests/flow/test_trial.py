# SPDX-License-Identifier: GPL-3.0-or-later
"""Role gpu_kernel's own trial.yml and commit.yml, over modules that only write down that they ran.

A trial that is refused after the drain restarted nothing, so the host gets its work back; a commit says what the
running kernel keeps.
"""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import pytest
from world import ROOT, World

_BOOT = """#!/usr/bin/python
from __future__ import annotations
import os, pathlib
from ansible.module_utils.basic import AnsibleModule
PLACE = pathlib.Path(os.environ["FAKE_HOST"])
def main():
    names = "release entries lease state panic timeout fallback_reboot watchdog module version"
    module = AnsibleModule(argument_spec={name: {"type": "raw"} for name in names.split()})
    if (PLACE / "refuses-%(name)s").exists():
        module.fail_json(msg="no trial boot: a kernel is loaded for kexec")
    with open(PLACE.parent / "events", "a") as log:
        log.write("g1 %(name)s\\n")
    module.exit_json(changed=True, not_covered=[])
if __name__ == "__main__":
    main()
"""
_HOOK = """---
- ansible.builtin.shell: echo "g1 %s" >> {{ world }}/events
- ansible.builtin.command: "%s"
"""
_BOOK = """---
- hosts: all
  gather_facts: false
  tasks:
    - baremetal.nvidia.gpu_plan: {gather: always}
    - ansible.builtin.include_role: {name: baremetal.nvidia.gpu_kernel, tasks_from: trial.yml}
"""
_PLAN = {"verdict": "change", "decisions": {
    "kernel": {"boot": "6.1.0-47-amd64", "trial_release": "6.1.0-57-amd64",
               "trial_settings": {"panic": 30, "timeout": 600, "fallback_reboot": False, "watchdog": "auto"}},
    "driver": {"version": "535.309.01", "module": "nvidia"}}}


@pytest.fixture(name="world")
def _world(tmp_path: pathlib.Path) -> World:
    world = World(tmp_path)
    ours = tmp_path / "collections/ansible_collections/baremetal/nvidia"
    role = ours / "roles/gpu_kernel"
    shutil.rmtree(role)
    shutil.copytree(ROOT / "roles/gpu_kernel", role)
    (role / "tasks/pin.yml").write_text("---\n[]\n")
    for name in ("boot_default", "boot_once"):
        (ours / "plugins/modules" / f"{name}.py").write_text(_BOOT % {"name": name})
    (tmp_path / "book.yml").write_text(_BOOK)
    (tmp_path / "drain.yml").write_text(_HOOK % ("drain", "true"))
    (tmp_path / "drain-fails.yml").write_text(_HOOK % ("drain", "false"))
    (tmp_path / "undrain.yml").write_text(_HOOK % ("undrain", "true"))
    (tmp_path / "undrain-fails.yml").write_text(_HOOK % ("undrain", "false"))
    return world


def tried(world: World, processes: int = 0, refuses: bool = False, **hooks: str) -> tuple[list[str], str]:
    """Try the kernel; return what was done, in order, and what was said."""
    world.add("g1", _PLAN, facts={"driver": {"processes": processes}})
    if refuses:
        (world.place / "g1/refuses-boot_once").touch()
    paths: dict[str, Any] = {f"gpu_{name}_tasks": str(world.place / f"{hook}.yml") for name, hook in hooks.items()}
    result = world.run_file(world.place / "book.yml", **paths)
    assert result.rc == 2, result
    return [event.removeprefix("g1 ") for event in world.events()], " ".join(result.output.split())


@pytest.mark.parametrize(("state", "reason"), [
    ({"processes": 3}, "no longer to be tried: 3 processes use the GPUs"),
    ({"refuses": True}, "Boot it once; the default stays: no trial boot: a kernel is loaded for kexec"),
])
def test_the_work_is_given_back(world: World, state: dict[str, Any], reason: str) -> None:
    done, said = tried(world, **state, drain="drain", undrain="undrain")
    assert done == ["boot_default", "drain", "undrain"]
    assert "6.1.0-57-amd64 was not tried, and nothing was restarted. The reason: " in said
    assert reason in said and "The host was given its work back (gpu_undrain_tasks)." in said


def test_half_a_drain_is_given_back_too(world: World) -> None:
    done, said = tried(world, drain="drain-fails", undrain="undrain")
    assert done == ["boot_default", "drain", "undrain"]
    assert "was not tried, and nothing was restarted" in said


def test_where_the_way_back_fails_both_reasons_are_told(world: World) -> None:
    done, said = tried(world, refuses=True, drain="drain", undrain="undrain-fails")
    assert done == ["boot_default", "drain", "undrain"]
    assert "no trial boot: a kernel is loaded for kexec" in said
    assert "The host stays drained, since gpu_undrain_tasks failed: " in said and "non-zero return code" in said


def test_without_undrain_tasks_it_is_said_that_the_host_stays_drained(world: World) -> None:
    done, said = tried(world, processes=1, drain="drain")
    assert done == ["boot_default", "drain"]
    assert "The host stays drained: gpu_undrain_tasks is empty." in said


def test_nothing_is_given_back_that_was_not_taken(world: World) -> None:
    done, said = tried(world, processes=1, undrain="undrain")
    assert done == ["boot_default"]
    assert "nothing was restarted" in said and "drained" not in said


def test_once_it_is_armed_and_restarted_the_work_stays_off(world: World) -> None:
    """The module reboot refuses a local connection, as it fails for a host that does not answer in time."""
    done, said = tried(world, drain="drain", undrain="undrain")
    assert done == ["boot_default", "drain", "boot_once"]
    assert "did not come back from its trial boot" in said and "nothing was restarted" not in said


def committed(world: World, findings: list[dict[str, Any]]) -> str:
    world.add("g1", {**_PLAN, "findings": findings})
    book = world.place / "commit.yml"
    book.write_text(_BOOK.replace("trial.yml", "commit.yml"))
    result = world.run_file(book, __gpu_kernel_committing="6.1.0-57-amd64")
    assert result.rc == 0 and world.events() == ["g1 boot_default", "g1 boot_once"], result
    return " ".join(result.output.split())


def test_a_commit_says_what_the_running_kernel_keeps_of_its_trial(world: World) -> None:
    said = committed(world, [{"rule": "KRN030", "severity": "info", "subject": "6.1.0-57-amd64",
                              "summary": "it runs with panic=30", "remedy": "the next restart is without"}])
    assert "g1: it runs with panic=30; the next restart is without." in said


def test_a_commit_that_came_after_a_restart_says_nothing(world: World) -> None:
    assert "panic" not in committed(world, [])
