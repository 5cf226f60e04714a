# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of gpu_driver promise: locks are waited for, services left alone, reboots only where they may be."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jinja2
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles/gpu_driver"

DRIVER: dict[str, Any] = {
    "owner": "host", "version": "535.261.03", "flavour": "proprietary", "source_package": "nvidia-kernel-dkms",
    "packages": {"nvidia-kernel-dkms": "535.261.03-1", "nvidia-modprobe": None}, "remove": [],
    "hold": ["nvidia-kernel-dkms"], "prerequisites": ["dkms", "make", "libelf-dev", "gcc-12"],
    "fabricmanager": {"package": "nvidia-fabricmanager-535", "version": "535.261.03-1", "service": "x.service"},
    "fabric": {"nvidia-fabricmanager-535": "535.261.03-1"}, "dkms": {"name": "nvidia-current", "version": "535.261.03"},
    "kernels": ["6.1.0-50-amd64"], "build_mb": 2500,
}  # fmt: skip
FACTS: dict[str, Any] = {
    "os": {"init": "systemd", "virt": "none"},
    "kernel": {"running": "6.1.0-50-amd64", "installed": [{"release": "6.1.0-50-amd64", "compiler": "gcc-12"}]},
    "driver": {"loaded": None, "nouveau": {"loaded": False}, "processes": 0},
}


