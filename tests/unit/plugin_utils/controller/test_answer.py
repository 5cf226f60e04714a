# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions without a host: the planner's own answers, in words too, and errors that say what is wrong."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import answer, engine, question
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import answer as words

DAY = datetime.date(2026, 11, 30)
H100: dict[str, Any] = {"gpu": "H100", "os": "ubuntu 24.04"}


def ask(**asked: Any) -> dict[str, Any]:
    return answer.answer({**H100, **asked}, today=DAY)


def test_which_driver_for_a_gpu_a_system_and_a_framework() -> None:
    found = ask(frameworks={"pytorch": "2.7"})
    assert found["possible"] and found["driver"]["version"] and found["driver"]["because"]
    assert found["cuda"]["frameworks"]["pytorch"]["ok"] is True
    assert found["question"]["policy"] == {"gpu_frameworks": {"pytorch": "2.7"}}
    assert len(found["question"]["gpus"]) > 3, "H100 means several cards, which get the same answer"
    json.dumps(found)
    text = words.render(found, 100)
    for word in ("QUESTION", found["driver"]["version"], "PYTORCH     2.7 runs: wheels cu", "KERNELS", "yes",
                 'gpu_frameworks: {pytorch: "2.7"}'):
        assert word in text, word
    assert max(map(len, text.splitlines())) <= 100


def test_the_answer_is_the_one_that_such_a_host_gets() -> None:
    planner = engine.load()
    facts = {"os": {"id": "ubuntu", "version": "24.04", "arch": "x86_64"},
             "gpus": [{"address": "0000:01:00.0", "id": "10de:2330"}]}
    plan = planner.plan("asked", facts, planner.validate({"gpu_cuda": "12.4"}), planner.matrix(()), DAY)
    found = ask(gpu="10de:2330", cuda="12.4")
    for key in answer.DRIVER:
        assert found["driver"][key] == plan["decisions"]["driver"][key]
    assert found["findings"] == plan["findings"]


def test_which_kernels_may_run() -> None:
    found = ask(os="debian 13")
    by_release = {one["release"]: one for one in found["kernels"]}
    assert by_release["6.12.117+deb13-amd64"]["answer"] == "yes"
    named = ask(os="debian 13", driver_version="550.163.01", driver_source="distro",
                kernels=["6.12.117+deb13-amd64", "7.2.12+deb13-amd64"])
    assert [one["answer"] for one in named["kernels"]] == ["yes", "no"]
    assert "does not build" in words.render(named)
    assert ask(kernel="6.8.0-149-generic")["kernels"] == [], "the kernel was named: there is nothing to list"


def test_every_system_has_kernels_to_judge() -> None:
    matrix = engine.load().matrix(())
    for row in matrix.tables["systems"]:
        found = ask(os=row.os, gpu="T4")
        releases = [one["release"] for one in found["kernels"]]
        assert releases and len(releases) == len(set(releases)) <= 16, (row.os, releases)


def test_what_must_change() -> None:
    host = {"gpu": "T4", "os": "debian 12", "kernel": "6.1.0-57-amd64", "flavour": "proprietary"}
    found = ask(**host, driver="535.261.03", cuda="13")
    assert found["driver"]["branch"] != "535"
    assert any("CUDA 13 needs driver" in reason for reason in found["driver"]["because"])
    assert {item["role"] for item in found["changes"] + found["pending"]} == {"gpu_driver"}
    assert any(item["needs"] == "gpu_reboot_allowed" for item in found["pending"])
    text = words.render(found)
    for word in ("driver 535.261.03 installed", "TO CHANGE", "waits for gpu_reboot_allowed: true"):
        assert word in " ".join(text.split()), word
    stays = ask(**host, driver="535.309.01")
    assert stays["driver"]["version"] == "535.309.01"
    assert ask()["changes"] == [], "without an installed driver there is nothing to change"


def test_what_cannot_be_is_said_with_what_can() -> None:
    found = ask(gpu="V100", driver_branch="595")
    assert not found["possible"] and found["driver"]["branch"] == "580"
    text = words.render(found)
    assert "cannot be done (see the findings); what fits is 580." in text and "CUDA  " not in text
    nothing = ask(gpu="K80")
    assert not nothing["possible"] and "none fits: see the findings" in words.render(nothing)


