# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input and bad days with the real planner: one preflight over stored facts, one host a case.

What happens on a host (locks, archives, cut-off builds) is tested in the lab, by the roles' scenarios and the drills.
"""

from __future__ import annotations

import copy
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FACTS = json.loads((ROOT / "tests/flow/bare-debian12.json").read_text(encoding="utf-8"))


def facts(**changes: Any) -> dict[str, Any]:
    """Return the facts of the recorded Debian 12 host, changed at dotted paths (written with two underscores)."""
    result = copy.deepcopy(FACTS)
    for path, value in changes.items():
        place = result
        *way, last = path.split("__")
        for step in way:
            place = place[step]
        place[last] = value
    return result


def gpu(*ids: str) -> list[dict[str, Any]]:
    return [{**FACTS["gpus"][0], "address": f"0000:{number:02x}:00.0", "id": one} for number, one in enumerate(ids, 1)]


RUNNING = {"version": "535.309.01", "flavour": "proprietary"}

#: host: (facts, policy, verdict, words of the findings); verdict failed = refused before a plan was made
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, list[str]]] = {
    "unknown-branch": (facts(), {"gpu_driver_branch": "999"}, "blocked", ["999"]),
    "unknown-version": (facts(), {"gpu_driver_version": "535.99.99"}, "blocked", ["535.99.99"]),
    "not-a-branch": (facts(), {"gpu_driver_branch": "newest"}, "failed", ["gpu_driver_branch", "newest", "580"]),
    "float": (facts(), {"gpu_driver_version": 535.1}, "failed", ["gpu_driver_version", "535.1", "quote"]),
    "misspelt": (facts(), {"gpu_driver_barnch": "535"}, "failed", ["gpu_driver_barnch", "gpu_driver_branch"]),
    "bad-choice": (facts(), {"gpu_kernel_policy": "thaw"}, "failed", ["gpu_kernel_policy", "thaw", "hold", "gated"]),
    "waiver-without-date": (
        facts(),
        {"gpu_findings_waived": [{"rule": "DRV003", "host": "*", "reason": "x"}]},
        "failed",
        ["gpu_findings_waived", "until"],
    ),
    "operator-owns": (
        facts(driver__loaded=RUNNING, driver__library="535.309.01", driver__origin="packages"),
        {"gpu_driver_owner": "operator"},
        "blocked",
        ["operator"],
    ),
    "mixed": (facts(gpus=gpu("10de:1db5", "10de:2901")), {}, "blocked", ["V100"]),
    "el8": (
        facts(
            os={
                "id": "rocky",
                "version": "8.10",
                "family": "redhat",
                "arch": "x86_64",
                "init": "systemd",
                "virt": "none",
                "python": "3.6.8",
            }
        ),
        {},
        "blocked",
        ["Python 3.6", "ansible_python_interpreter: /usr/bin/python3.11"],
    ),
    "no-gpu": (facts(gpus=[], nvswitches=[]), {}, "ok", []),
}


@pytest.fixture(name="done", scope="module")
def _done(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    place = tmp_path_factory.mktemp("bad-days")
    (place / "facts").mkdir()
    for host, (content, _policy, _verdict, _words) in CASES.items():
        (place / "facts" / f"{host}.json").write_text(json.dumps(content))
    groups = {f"gpu_{name}": {} for name in ("ok", "change", "blocked", "pending", "refresh", "planned")}
    hosts = {host: case[1] for host, case in CASES.items()}
    (place / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "children": groups}}))
    report = place / "plan.json"
    command = [
        str(pathlib.Path(sys.executable).with_name("ansible-playbook")),
        str(ROOT / "playbooks" / "preflight.yml"),
        "-i",
        str(place / "hosts.json"),
        "-e",
        f"gpu_facts_file={place / 'facts'}",
        "-e",
        f"gpu_report={report}",
    ]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        command,
        env=environment,
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done, json.loads(report.read_text()) if report.exists() else {}


@pytest.mark.parametrize("host", CASES)
def test_each_bad_day_is_named_and_nothing_breaks(host: str, done: Any) -> None:
    process, report = done
    _facts, _policy, verdict, words = CASES[host]
    assert process.returncode == 2 and "Traceback" not in process.stdout + process.stderr
    if verdict == "failed":
        assert host in report["unread"]
        told = next(part for part in process.stdout.split("fatal: ") if part.startswith(f"[{host}]"))
    else:
        plan = report["hosts"][host]
        assert plan["verdict"] == verdict, plan["findings"]
        told = json.dumps([item for item in plan["findings"] if item["severity"] == "error"], ensure_ascii=False)
    for word in words:
        assert word in told, told


def test_a_host_without_gpu_gets_nothing_and_is_told_so_once(done: Any) -> None:
    plan = done[1]["hosts"]["no-gpu"]
    assert plan["changes"] == [] and not plan["decisions"]["driver"].get("packages")
    said = [item for item in plan["findings"] if "GPU" in item["summary"]]
    assert [item["severity"] for item in said] == ["info"], said


def test_blocked_hosts_fail_with_their_reason_and_others_do_not(done: Any) -> None:
    process, _report = done
    recap = process.stdout.split("PLAY RECAP")[1]
    failed = {line.split()[0] for line in recap.splitlines() if "failed=1" in line}
    assert failed == {host for host, case in CASES.items() if case[2] in ("blocked", "failed")}
