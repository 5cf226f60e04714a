# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel of another flavour is another kernel: policy gated moves a host along its own flavour alone."""
from __future__ import annotations

import copy
import pathlib
from typing import Any

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.version import KernelRelease

CASES = pathlib.Path(__file__).resolve().parents[3] / "cases/kernel_gated.yml"
OTHER = "5.15.0-206-lowlatency"
MODULES = f"linux-modules-nvidia-580-server-open-{OTHER}"


@pytest.fixture(name="facts")
def fixture_facts() -> dict[str, Any]:
    """Ubuntu on 5.15.0-201-generic: 5.15.0-203 of its flavour has a module, and a newer one of lowlatency as well."""
    facts: dict[str, Any] = copy.deepcopy(yaml.safe_load(CASES.read_text(encoding="utf-8"))[0]["facts"])
    facts["packages"]["available"][MODULES] = ["5.15.0-206.216"]
    return facts


def test_one_on_offer_comes_only_when_it_is_asked_for(plan: Any, facts: dict[str, Any]) -> None:
    facts["kernel"]["candidates"].insert(0, {
        "release": OTHER, "packages": {f"linux-image-{OTHER}": "5.15.0-206.216"}, "security": True, "origin": "x"})
    assert plan(facts, gpu_kernel_policy="gated")["decisions"]["kernel"]["stage"]["release"] == "5.15.0-203-generic"
    asked = plan(facts, gpu_kernel_policy="gated", gpu_kernel_release=OTHER)
    assert asked["decisions"]["kernel"]["stage"]["release"] == OTHER


def test_an_installed_one_is_tried_only_when_it_is_asked_for(plan: Any, facts: dict[str, Any]) -> None:
    facts["kernel"]["candidates"] = []
    facts["kernel"]["installed"].append({**facts["kernel"]["installed"][0], "release": OTHER})
    assert plan(facts, gpu_kernel_policy="gated")["decisions"]["kernel"]["trial_release"] is None
    asked = plan(facts, gpu_kernel_policy="gated", gpu_kernel_release=OTHER)
    assert asked["decisions"]["kernel"]["trial_release"] == OTHER


@pytest.mark.parametrize(("release", "other", "answer"), [
    ("6.8.0-60-generic", "6.8.0-59-generic", True),
    ("6.8.0-60-lowlatency", "6.8.0-59-generic", False),
    ("6.1.0-60-cloud-amd64", "6.1.0-59-amd64", False),
    ("5.14.0-611.5.1.el9_7.x86_64", "5.14.0-570.12.1.el9_6.x86_64", True),
    ("5.14.0-611.5.1.el9_7.x86_64+rt", "5.14.0-570.12.1.el9_6.x86_64", False),
    ("6.4.0-150600.23.60-azure", "6.4.0-150600.23.47-default", False),
    ("6.12.120+deb13-amd64", "6.12.118+deb13-amd64", True),
    ("6.8.0-59-generic", "6.8.0-60-generic", False),
])
def test_what_succeeds_a_kernel(release: str, other: str, answer: bool) -> None:
    assert KernelRelease.parse(release).succeeds(KernelRelease.parse(other)) is answer
