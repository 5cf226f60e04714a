# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel that came in behind our back is found in the log of each package manager; one of before our time is not."""
from __future__ import annotations

import datetime
import pathlib
import sys
from typing import Any

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix, planner
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import compare

CASES = pathlib.Path(__file__).resolve().parents[3] / "cases"
sys.path.insert(0, str(CASES))

NEW = {
    "rocky": ("5.14.0-611.5.1.el9_7.x86_64", "kernel-core-5.14.0-611.5.1.el9_7.x86_64"),
    "sles": ("6.4.0-150700.53.99-default", "kernel-default-6.4.0-150700.53.99.2.x86_64"),
}


def planned(system: str, when: str, moved: str | None = None, **more: Any) -> dict[str, Any]:
    facts: dict[str, Any] = yaml.safe_load((CASES / f"healthy/{system}.yml").read_text(encoding="utf-8"))[0]["facts"]
    release, package = NEW[system]
    running = facts["kernel"]["running"]
    facts["kernel"]["installed"].append({
        "release": release, "image": True, "initrd": True, "headers": False, "nvidia": None, "extra_modules": [],
        "packages": {"image": package, "headers": None}, **more})
    facts["packages"]["history"] = [{"when": when, "command": "dnf -y upgrade", "user": "ops",
                                     "names": [moved or package]}]
    facts["state"] = {"proved_kernels": [running], "holds": [], "held_since": "2026-10-01T00:00:00Z", "open": None}
    return planner.plan("g1", facts, {}, matrix.load(), datetime.date(2026, 11, 30))


def came(system: str, when: str, moved: str | None = None, **more: Any) -> list[str]:
    plan = planned(system, when, moved, **more)
    return [one["summary"] for one in plan["findings"] if one["rule"] == "KRN021"]


@pytest.mark.parametrize("system", list(NEW))
def test_rpm_names_a_kernel_by_name_and_version(system: str) -> None:
    (said,) = came(system, "2026-11-29T06:10:00Z")
    assert NEW[system][0] in said and "dnf -y upgrade by ops" in said
    assert came(system, "2026-11-29T06:10:00Z", "kernel-core-5.14.0-1.el9.x86_64") == []


@pytest.mark.parametrize("system", list(NEW))
def test_what_rpm_installed_by_itself_stands_in_no_log(system: str) -> None:
    record = f"rpm has {NEW[system][1]}"
    before = "2026-09-01T06:10:00Z"
    (said,) = came(system, before, arrived={"when": "2026-11-29T06:10:00Z", "record": record})
    assert NEW[system][0] in said and "by no command that the package manager's log has" in said and record in said
    assert "2026-11-29T06:10:00Z" in said
    assert came(system, before, arrived={"when": before, "record": record}) == []
    assert came(system, before, arrived=None) == [] and came(system, before, arrived={"when": 1}) == []


@pytest.mark.parametrize("system", list(NEW))
def test_verify_fails_for_it(system: str) -> None:
    arrived = {"when": "2026-11-29T06:10:00Z", "record": f"rpm has {NEW[system][1]}"}
    (line,) = compare.drift(planned(system, "2026-09-01T06:10:00Z", arrived=arrived))
    assert line.startswith(f"KRN021 {NEW[system][0]}") and arrived["record"] in line


@pytest.mark.parametrize("system", list(NEW))
def test_what_came_before_the_hold_came_not_behind_our_back(system: str) -> None:
    assert came(system, "2026-09-30T06:10:00Z") == []
