# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner's questions as filters and tests: the same answers as a host gets, and clear errors."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleError
from ansible_collections.baremetal.nvidia.plugins.filter import (
    gpu_ask,
    gpu_cuda_max,
    gpu_driver_for,
    gpu_frameworks_ok,
)
from ansible_collections.baremetal.nvidia.plugins.test import gpu_driver_supported_on, gpu_supported_by

ROOT = pathlib.Path(__file__).resolve().parents[3]
driver_for = gpu_driver_for.FilterModule().filters()["gpu_driver_for"]
cuda_max = gpu_cuda_max.FilterModule().filters()["gpu_cuda_max"]
frameworks_ok = gpu_frameworks_ok.FilterModule().filters()["gpu_frameworks_ok"]
supported_on = gpu_driver_supported_on.TestModule().tests()["gpu_driver_supported_on"]
supported_by = gpu_supported_by.TestModule().tests()["gpu_supported_by"]
ask = gpu_ask.FilterModule().filters()["gpu_ask"]


def test_a_driver_for_these_gpus() -> None:
    answer = driver_for("10de:1eb8", "debian 12")
    assert (answer["branch"], answer["flavour"], answer["blocked"]) == ("535", "proprietary", [])
    assert answer["because"]


@pytest.mark.parametrize("name", ["driver_branch", "gpu_driver_branch"])
def test_policy_can_be_asked_with_and_without_prefix(name: str) -> None:
    answer = driver_for("10de:1db5", "ubuntu 24.04", **{name: "595"})
    assert answer["branch"] == "580" and "Volta" in " ".join(answer["blocked"])


def test_names_can_be_asked() -> None:
    assert driver_for("T4", "debian 12") == driver_for("10de:1eb8", "debian 12")
    assert driver_for(["T4", "10de:1eb8"], "debian 12")["branch"] == "535"
    assert driver_for("H100", "ubuntu 24.04")["blocked"] == []


def test_a_whole_question() -> None:
    found = ask({"gpu": "T4", "os": "debian 12", "cuda": "12.2"})
    assert found["possible"] and found["driver"]["branch"] == "535" and found["kernels"]


@pytest.mark.parametrize(
    ("gpu", "driver", "supported"),
    [
        ("10de:1db5", "580.178.04", True),
        ("V100", "595.91.07", False),
        ("H100", "470.256.02", False),
        ("T4", "999.1.1", False),
    ],
)
def test_a_driver_for_a_gpu(gpu: str, driver: str, supported: bool) -> None:
    assert supported_by(gpu, driver) is supported


def test_facts_of_a_host_can_be_asked() -> None:
    facts = {"os": {"id": "debian", "version": "12", "arch": "x86_64"}, "gpus": [{"id": "10de:1eb8"}]}
    assert driver_for(facts)["branch"] == "535"


def test_cuda_of_a_driver() -> None:
    assert cuda_max("580.178.04") == "13.0"
    assert cuda_max("100.1") is None


def test_frameworks_of_a_driver() -> None:
    answer = frameworks_ok("580.178.04", {"pytorch": "2.7"})
    assert answer["pytorch"]["ok"] is True and answer["pytorch"]["wheel_index"].startswith("cu")
    old = frameworks_ok("470.256.02", {"pytorch": "2.9"})
    assert old["pytorch"]["ok"] is False and old["pytorch"]["min_driver"] == "525.60.13"
    assert frameworks_ok("580.178.04", {"pytorch": "99"})["pytorch"]["ok"] is None


@pytest.mark.parametrize(
    ("kernel", "flavour", "supported"),
    [
        ("6.12.117+deb13-amd64", "proprietary", True),
        ("6.12.117+deb13-amd64", "open", False),  # nv-pci.c: pci_resize_resource
        ("7.2.12+deb14-amd64", "proprietary", False),
        ("no kernel", "proprietary", False),  # unknown is not supported
    ],
)
def test_a_driver_on_a_kernel(kernel: str, flavour: str, supported: bool) -> None:
    assert supported_on("550.163.01", kernel, "debian 13", flavour, source="distro") is supported


@pytest.mark.parametrize(
    ("question", "arguments", "more", "says"),
    [
        (driver_for, ["8086:1234", "debian 12"], {}, "8086:1234"),
        (driver_for, [[], "debian 12"], {}, "PCI id"),
        (driver_for, ["10de:1eb8"], {}, "system is needed"),
        (driver_for, ["10de:1eb8", "what ever"], {}, "what ever"),
        (driver_for, ["10de:1eb8", "debian 12"], {"driver_brnch": "580"}, "gpu_driver_branch"),
        (driver_for, ["10de:1eb8", "debian 12"], {"driver_version": 580.1}, "quote"),
        (driver_for, ["H1000", "debian 12"], {}, "the nearest are H100"),
        (driver_for, ["RTX", "debian 12"], {}, "different answers"),
        (driver_for, [["T4", 4], "debian 12"], {}, "nor facts of a host"),
        (ask, ["H100"], {}, "mapping"),
        (ask, [{"gpu": "T4", "os": "debian 12", "cuda": 12.2}], {}, "gpu_cuda"),
        (ask, [], {}, "argument"),
        (supported_by, ["RTX 6000", 580.1], {}, "no driver version"),
        (supported_by, [["T4"], "580.178.04"], {}, "neither a PCI id"),
        (supported_by, ["RTX", "535.261.03"], {}, "different answers"),
        (cuda_max, [580.1], {}, "quote it"),
        (frameworks_ok, ["580.178.04", "pytorch"], {}, "mapping"),
        (supported_on, ["1.2", "6.1", "debian 12", "closed"], {}, "proprietary"),
        (supported_on, ["1.2", "6.1", "debian 12"], {"source": "mine"}, "distro"),
        (supported_on, ["1.2", "6.1"], {}, "system"),
    ],
)
def test_a_question_that_cannot_be_meant_is_answered_with_what_is_allowed(
    question: Any, arguments: list[Any], more: dict[str, Any], says: str
) -> None:
    with pytest.raises(AnsibleError) as caught:
        question(*arguments, **more)
    assert says in str(caught.value)


def test_ansible_finds_them_by_their_full_names() -> None:
    template = (
        "{{ [('10de:1eb8' | baremetal.nvidia.gpu_driver_for('debian 12')).branch, "
        "'580.178.04' | baremetal.nvidia.gpu_cuda_max, "
        "('580.178.04' | baremetal.nvidia.gpu_frameworks_ok({'pytorch': '2.7'})).pytorch.ok, "
        "'550.163.01' is baremetal.nvidia.gpu_driver_supported_on('7.2.12+deb14-amd64', 'debian 13'), "
        "({'gpu': 'T4', 'os': 'debian 12'} | baremetal.nvidia.gpu_ask).possible, "
        "'V100' is baremetal.nvidia.gpu_supported_by('595.91.07')] | to_json }}"
    )
    command = [str(pathlib.Path(sys.executable).with_name("ansible")), "localhost", "-m", "ansible.builtin.debug", "-a"]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    command.append(json.dumps({"msg": template}))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '["535", "13.0", true, false, true, false]' in done.stdout.replace('\\"', '"')


@pytest.mark.parametrize(
    "path", [*ROOT.glob("plugins/filter/*.py"), *ROOT.glob("plugins/test/*.py")], ids=lambda path: path.stem
)
def test_each_has_its_documentation_beside_it(path: pathlib.Path) -> None:
    document = yaml.safe_load(path.with_suffix(".yml").read_text(encoding="utf-8"))
    assert document["DOCUMENTATION"]["name"] == path.stem and document["EXAMPLES"] and document["RETURN"]
