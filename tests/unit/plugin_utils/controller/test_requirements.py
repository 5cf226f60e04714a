# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller must bring, and what a failing first module really says."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import requirements


@pytest.mark.parametrize("version", ["2.16.14", "2.18.0", "2.22.0", "3.0", "unknown", "1"])
def test_other_cores_are_refused_with_the_bounds(version: str) -> None:
    problem = requirements.core_problem(version)
    assert problem is not None and version in problem and "2.19" in problem and "2.22" in problem


@pytest.mark.parametrize("version", ["2.19.0", "2.19.14", "2.20.1", "2.21.0rc1"])
def test_supported_cores_pass(version: str) -> None:
    assert requirements.core_problem(version) is None


def test_bounds_are_those_of_meta_runtime() -> None:
    declared = yaml.safe_load(requirements.runtime_file().read_text(encoding="utf-8"))["requires_ansible"]
    numbers = [tuple(map(int, pair)) for pair in re.findall(r"(\d+)\.(\d+)", declared)]
    assert numbers == [requirements.CORE_MINIMUM, requirements.CORE_BELOW]


@pytest.mark.parametrize(
    "result",
    [
        {
            "msg": "ansible-core requires a minimum of Python2 version 2.7 or Python3 version 3.8. Current version: "
            "3.6.8"
        },
        {
            "msg": "MODULE FAILURE",
            "module_stderr": "  from __future__ import annotations\nSyntaxError: future feature annotations is not "
            "defined",
        },
        {"msg": "MODULE FAILURE", "module_stdout": "SyntaxError: future feature annotations is not defined"},
    ],
)
def test_an_old_python_is_named_with_both_ways_out(result: dict[str, str]) -> None:
    meaning = requirements.module_problem(result, "2.19.14")
    assert meaning is not None
    assert all(word in meaning for word in ("2.19.14", "3.9", "python3.11", "ansible_python_interpreter", "SLES 15"))
    assert "Traceback" not in meaning


def test_no_python_is_named() -> None:
    meaning = requirements.module_problem({"module_stderr": "/bin/sh: 1: /usr/bin/python3: not found"}, "2.19.14")
    assert meaning is not None and "no Python" in meaning


@pytest.mark.parametrize("result", [{"msg": "disk on fire"}, {"msg": "nvidia-smi: not found"}, {}])
def test_other_failures_speak_for_themselves(result: dict[str, str]) -> None:
    assert requirements.module_problem(result, "2.19.14") is None
