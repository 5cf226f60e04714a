# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Headers, broken and old kernels, and package lists go by package_set on every distribution; the pin closes again."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
STEPS = ("headers", "broken", "prune")
ALL = (*STEPS, "stage_install")


def tasks(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield entry
        for part in ("block", "rescue", "always"):
            yield from tasks(entry.get(part, []))


def read(role: str, name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load((ROOT / f"roles/{role}/tasks/{name}.yml").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ALL)
def test_one_task_for_every_manager_that_waits_and_looks(name: str) -> None:
    (task,) = [one["baremetal.nvidia.package_set"] for one in tasks(read("gpu_kernel", name))
               if "baremetal.nvidia.package_set" in one]
    assert task["lock_timeout"] == "{{ gpu_lock_timeout }}" and task["lease"] == "{{ __gpu_kernel_run }}"
    assert "gpu_daemon_reload_allowed" in task["reload_allowed"]
    assert name in ("headers", "stage_install") or task["purge"] is True
    assert ("search" in task) is (name in ("prune", "stage_install")), "the boot menu stays while kernels move"


@pytest.mark.parametrize("name", STEPS)
def test_the_pin_is_closed_whatever_happens(name: str) -> None:
    (block,) = [one for one in tasks(read("gpu_kernel", name)) if "block" in one
                and any("baremetal.nvidia.package_set" in step for step in one["block"])]
    assert [one for one in block["always"] if one.get("ansible.builtin.include_tasks") == "pin.yml"]


def test_package_lists_are_fetched_by_one_task_and_its_reason_is_told() -> None:
    fetch, plan = read("gpu_preflight", "lists")
    assert fetch["baremetal.nvidia.package_set"]["refresh"] is True and fetch["failed_when"] is False
    assert "'apt', 'dnf', 'zypper'" in fetch["when"]
    assert fetch["register"] in plan["baremetal.nvidia.gpu_plan"]["refresh_error"]


@pytest.mark.parametrize("role", ["gpu_kernel", "gpu_preflight"])
def test_no_package_manager_is_named(role: str) -> None:
    modules = ("ansible.builtin.apt", "ansible.builtin.dnf", "ansible.builtin.package", "community.general.zypper")
    found = [path.stem for path in (ROOT / f"roles/{role}/tasks").glob("*.yml") for task in tasks(read(role, path.stem))
             if any(module in task for module in modules)]
    assert found == []


def test_a_kernel_has_its_menu_entry_before_the_host_is_drained_and_the_trial_is_armed() -> None:
    """Cut off between packages and menu, the next run finds a whole kernel that no menu knows."""
    steps = list(tasks(read("gpu_kernel", "trial")))
    names = ("baremetal.nvidia.boot_default", "ansible.builtin.include_tasks", "baremetal.nvidia.boot_once")
    entry, drain, armed = (next(n for n, one in enumerate(steps) if name in one) for name in names)
    assert entry < drain < armed
    asked = steps[entry]["baremetal.nvidia.boot_default"]
    assert "former" in asked["release"], "the default stays"
    assert asked["entries"] == ["{{ __gpu_kernel_former }}", "{{ __gpu_kernel_tried }}"]
    assert steps[drain]["ansible.builtin.include_tasks"] == "{{ gpu_drain_tasks }}"
