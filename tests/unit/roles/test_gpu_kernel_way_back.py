# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel that does not come in: the last message has the reason, also where the way back fails after it."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = ("baremetal.nvidia.kernel_stage", "ansible.builtin.include_tasks")


def acted(tasks: list[dict[str, Any]], broken: str) -> list[dict[str, Any]]:
    """The tasks as they are, save that what would act on a host only says so; the one called ``broken`` fails."""
    found = []
    for task in tasks:
        kept: dict[str, Any] = {key: value for key, value in task.items() if key not in OURS}
        for part in ("block", "rescue"):
            if part in task:
                kept[part] = acted(task[part], broken)
        if len(kept) < len(task):
            does = "fail" if task["name"] == broken else "debug"
            kept[f"ansible.builtin.{does}"] = {"msg": f"{does} of {task['name']}."}
        found.append(kept)
    return found


def last_words(tmp_path: pathlib.Path, broken: str) -> str:
    """What the host's last failed task says, when bringing the kernel in fails and then the task ``broken``."""
    steps = yaml.safe_load((ROOT / "roles/gpu_kernel/tasks/stage_packages.yml").read_text(encoding="utf-8"))
    (bring,) = [one for one in steps if "rescue" in one]
    play = {"hosts": "a", "connection": "local", "gather_facts": False, "vars": {
        "__gpu_kernel_stage": {"release": "6.1.0-57-amd64", "from": "6.1.0-47-amd64"},
        "__gpu_kernel_decision": {"guard": {"allowed": []}}, "__gpu_kernel_run": "1"},
        "tasks": [{"name": "Bring it in", "block": [{"name": "Install", "ansible.builtin.fail": {"msg": "FIRST."}}],
                   "rescue": acted(bring["rescue"], broken)}]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    done = subprocess.run([str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "a,",
                           str(tmp_path / "play.yml"), "-e", f"ansible_python_interpreter={sys.executable}"],
                          capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    assert done.returncode == 2, done.stdout + done.stderr
    return " ".join(done.stdout.rpartition("TASK [")[2].split())


@pytest.mark.parametrize("broken", ["Take it back", "Pin as before", "Guard as before"])
def test_where_the_way_back_fails_too_both_reasons_are_told(tmp_path: pathlib.Path, broken: str) -> None:
    said = last_words(tmp_path, broken)
    assert "6.1.0-57-amd64 was not brought in" in said and "was taken back" not in said
    assert "The reason: Install: FIRST." in said and f"failed in {broken}: fail of {broken}." in said


def test_where_it_was_taken_back_that_is_told_with_the_reason(tmp_path: pathlib.Path) -> None:
    said = last_words(tmp_path, "nothing")
    assert "6.1.0-57-amd64 was taken back" in said and "The reason: Install: FIRST." in said
    assert "failed as well" not in said
