# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans in words: folded, wrapped, coloured only when asked, and the same as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import describe, fleet, hostnames, table


def plan(verdict: str = "ok", **more: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "decisions": {"driver": {"version": "535.309.01", "flavour": "proprietary", "owner": "host"}},
        "changes": [],
        "pending": [],
        "findings": [],
        "subject": {
            "gpus": "4 x Tesla T4",
            "os": "debian 12",
            "kernel": "6.1.0-57-amd64",
            "driver": "535.309.01 proprietary",
        },
        **more,
    }


INSTALL = {
    "role": "gpu_driver",
    "action": "install",
    "target": "nvidia-kernel-dkms",
    "before": None,
    "after": "535.309.01-0+deb12u1",
    "disruption": "none",
}
REBOOT = {
    "role": "gpu_driver",
    "action": "reboot",
    "target": "host",
    "before": "nouveau",
    "after": "nvidia",
    "disruption": "reboot",
    "needs": "gpu_reboot_allowed",
}
ERROR = {
    "rule": "DRV003",
    "severity": "error",
    "subject": "10de:1db5 (Tesla V100)",
    "summary": "R595 does not support Volta; R580 is the last branch",
    "remedy": 'set gpu_driver_branch: "580"',
}
LONG = {"rule": "KRN004", "severity": "warning", "subject": "kernel", "summary": "word " * 60, "remedy": "wait " * 40}


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["gpu-a01", "gpu-a02", "gpu-a03"], "gpu-a[01-03]"),
        (["gpu-2", "gpu-10", "gpu-1"], "gpu-[1-2], gpu-10"),
        (["a1.dc1", "a2.dc1", "a4.dc1"], "a[1-2,4].dc1"),
        (["login", "gpu7"], "gpu7, login"),
        (["x9", "x10"], "x9, x10"),
        (["solo"], "solo"),
        (["n01", "n01"], "n01"),
        (["10.0.0.1"], "10.0.0.1"),
    ],
)
def test_host_names_fold(names: list[str], folded: str) -> None:
    assert hostnames.fold(names) == folded


def test_hosts_of_one_shape_share_a_row() -> None:
    plans = {f"g{number:02}": plan() for number in range(1, 17)} | {"g17": plan("change", changes=[INSTALL])}
    found = fleet.shapes(plans)
    assert [len(shape.hosts) for shape in found] == [1, 16], "those that change come first"
    text = table.render(plans)
    assert "g[01-16] (16)" in text and text.count("Tesla T4") == 2


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    plans = {
        "a-host-with-a-very-long-name.some.where.example.org": plan("blocked", findings=[ERROR, LONG]),
        "g2": plan("change", changes=[INSTALL], pending=[REBOOT]),
    }
    text = table.render(plans, ["lost1"], width)
    assert max(map(len, text.splitlines())) <= width
    assert "R580 is the last branch" in " ".join(text.split()), "nothing is cut off"


def test_everything_a_person_needs_is_in_the_table() -> None:
    text = table.render({"g1": plan("change", changes=[INSTALL], pending=[REBOOT], findings=[ERROR])}, ["g9"], 200)
    for word in (
        "g1",
        "4 x Tesla T4",
        "debian 12",
        "6.1.0-57-amd64",
        "535.309.01",
        "nvidia-kernel-dkms: absent → 535.309.01-0+deb12u1",
        "waits for gpu_reboot_allowed: true",
        "DRV003",
        'set gpu_driver_branch: "580"',
        "g9",
        "not read",
        "[reboot]",
    ):
        assert word in text, word


def test_what_the_plan_wants_stands_beside_what_is_there() -> None:
    bare = plan("change", changes=[INSTALL], subject={"driver": None})
    assert "none → 535.309.01 proprietary" in table.render({"g1": bare}, width=200)
    predicted = plan(decisions={"driver": {"version": "580.1", "flavour": "open", "predicted": True}})
    assert "580.1 open (predicted)" in table.render({"g1": predicted}, width=200)
    other = plan(decisions={"driver": {"version": "580.1", "owner": "operator"}})
    assert "→" not in table.render({"g1": other}, width=200)
    assert "unknown" in table.render({"g1": {"verdict": "ok"}}), "a bare plan is no error"


def test_the_drivers_cuda_and_the_compilers_are_told_apart_where_toolkits_are_asked_for() -> None:
    toolkit = {"versions": ["12.8", "13.0"], "default": "12.8", "nvcc": "12.8", "compat": None}
    asked = plan(decisions={"driver": {}, "cuda": {"native_max": "13.0", "toolkit": toolkit}})
    said = table.render({"a": asked}, width=200)
    assert "the driver runs CUDA up to 13.0; nvcc is of CUDA 12.8; toolkits 12.8, 13.0, 12.8 by default" in said
    assert describe.cuda_line(plan(decisions={"cuda": {"native_max": "13.0", "toolkit": None}})) is None
    assert describe.cuda_line(plan()) is None


def test_colours_only_from_a_painter() -> None:
    plans = {"g1": plan("blocked", findings=[ERROR])}
    assert "\x1b" not in table.render(plans)
    painted = table.render(plans, paint=lambda text, style: f"<{style}>{text}</>")
    assert "<blocked>g1" in painted and "<error>error" in painted and "<head>HOST" in painted


