# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module makes of a report: the result people see."""

from __future__ import annotations

from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.prove import Outcome, Report
from ansible_collections.baremetal.nvidia.plugins.modules import driver_proof


def report() -> Report:
    return Report(
        [
            Outcome("6.1.0-50-amd64", how="built"),
            Outcome(
                "7.2.12+deb13-amd64", error="x for 7.2: the build failed", log=["a.c:1: error: b", "make: *** [all]"]
            ),
        ]
    )


def test_needs_build_and_diff_name_each_kernel() -> None:
    result = driver_proof.result_of(report(), "proved")
    assert result["needs_build"] == ["7.2.12+deb13-amd64"]
    assert result["diff"]["before"] == "6.1.0-50-amd64: no proof\n7.2.12+deb13-amd64: no proof\n"
    assert result["diff"]["after"] == "6.1.0-50-amd64: built\n7.2.12+deb13-amd64: needs_build\n"


def test_a_failure_shows_the_log_of_each_kernel_without_proof() -> None:
    assert driver_proof.failure(report()) == "x for 7.2: the build failed\n    a.c:1: error: b\n    make: *** [all]"


def test_the_documentation_and_the_specification_name_the_same_options() -> None:
    import yaml

    documented = yaml.safe_load(driver_proof.DOCUMENTATION)["options"]
    assert set(documented) | {"lease"} == set(driver_proof.SPEC)
    for name, option in documented.items():
        assert option.get("default") == driver_proof.SPEC[name].get("default"), name
        assert option["type"] == driver_proof.SPEC[name]["type"], name
