# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository as an AWX project: jobs run by ansible-runner, as AWX runs them, with nobody at the terminal.

Needs lab hosts that site.yml converted (LAB_NAME names the lab; without it inventories/lab).
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import ansible_runner
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = os.environ.get("LAB_NAME")
INVENTORY = ROOT / ".cache" / "lab" / LAB / "inventory" if LAB else ROOT / "inventories" / "lab"
HOSTS = ("gpu-deb12", "gpu-deb13")

pytestmark = pytest.mark.skipif(not (INVENTORY / "hosts.yml").exists(), reason=f"no lab at {INVENTORY}: make lab")


class Job:
    """One job: its status, its events, and the artifacts that AWX would keep."""

    def __init__(self, place: pathlib.Path, playbook: str, cmdline: str = "", **extra: Any) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.runner = ansible_runner.run(
            private_data_dir=str(place),
            project_dir=str(ROOT),  # the checkout is the project
            playbook=f"playbooks/{playbook}.yml",
            inventory=str(INVENTORY),
            extravars=extra,
            cmdline=cmdline,
            envvars={
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_NOCOLOR": "1",
                "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            quiet=True,
            json_mode=False,
        )
        self.events = list(self.runner.events)
        self.output = pathlib.Path(self.runner.stdout.name).read_text(encoding="utf-8")

    @property
    def artifacts(self) -> dict[str, Any]:
        """Return what set_stats gave: AWX shows it as artifacts and hands it to the next job."""
        last = [event for event in self.events if event["event"] == "playbook_on_stats"][-1]
        data: dict[str, Any] = last["event_data"]["artifact_data"]
        return data

    def changed(self) -> int:
        """Return how many tasks changed something, on all hosts."""
        return sum((self.runner.stats or {}).get("changed", {}).values())


def test_the_project_has_what_awx_looks_for() -> None:
    assert (ROOT / "collections" / "requirements.yml").is_file(), "collections are installed from here before a job"
    prompts = r"vars_prompt|^ *(- )?(ansible\.builtin\.)?pause:"
    found = subprocess.run(
        ["grep", "-rlE", prompts, str(ROOT / "playbooks"), str(ROOT / "roles")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == "", "a job cannot answer a prompt"


def test_preflight_leaves_a_small_summary_and_the_whole_report(tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, "preflight", gpu_report=str(tmp_path / "plan.json"))
    assert job.runner.status == "successful", job.output
    summary = job.artifacts["gpu_summary"]
    assert summary["hosts"] == len(HOSTS) and summary["verdicts"]["unread"] == 0
    assert len(json.dumps(job.artifacts)) < 4096, "the next job gets it as extra variables"
    report = json.loads((tmp_path / "plan.json").read_text())
    assert sorted(report["hosts"]) == sorted(HOSTS)
    assert report["summary"]["verdicts"] == summary["verdicts"] and report["run_id"] == summary["run_id"]
    assert job.changed() == 0


def test_the_table_is_in_the_job_log_without_colours(tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, "preflight")
    assert "HOST" in job.output and "2 host(s):" in job.output, job.output
    assert "\x1b[" not in job.output, "ANSIBLE_NOCOLOR holds for the table too"


def test_site_changes_nothing_on_hosts_that_are_as_planned(tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, "site", gpu_report=str(tmp_path / "plan.json"))
    assert job.runner.status == "successful", job.output
    assert job.changed() == 0
    summary = job.artifacts["gpu_summary"]
    assert summary["verdicts"]["ok"] == len(HOSTS) and summary["changes"] == 0
    assert json.loads((tmp_path / "plan.json").read_text())["summary"]["verdicts"]["ok"] == len(HOSTS)


def test_extra_variables_steer_and_check_mode_shows(tmp_path: pathlib.Path) -> None:
    job = Job(
        tmp_path, "site", "--check --diff --limit gpu-deb12", gpu_container_runtime="none", gpu_driver_branch="999"
    )
    assert job.runner.status == "failed", "an unknown branch blocks"
    assert "999" in job.output and "Traceback" not in job.output
    assert job.artifacts["gpu_summary"]["verdicts"]["blocked"] == 1
    assert job.artifacts["gpu_summary"]["blocked_hosts"] == ["gpu-deb12"]


def test_verify_proves_the_lab(tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, "verify", gpu_verify_level="static")
    assert job.runner.status == "successful", job.output
