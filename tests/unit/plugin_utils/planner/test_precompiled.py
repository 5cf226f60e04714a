# SPDX-License-Identifier: GPL-3.0-or-later
"""Prebuilt, signed modules: one package for each kernel, or none at all."""
from __future__ import annotations

from typing import Any

import as_planned
import hosts
import pytest

VERSION = "580.178.04-0ubuntu0.24.04.1"
USER_SPACE = ("nvidia-headless-no-dkms-580-server-open", "nvidia-headless-580-server-open",
              "nvidia-dkms-580-server-open",
              "libnvidia-compute-580-server", "nvidia-utils-580-server", "nvidia-compute-utils-580-server")
MODULE = "linux-modules-nvidia-580-server-open-6.8.0-149-generic"


@pytest.fixture(name="noble")
def fixture_noble() -> dict[str, Any]:
    facts = hosts.fresh("ubuntu 24.04", ("l40s",))
    facts["packages"]["available"] = {**{name: [VERSION] for name in USER_SPACE}, MODULE: ["6.8.0-149.152+1"]}
    return facts


def test_signed_modules_are_preferred_where_they_are_on_offer(plan: Any, noble: dict[str, Any]) -> None:
    noble["secure_boot"] = {"enabled": True, "mok": []}
    made = plan(noble)
    driver = made["decisions"]["driver"]
    assert made["verdict"] == "change", made["findings"]
    assert (driver["method"], driver["source"], driver["version"]) == ("precompiled", "distro", "580.178.04")
    assert driver["packages"][MODULE] == "6.8.0-149.152+1"
    assert not any(one["action"] == "prove" for one in made["changes"])
    assert driver["prebuilt"] == {"6.8.0-149-generic": {MODULE: "6.8.0-149.152+1"}}, "it is opened before it goes in"
    done = as_planned.carry_out(noble, made)
    assert plan(done)["verdict"] == "ok"
    assert plan(done)["decisions"]["driver"]["prebuilt"] == {}


def test_without_a_module_for_the_kernel_it_is_built(plan: Any, noble: dict[str, Any]) -> None:
    del noble["packages"]["available"][MODULE]
    made = plan(noble)
    assert made["decisions"]["driver"]["method"] == "dkms"
    assert any(one["action"] == "prove" for one in made["changes"])
    assert made["decisions"]["driver"]["prebuilt"] == {}
    asked = plan(noble, gpu_driver_branch="580", gpu_driver_method="precompiled")
    assert asked["verdict"] == "blocked"
    assert any(MODULE in one["summary"] for one in asked["findings"] if one["severity"] == "error")


def test_another_kernel_may_start_only_with_a_module_of_its_own(plan: Any, noble: dict[str, Any]) -> None:
    other = {**noble["kernel"]["installed"][0], "release": "6.8.0-150-generic"}
    noble["kernel"]["installed"].append(other)
    assert plan(noble)["decisions"]["kernel"]["allowed"] == ["6.8.0-149-generic"]
    noble["packages"]["available"][MODULE.replace("149", "150")] = ["6.8.0-150.153+1"]
    made = plan(noble)
    assert made["decisions"]["kernel"]["allowed"] == ["6.8.0-149-generic", "6.8.0-150-generic"]
    assert MODULE.replace("149", "150") in made["decisions"]["driver"]["packages"]
    assert list(made["decisions"]["driver"]["prebuilt"]) == ["6.8.0-149-generic", "6.8.0-150-generic"]


def test_kmods_of_el_carry_driver_and_kernel_in_their_names(plan: Any) -> None:
    facts = hosts.fresh("rhel 9.8")
    version = "3:580.178.04-1.el9"
    names = ("nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-kmod-common", "nvidia-persistenced",
             "nvidia-modprobe", "libnvidia-ml", "libnvidia-cfg", "kmod-nvidia-latest-dkms")
    kmod = "kmod-nvidia-580.178.04-5.14.0-687.12.1"
    facts["packages"]["available"] = {**{name: [version] for name in names}, kmod: ["3:580.178.04-1.el9_8"]}
    facts["packages"]["repositories"].append(
        {"id": "cuda", "url": "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64", "suites": [],
         "enabled": True, "file": "/etc/yum.repos.d/cuda.repo", "signed_by": "k"})
    made = plan(facts, gpu_driver_branch="580", gpu_driver_flavour="proprietary")
    driver = made["decisions"]["driver"]
    assert driver["method"] == "precompiled"
    assert driver["packages"][kmod] == "3:580.178.04-1.el9_8"
    assert driver["prebuilt"] == {"5.14.0-687.12.1.el9_8.x86_64": {kmod: "3:580.178.04-1.el9_8"}}
    done = as_planned.carry_out(facts, made)
    assert plan(done, gpu_driver_branch="580", gpu_driver_flavour="proprietary")["verdict"] == "ok"


def sles(*kmps: str) -> dict[str, Any]:
    facts = hosts.fresh("sles 15.7", ("t4",))
    for name in kmps:
        facts["packages"]["available"][name] = ["580.178.04_k6.4.0_150700.51-1.1"]
    facts["packages"]["available"]["nvidia-compute-utils-G06"] = ["580.178.04-1.1"]
    facts["packages"]["repositories"].append(
        {"id": "cuda", "url": "https://developer.download.nvidia.com/compute/cuda/repos/sles15/x86_64", "suites": [],
         "enabled": True, "file": "/etc/zypp/repos.d/cuda.repo", "signed_by": "k"})
    return facts


def test_of_suse_the_signed_kmp_is_opened_and_the_one_that_builds_for_itself_is_not(plan: Any) -> None:
    signed, builds = "nvidia-open-driver-G06-signed-cuda-kmp-default", "nvidia-driver-G06-kmp-default"
    facts = sles(signed, builds)
    driver = plan(facts, gpu_driver_branch="580")["decisions"]["driver"]
    assert driver["prebuilt"] == {facts["kernel"]["running"]: {signed: "580.178.04_k6.4.0_150700.51-1.1"}}
    driver = plan(facts, gpu_driver_branch="580", gpu_driver_flavour="proprietary")["decisions"]["driver"]
    assert builds in driver["packages"] and driver["prebuilt"] == {}, "it holds source, and no module"


def test_a_kmp_that_builds_for_itself_does_not_come_in_under_secure_boot(plan: Any) -> None:
    facts = sles("nvidia-driver-G06-kmp-default")
    facts["secure_boot"] = {"enabled": True, "mok": []}
    policy = {"gpu_driver_branch": "580", "gpu_driver_flavour": "proprietary"}
    made = plan(facts, **policy)
    assert made["verdict"] == "blocked"
    assert [one["remedy"] for one in made["findings"] if one["rule"] == "KRN027" and "open" in one["remedy"]]
    facts["secure_boot"] = {"enabled": False, "mok": []}
    assert plan(facts, **policy)["verdict"] == "change"