def test_policy_of_the_play_counts_and_the_question_comes_first() -> None:
    assert answer.answer(H100, {"gpu_driver_branch": "580"}, DAY)["driver"]["branch"] == "580"
    both = answer.answer({**H100, "driver_branch": "595"}, {"gpu_driver_branch": "580"}, DAY)
    assert both["driver"]["branch"] == "595"


def test_overlays_count() -> None:
    row = {"versions": [{"version": "595.91.07", "date": "2026-11-01", "known_bad": ["it is bad"], "source": "us",
                         "checked": "2026-11-30"}]}
    assert ask(matrix_overlay=[row])["driver"]["version"] != ask()["driver"]["version"]


def test_the_other_words_of_a_question_reach_the_planner() -> None:
    read = question.read({"gpu": ["2 x T4", "L4"], "os": "rocky 9.6", "arch": "aarch64", "secure_boot": True,
                          "driver": "580.178.04", "kernel": "5.14.0-570.el9_6.x86_64"}, engine.load().matrix(()), {})
    facts = read.facts(read.meanings[0])
    assert [one["id"] for one in facts["gpus"]] == ["10de:1eb8", "10de:1eb8", "10de:27b8"]
    assert facts["os"] == {"id": "rocky", "version": "9.6", "arch": "aarch64"}
    assert facts["secure_boot"] == {"enabled": True}
    assert facts["driver"] == {"library": "580.178.04", "loaded": {"version": "580.178.04"}}
    assert facts["kernel"]["installed"][0]["nvidia"] == {"version": "580.178.04"}
    other = read.facts(read.meanings[0], "5.14.0-611.el9_7.x86_64")
    assert other["kernel"] == dict.fromkeys(("running", "default_boot"), "5.14.0-611.el9_7.x86_64")
    assert "loaded" not in other["driver"], "on another kernel the driver is installed, and not loaded"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"gpu": "H1000"}, "gpu_ask.gpu: no GPU is called 'H1000'; the nearest are H100"),
        ({"gpu": None}, "lacks gpu"),
        ({"gpu": []}, r"gpu_ask.gpu is \[\]"),
        ({"gpu": 4}, "gpu_ask.gpu is 4"),
        ({"gpu": ["T4", None]}, "gpu_ask.gpu is None"),
        ({"gpu": "99 x T4"}, "from 1 to 16"),
        ({"gpu": "8086:1234"}, "8086:1234"),
        ({"gpu": "RTX", "os": "debian 12"}, "different answers; name one"),
        ({"gpu": ["H100", "A100", "V100"]}, "too many different cards"),
        ({"os": "ubuntu"}, "gpu_ask.os is 'ubuntu'"),
        ({"os": 24.04}, "gpu_ask.os is 24.04"),
        ({"os": "ubuntu 24"}, "known are debian 11"),
        ({"os": "windows 11"}, "known are debian 11"),
        ({"arch": "riscv"}, "allowed are x86_64, aarch64"),
        ({"arch": ["x86_64"]}, "allowed are x86_64, aarch64"),
        ({"kernel": 6.8}, "gpu_ask.kernel is 6.8"),
        ({"kernel": "linux"}, "uname -r"),
        ({"kernels": "6.8.0-149-generic"}, "a list of kernel releases"),
        ({"kernels": [6.8]}, "gpu_ask.kernels is 6.8"),
        ({"driver": 580.1}, "gpu_ask.driver is 580.1"),
        ({"driver": "580"}, "quote it"),
        ({"flavour": "closed"}, "allowed are open, proprietary"),
        ({"secure_boot": "on"}, "gpu_ask.secure_boot is 'on'"),
        ({"frmeworks": {}}, "did you mean frameworks"),
        ({"kernl": "6.8.0"}, "did you mean kernel"),
        ({"colour": "red"}, "unknown key colour"),
        ({7: "red"}, "unknown key 7"),
        ({"frameworks": {"pytorch": 2.7}}, "2.7"),
        ({"driver_branch": "58"}, "gpu_driver_branch"),
        ({"matrix_overlay": [{"branches": [{"name": "1"}]}]}, "branches"),
    ],
)
def test_a_question_that_cannot_be_meant(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(question.AskError, match=says):
        answer.answer({**H100, **asked}, today=DAY)


@pytest.mark.parametrize("given", [None, "H100", ["H100"], {}, 7])
def test_no_question(given: Any) -> None:
    with pytest.raises(question.AskError, match="gpu_ask"):
        answer.answer(given)