def test_many_changes_of_a_kind_share_a_line() -> None:
    installs = [{**INSTALL, "target": f"package-{number}", "disruption": "daemon_reload"} for number in range(3)]
    lines = describe.change_lines([*installs, {**INSTALL, "action": "upgrade", "before": "1", "after": "2"}])
    assert lines == [
        "gpu_driver install 3 [daemon_reload]: package-0 535.309.01-0+deb12u1, package-1 535.309.01-0+deb12u1, "
        "package-2 535.309.01-0+deb12u1",
        "gpu_driver upgrade nvidia-kernel-dkms: 1 → 2",
    ]
    waiting = describe.change_lines([{**REBOOT, "target": name} for name in "abc"])
    assert waiting == [
        "gpu_driver reboot 3 [reboot]: a nouveau → nvidia, b nouveau → nvidia, c nouveau → nvidia "
        "— waits for gpu_reboot_allowed: true"
    ]
    assert describe.change_lines(installs[:2]) == [describe.change_line(item) for item in installs[:2]]


def test_waived_findings_are_shown_and_not_counted() -> None:
    waived = plan(findings=[{**ERROR, "waived": {"reason": "known", "until": "2027-01-31"}}])
    assert "waived" in table.render({"g1": waived})
    assert fleet.summary({"g1": waived})["findings"]["error"] == 0
    assert "error" not in describe.headline(waived)


def test_summary_is_small_and_says_who_needs_someone() -> None:
    plans = {f"g{number}": plan("blocked", findings=[ERROR]) for number in range(200)}
    plans["p"] = plan(pending=[REBOOT])
    said = fleet.summary(plans, ["lost"], ["bad"])
    assert said["verdicts"] == {"blocked": 200, "change": 0, "ok": 1, "unread": 1}
    assert said["hosts"] == 202 and said["findings"]["error"] == 200 and said["needs"] == ["gpu_reboot_allowed"]
    assert (
        len(said["blocked_hosts"]) == fleet.NAMES and said["pending_hosts"] == ["p"] and said["failed_hosts"] == ["bad"]
    )
    assert len(json.dumps(said)) < 2000


def test_json_has_every_plan_and_is_the_same_for_the_same_plans() -> None:
    plans = {"g2": plan(), "g1": plan("blocked", findings=[ERROR])}
    text = fleet.as_json(plans, ["lost"], [], {"run_id": "r"})
    content = json.loads(text)
    assert list(content["hosts"]) == ["g1", "g2"] and content["unread"] == ["lost"] and content["run_id"] == "r"
    assert content["hosts"]["g1"]["findings"] == [ERROR]
    assert fleet.as_json(dict(reversed(plans.items())), ["lost"], [], {"run_id": "r"}) == text


def test_headline_and_group() -> None:
    assert describe.headline(plan()) == "ok: nothing to do"
    assert describe.headline(plan(pending=[REBOOT])) == "ok: nothing to do, 1 pending (gpu_reboot_allowed)"
    assert describe.group(plan(), check_mode=False) == "gpu_ok"
    assert describe.group(plan(pending=[REBOOT]), check_mode=False) == "gpu_pending"
    assert describe.group(plan("blocked"), check_mode=True) == "gpu_blocked"
    assert describe.group(plan("change"), check_mode=False) == "gpu_change"
    assert describe.group(plan("change"), check_mode=True) == "gpu_planned"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "absent"),
        ("", "absent"),
        (True, "yes"),
        (False, "no"),
        (["a", "b"], "a, b"),
        ({"a": 1}, "a 1"),
        ([], "absent"),
        ("x" * 80, "x" * 59 + "…"),
        ("two\nlines", "two lines"),
        ("0123abcd" + "0" * 56, "0123abcd…"),
    ],
)
def test_values_are_short(value: Any, text: str) -> None:
    assert describe.short(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (600, "10 min"), (7200, "2 h"), (90000, "25 h"), (864000, "10 d")]
)
def test_durations(seconds: int, text: str) -> None:
    assert describe.duration(seconds) == text


class Matrix:
    def product(self, pci: str, subsystem: str | None = None) -> Any:
        return type("Product", (), {"name": "Tesla T4"})() if pci == "10de:1eb8" else None


def test_subject_from_facts() -> None:
    facts = {
        "os": {"id": "debian", "version": "12"},
        "gpus": [{"id": "10de:1eb8"}, {"id": "10de:1eb8"}, {"id": "10de:ffff"}],
        "kernel": {
            "running": "6.1.0-50-amd64",
            "default_boot": "6.1.0-57-amd64",
            "installed": [
                {"release": "6.1.0-50-amd64"},
                {"release": "6.1.0-57-amd64", "nvidia": {"version": "535.1", "flavour": "open"}},
            ],
        },
        "driver": {"loaded": None},
        "containers": {"containerd": {"version": "1.6.20"}},
    }
    assert describe.subject(facts, Matrix()) == {
        "gpus": "1 x 10de:ffff, 2 x Tesla T4",
        "os": "debian 12",
        "kernel": "6.1.0-50-amd64, next 6.1.0-57-amd64",
        "driver": "535.1 open",
        "containerd": "1.6.20",
    }
    assert describe.subject({"gpus": []})["gpus"] == "none"
    assert describe.subject({}) == dict.fromkeys(("gpus", "os", "kernel", "driver", "containerd"))
    assert (
        describe.subject({"gpus": "?", "os": None, "kernel": 5, "driver": [], "containers": {"containerd": None}})[
            "gpus"
        ]
        is None
    )
