# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restart for another driver: the hook drains before it, and gives the work back after it or where there was none."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
TASKS = ROOT / "roles/gpu_driver/tasks"
ACTS = ("ansible.builtin.reboot", "ansible.builtin.include_role")


def told(tasks: list[dict[str, Any]], log: pathlib.Path, broken: str) -> list[dict[str, Any]]:
    """The tasks as they are, save that what reads or restarts a host only says so; the one called ``broken`` fails."""
    found = []
    for task in tasks:
        kept = {key: value for key, value in task.items() if key not in ACTS}
        for part in ("block", "rescue"):
            if part in task:
                kept[part] = told(task[part], log, broken)
        if "ansible.builtin.reboot" in task:
            kept["ansible.builtin.shell"] = says(log, "restarted", fails=broken == "restart")
        elif "ansible.builtin.include_role" in task:
            kept["ansible.builtin.shell"] = says(log, "looked")
        found.append(kept)
    return found


def says(log: pathlib.Path, word: str, fails: bool = False) -> str:
    return f"echo {word} >> {log}" + ("; exit 1" if fails else "")


def run(tmp_path: pathlib.Path, broken: str = "nothing", processes: int = 0, drain: bool = True,
        undrain: bool = True) -> tuple[list[str], str, int]:
    """Return what was done in order, all that was said, and the exit status of the role's own reboot.yml."""
    log = tmp_path / "log"
    log.write_text("")
    for name in ("reboot.yml", "drain.yml"):
        text = yaml.safe_dump(told(yaml.safe_load((TASKS / name).read_text(encoding="utf-8")), log, broken))
        (tmp_path / name).write_text(text, encoding="utf-8")
    for word in ("drained", "undrained"):
        task = {"name": f"Have it {word}", "ansible.builtin.shell": says(log, word, fails=broken == word)}
        (tmp_path / f"{word}.yml").write_text(yaml.safe_dump([task]))
    role = yaml.safe_load((ROOT / "roles/gpu_driver/vars/main.yml").read_text(encoding="utf-8"))
    variables = {
        "__gpu_driver_drains": role["__gpu_driver_drains"], "__gpu_driver_no_reboot": "",
        "gpu_driver_reboot_timeout": 1800,
        "__gpu_driver_decision": {"version": "580.178.04"},
        "__gpu_driver_facts": {"driver": {"processes": processes, "holders": ["python (7)"] * processes}},
        "gpu_drain_tasks": str(tmp_path / "drained.yml") if drain else "",
        "gpu_undrain_tasks": str(tmp_path / "undrained.yml") if undrain else "",
    }
    play = {"hosts": "a", "connection": "local", "gather_facts": False, "vars": variables,
            "tasks": [{"name": "Restart", "ansible.builtin.include_tasks": str(tmp_path / "reboot.yml")}]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    done = subprocess.run([str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "a,",
                           str(tmp_path / "play.yml"), "-e", f"ansible_python_interpreter={sys.executable}"],
                          capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    return log.read_text().split(), " ".join((done.stdout + done.stderr).split()), done.returncode


def test_the_hook_drains_before_the_restart_and_gives_back_after_it(tmp_path: pathlib.Path) -> None:
    done, said, status = run(tmp_path)
    assert (done, status) == (["drained", "looked", "restarted", "undrained"], 0), said


def test_without_a_hook_nothing_is_drained_or_given_back(tmp_path: pathlib.Path) -> None:
    """An undrain hook alone does not uncordon a node that somebody else has cordoned."""
    done, said, status = run(tmp_path, drain=False)
    assert (done, status) == (["looked", "restarted"], 0), said


@pytest.mark.parametrize(("broken", "processes", "did", "words"), [
    ("drained", 0, ["drained", "undrained"], "The reason: Have it drained:"),
    ("nothing", 1, ["drained", "looked", "undrained"],
     "1 processes use the GPUs now (python (7)), so the host is not rebooted"),
])
def test_where_it_cannot_be_drained_nothing_is_restarted_and_the_work_comes_back(
        tmp_path: pathlib.Path, broken: str, processes: int, did: list[str], words: str) -> None:
    done, said, status = run(tmp_path, broken, processes)
    assert (done, status) == (did, 2)
    assert "a was not restarted" in said and words in said and "given its work back (gpu_undrain_tasks)" in said


def test_what_stays_drained_is_said(tmp_path: pathlib.Path) -> None:
    done, said, status = run(tmp_path, processes=1, undrain=False)
    assert (done, status) == (["drained", "looked"], 2) and "stays drained: gpu_undrain_tasks is empty" in said
    done, said, status = run(tmp_path, "undrained", processes=1)
    assert status == 2 and "stays drained, since gpu_undrain_tasks failed: Have it undrained" in said


def test_a_host_that_does_not_come_back_is_not_given_work(tmp_path: pathlib.Path) -> None:
    done, said, status = run(tmp_path, "restart")
    assert (done, status) == (["drained", "looked", "restarted"], 2)
    assert "is not back with its nvidia module" in said and "It stays drained." in said


def test_the_initial_ramdisks_are_compared_with_the_installed_module() -> None:
    (task,) = yaml.safe_load((TASKS / "initramfs.yml").read_text(encoding="utf-8"))
    assert task["baremetal.nvidia.initramfs"]["driver_as_installed"] is True