def tasks(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield entry
        for part in ("block", "rescue", "always"):
            yield from tasks(entry.get(part, []))


def all_tasks() -> list[dict[str, Any]]:
    return [task for path in sorted((ROLE / "tasks").glob("*.yml")) for task in tasks(yaml.safe_load(path.read_text()))]


def test_every_task_with_packages_waits_for_the_lock_and_looks_at_gpu_containers() -> None:
    found = [task["baremetal.nvidia.package_set"] for task in all_tasks() if "baremetal.nvidia.package_set" in task]
    assert len(found) >= 5
    for task in found:
        assert task["lock_timeout"] == "{{ gpu_lock_timeout }}", task
        allowed = "{{ gpu_daemon_reload_allowed | default(false) | bool }}"
        assert task.get("refresh") or task.get("fetch") or task["reload_allowed"] == allowed
    assert not [task for task in all_tasks() if any(f"ansible.builtin.{one}" in task for one in ("apt", "dnf", "yum"))]
    assert yaml.safe_load((ROLE / "defaults/main.yml").read_text())["gpu_lock_timeout"] >= 300


def test_no_task_accepts_what_is_not_signed() -> None:
    text = "".join(path.read_text() for path in ROLE.rglob("*.yml"))
    for word in ("allow_unauthenticated", "trusted=yes", "--allow-unauthenticated", "allow-insecure"):
        assert word not in text


def test_the_reboot_waits_long_and_needs_the_module() -> None:
    (task,) = [task for task in all_tasks() if "ansible.builtin.reboot" in task]
    assert task["ansible.builtin.reboot"]["reboot_timeout"] == "{{ gpu_driver_reboot_timeout }}"
    assert task["ansible.builtin.reboot"]["test_command"] == "test -e /proc/driver/nvidia/version"
    assert yaml.safe_load((ROLE / "defaults/main.yml").read_text())["gpu_driver_reboot_timeout"] >= 1800


def test_only_the_restart_itself_is_told_as_a_host_that_did_not_come_back() -> None:
    entries = yaml.safe_load((ROLE / "tasks/reboot.yml").read_text())
    (block,) = [task for task in tasks(entries) if "rescue" in task]
    assert "is not back" in block["rescue"][0]["ansible.builtin.fail"]["msg"]
    assert ["ansible.builtin.reboot" in task for task in block["block"]] == [True]


@pytest.mark.parametrize(("known", "busy"), [({"processes": 0}, False), ({"processes": 2}, True), ({}, True)])
@pytest.mark.parametrize("path", ["gpu_driver/tasks/drain.yml", "gpu_kernel/tasks/trial.yml"])
def test_a_host_of_which_the_processes_are_not_known_counts_as_busy(
        path: str, known: dict[str, int], busy: bool) -> None:
    that = [task["ansible.builtin.assert"]["that"]
            for task in tasks(yaml.safe_load((ROOT / "roles" / path).read_text()))
            if "processes" in str(task.get("ansible.builtin.assert", {}).get("that"))]
    (look,) = [one for each in that for one in ([each] if isinstance(each, str) else each) if "processes" in one]
    rendered = jinja2.Environment()
    rendered.filters["bool"] = bool
    facts = {"driver": known}
    stays = rendered.compile_expression(look)(__gpu_driver_facts=facts, ansible_facts={"gpu_facts": facts})
    assert stays is not busy


NO_DEVICE = "modprobe: ERROR: could not insert 'nvidia': No such device"


@pytest.mark.parametrize(("answer", "gpus", "changed", "stops"), [
    ({"rc": 0, "stderr": ""}, [{"driver": None}], True, False),
    ({"rc": 0, "stdout": "skipped, since /proc/driver/nvidia/version exists"}, [{"driver": None}], False, False),
    ({"rc": 1, "stderr": "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"}, [{}], False, True),
    ({"rc": 1, "stderr": NO_DEVICE}, [{"driver": None}], False, True),
    ({"rc": 1, "stderr": NO_DEVICE}, [{}], False, False),  # not the kernel's own device: nobody knows its driver
    ({"rc": 1, "stderr": NO_DEVICE}, [], False, False),
    ({"rc": 1, "stderr": "modprobe: FATAL: Module nvidia not found"}, [], False, True),
    ({"rc": 2, "msg": "[Errno 2] No such file or directory: b'modprobe'"}, [{}], False, True),
])
def test_a_module_that_does_not_load_is_no_change_and_stops_the_run(
        answer: dict[str, Any], gpus: list[Any], changed: bool, stops: bool) -> None:
    load, stop = yaml.safe_load((ROLE / "tasks/load.yml").read_text())
    told = {"__gpu_driver_modprobe": answer, "__gpu_driver_facts": {"gpus": gpus}}
    evaluate = jinja2.Environment().compile_expression
    assert evaluate(load["changed_when"])(**told) is changed and load["failed_when"] is False
    assert all(evaluate(one)(**told) for one in stop["when"]) is stops
    said = jinja2.Environment().from_string(stop["ansible.builtin.fail"]["msg"]).render(**told)
    assert not stops or (answer.get("stderr") or answer["msg"]) in said


@pytest.mark.parametrize(("told", "reads"), [
    ({}, False), ({"__gpu_driver_modprobe": {"rc": 1}}, False), ({"__gpu_driver_modprobe": {"rc": 0}}, True)])
def test_the_host_is_read_anew_once_its_module_was_loaded_here(told: dict[str, Any], reads: bool) -> None:
    (top,) = yaml.safe_load((ROLE / "tasks/apply.yml").read_text())
    names = [task["name"] for task in top["block"]]
    (look,) = [task for task in top["block"] if task["name"].startswith("Read what the driver tells")]
    assert look["ansible.builtin.include_role"]["tasks_from"] == "refresh.yml"
    assert names.index("Set what holds for the running driver") < names.index(look["name"])
    assert bool(jinja2.Environment().compile_expression(look["when"])(**told)) is reads


def test_nothing_before_the_proof_changes_a_driver_package() -> None:
    (top,) = yaml.safe_load((ROLE / "tasks/apply.yml").read_text())
    order = [
        task["ansible.builtin.include_tasks"]["file"]
        for task in top["block"]
        if "ansible.builtin.include_tasks" in task
    ]
    assert order.index("prove.yml") < order.index("packages.yml") < order.index("settle.yml")
    assert order.index("open.yml") < order.index("runfile.yml") < order.index("packages.yml")
    assert order[: order.index("prove.yml")] == ["repair.yml", "sources.yml", "files.yml"]


def test_builds_that_cannot_be_kept_or_handed_over_are_made_by_each_host(tmp_path: pathlib.Path) -> None:
    """The very tasks that keep and hand over, for two hosts, with a controller on which nothing can be written."""
    shape, share = "0" * 16, str(tmp_path / "file" / "share")
    (tmp_path / "file").write_text("in the way")
    every = yaml.safe_load((ROLE / "tasks/build_once.yml").read_text())
    steps = every[[task["name"] for task in every].index("Make room for builds on the controller"):]
    play = {"hosts": "a,b", "connection": "local", "gather_facts": False, "vars": {
        "__gpu_driver_share": share, "__gpu_driver_builders": {"a": [shape]}, "__gpu_driver_wanted": [shape],
        "__gpu_driver_stored": [f"{share}/nvidia-1_k_{shape}_{'1' * 64}.tar.gz"],
        "__gpu_driver_proof": {"kernels": [{"tarball": str(tmp_path / "none.tar.gz")}]},
        "gpu_driver_cache_dir": str(tmp_path / "cache")},
        "tasks": [*steps, {"name": "Go on", "ansible.builtin.debug": {"msg": "GOES ON {{ inventory_hostname }}"}}]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    done = subprocess.run([str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "a,b,",
                           str(tmp_path / "play.yml"), "-e", f"ansible_python_interpreter={sys.executable}"],
                          capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Each host builds for itself" in done.stdout and "What a has built could not be kept" in done.stdout
    assert "No build could be handed to b" in done.stdout
    assert "GOES ON a" in done.stdout and "GOES ON b" in done.stdout


def test_holds_are_set_again_and_ramdisks_freed_also_after_a_failure() -> None:
    (top,) = yaml.safe_load((ROLE / "tasks/packages.yml").read_text())
    assert {"ramdisks_free.yml"} <= {task.get("ansible.builtin.include_tasks") for task in top["always"]}
    (change,) = [one for task in top["block"] if (one := task.get("baremetal.nvidia.package_set"))]
    assert change["set"] == "driver" and change["hold"] == "{{ __gpu_driver_holds }}", "it closes what it lifts"


# rendered

EXPRESSIONS = ("packages", "holds", "source", "prerequisites", "reboot", "no_reboot", "apply", "loadable")
REBOOT = [{"role": "gpu_driver", "action": "install", "target": "x", "disruption": "reboot"}]
#: host -> what differs there from DRIVER, FACTS and the role's defaults
HOSTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "reboot_allowed": {"changes": REBOOT, "vars": {"gpu_reboot_allowed": True}},
    "reboot_not_allowed": {"changes": REBOOT, "vars": {"gpu_reboot_allowed": False}},
    "reboot_local": {"changes": REBOOT, "vars": {"gpu_reboot_allowed": True, "ansible_connection": "local"}},
    "allowed_without_need": {"vars": {"gpu_reboot_allowed": True}},
    "forced": {"vars": {"gpu_force_apply": True}},
    "forced_without_driver": {"vars": {"gpu_force_apply": True}, "driver": {"version": None}},
    "container": {"facts": {"os": {"init": "systemd", "virt": "podman"}}},
    "nouveau": {"facts": {"driver": {"loaded": None, "nouveau": {"loaded": True}}}},
    "loaded": {"facts": {"driver": {"loaded": {"version": "535.261.03"}, "nouveau": {"loaded": False}}}},
    "other_kernel": {"facts": {"kernel": {"running": "6.18.0", "installed": []}}},
}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The role's variables as Ansible sees them, on made-up hosts that are never contacted."""
    where = tmp_path_factory.mktemp("role")
    hosts = {}
    for name, given in HOSTS.items():
        plan = {"run_id": "r1", "changes": given.get("changes", []), "pending": [],
                "decisions": {"driver": {**DRIVER, **given.get("driver", {})}}}  # fmt: skip
        hosts[name] = {"made_plan": plan, "made_facts": {**FACTS, **given.get("facts", {})},
                       **yaml.safe_load((ROLE / "defaults/main.yml").read_text()), **given.get("vars", {})}  # fmt: skip
    wanted = ", ".join(f"'{name}': __gpu_driver_{name}" for name in EXPRESSIONS)
    answer = "{{ 'RESULT ' ~ ({'host': inventory_hostname, " + wanted + "} | to_json | b64encode) }}"
    steps = [
        {
            "ansible.builtin.set_fact": {
                "gpu_plan": "{{ made_plan }}",
                "gpu_facts": "{{ made_facts }}",
                "cacheable": True,
            }
        },
        {"ansible.builtin.debug": {"msg": answer}},
    ]
    play = {"hosts": "all", "gather_facts": False, "vars_files": [str(ROLE / "vars/main.yml")], "tasks": steps}
    (where / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    (where / "play.yml").write_text(json.dumps([play]))
    environment = {
        **os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections")
    }  # fmt: skip
    program = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run([program, "-i", str(where / "hosts.yml"), str(where / "play.yml")],
                          capture_output=True, text=True, env=environment, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(base64.b64decode(text)) for text in re.findall(r"RESULT ([A-Za-z0-9+/=]+)", done.stdout)]
    assert len(rows) == len(HOSTS)
    return {row["host"]: row for row in rows}


def test_packages_are_named_at_exact_versions(rendered: dict[str, dict[str, Any]]) -> None:
    plain = rendered["plain"]
    assert plain["packages"] == {"nvidia-fabricmanager-535": "535.261.03-1", "nvidia-kernel-dkms": "535.261.03-1",
                                 "nvidia-modprobe": None}
    assert plain["holds"] == [re.escape("nvidia-kernel-dkms")]
    assert plain["source"] == {"nvidia-kernel-dkms": "535.261.03-1"}
    assert plain["prerequisites"] == ["dkms", "make", "libelf-dev", "gcc-12"]


@pytest.mark.parametrize(
    ("host", "needed", "refused"),
    [
        ("reboot_allowed", True, ""),
        ("reboot_not_allowed", True, "gpu_reboot_allowed is false"),
        ("reboot_local", True, "the connection is local"),
        ("allowed_without_need", False, ""),
    ],
)
def test_a_reboot_only_when_needed_allowed_and_remote(
    rendered: dict[str, dict[str, Any]], host: str, needed: bool, refused: str
) -> None:
    row = rendered[host]
    assert (row["reboot"], row["no_reboot"], row["apply"]) == (needed, refused, needed)


def test_force_applies_only_a_driver_that_is_the_hosts(rendered: dict[str, dict[str, Any]]) -> None:
    assert rendered["forced"]["apply"] is True
    assert rendered["forced_without_driver"]["apply"] is False
    assert rendered["plain"]["apply"] is False


def test_the_module_is_loaded_only_where_nothing_stands_in_its_way(rendered: dict[str, dict[str, Any]]) -> None:
    assert rendered["plain"]["loadable"] is True
    for host in ("container", "nouveau", "loaded", "other_kernel", "reboot_allowed"):
        assert rendered[host]["loadable"] is False, host
