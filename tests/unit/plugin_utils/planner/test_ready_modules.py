# SPDX-License-Identifier: GPL-3.0-or-later
"""Ubuntu's ready modules: a package is taken only for the driver that its modules are made for."""
from __future__ import annotations

from typing import Any

import as_planned
import pytest
import run as cases
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix as matrices
from test_moves import ARCHIVE, noble

MATRIX = matrices.load([])
MODULES = "linux-modules-nvidia-580-server-open-6.8.0-149-generic"
OLDER, NEWER = "580.173.02", "580.178.04"
POLICY = {"gpu_driver_branch": "580", "gpu_driver_source": "distro", "gpu_driver_method": "precompiled",
          "gpu_driver_variant": "server", "gpu_driver_flavour": "open"}


def plan(facts: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return cases.make_plan({"id": "ready", "facts": facts, "policy": {**POLICY, **policy}}, MATRIX)


def host(modules: dict[str, str], *userspace: str) -> dict[str, Any]:
    """A new host whose archive has the modules (version: driver) and the other half in these versions."""
    facts = noble()
    offers = facts["packages"]["available"]
    offers[MODULES] = list(modules)
    for name in list(offers):
        if "nvidia" in name and "580-server" in name and not name.startswith("linux-"):
            offers[name] = [f"{one}-{ARCHIVE}" for one in userspace]
    facts["packages"]["made_for"] = {MODULES: dict(modules)}
    return facts


def refusals(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in made["findings"] if one["rule"] == "PKG001" and one["severity"] == "error"]


def test_modules_of_another_driver_are_refused_with_the_names_of_both() -> None:
    made = plan(host({"6.8.0-149.149": OLDER}, NEWER), gpu_driver_version=NEWER)
    told = refusals(made)
    assert made["verdict"] == "blocked" and len(told) == 1
    for word in (MODULES, OLDER, "nvidia-", f"{NEWER}-{ARCHIVE}"):
        assert word in told[0]["summary"]
    assert OLDER in told[0]["remedy"]


def test_modules_of_this_driver_are_taken() -> None:
    made = plan(host({"6.8.0-149.149": NEWER}, NEWER), gpu_driver_version=NEWER)
    assert refusals(made) == [] and made["verdict"] == "change"
    assert made["decisions"]["driver"]["packages"][MODULES] == "6.8.0-149.149"


def test_of_two_versions_the_one_of_this_driver_is_taken_and_not_the_newest() -> None:
    made = plan(host({"6.8.0-149.149+1": NEWER, "6.8.0-149.149": OLDER}, NEWER, OLDER), gpu_driver_version=OLDER)
    assert refusals(made) == []
    assert made["decisions"]["driver"]["packages"][MODULES] == "6.8.0-149.149"
    assert made["decisions"]["driver"]["prebuilt"] == {"6.8.0-149-generic": {MODULES: "6.8.0-149.149"}}


def test_without_a_version_asked_for_the_driver_follows_the_modules() -> None:
    """The archive's userspace is ahead of the modules for a while after each release."""
    made = plan(host({"6.8.0-149.149": OLDER}, NEWER, OLDER))
    driver = made["decisions"]["driver"]
    assert (driver["version"], driver["packages"][MODULES]) == (OLDER, "6.8.0-149.149")


def test_where_the_dependency_tells_nothing_the_newest_is_taken_as_before() -> None:
    facts = host({"6.8.0-149.149": OLDER}, NEWER)
    facts["packages"]["made_for"] = {}
    made = plan(facts, gpu_driver_version=NEWER)
    assert refusals(made) == [] and made["decisions"]["driver"]["packages"][MODULES] == "6.8.0-149.149"


@pytest.mark.parametrize("driver", [OLDER, NEWER])
def test_the_other_kernels_modules_follow_the_driver_too(driver: str) -> None:
    facts = host({"6.8.0-149.149": NEWER}, NEWER)
    second = dict(facts["kernel"]["installed"][0], release="6.8.0-148-generic")
    facts["kernel"]["installed"].insert(0, second)
    other = MODULES.replace("149", "148")
    facts["packages"]["installed"]["linux-image-6.8.0-148-generic"] = "6.8.0-148.148"
    facts["packages"]["available"][other] = ["6.8.0-148.148"]
    facts["packages"]["made_for"][other] = {"6.8.0-148.148": driver}
    driver_decision = plan(facts)["decisions"]["driver"]
    assert (other in driver_decision["packages"]) is (driver == NEWER)
    assert ("6.8.0-148-generic" in driver_decision["kernels"]) is (driver == NEWER)


@pytest.mark.parametrize("driver", [OLDER, NEWER])
def test_an_installed_driver_whose_kernel_has_no_module_yet(driver: str) -> None:
    """The kernel moved behind its back; the only module package there is may be another driver's."""
    facts = host({"6.8.0-149.149": NEWER}, NEWER)
    done = as_planned.carry_out(facts, plan(facts))
    assert plan(done)["verdict"] == "ok"
    del done["packages"]["installed"][MODULES]
    done["kernel"]["installed"][0]["nvidia"] = None
    done["packages"]["made_for"] = {MODULES: {"6.8.0-149.149": driver}}
    made = plan(done)
    assert bool(refusals(made)) is (driver == OLDER)
    wanted = made["decisions"]["driver"]["packages"].get(MODULES)
    assert wanted == ("6.8.0-149.149" if driver == NEWER else None)


def test_a_running_host_is_left_alone_whatever_the_archive_has_now() -> None:
    facts = host({"6.8.0-149.149": NEWER}, NEWER)
    done = as_planned.carry_out(facts, plan(facts))
    done["packages"]["made_for"] = {MODULES: {"6.8.0-149.149+2": "580.190.01"}}
    done["packages"]["available"][MODULES] = ["6.8.0-149.149+2"]
    assert plan(done)["verdict"] == "ok"
