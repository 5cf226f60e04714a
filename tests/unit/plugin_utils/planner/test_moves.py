# SPDX-License-Identifier: GPL-3.0-or-later
"""A move between drivers: what goes, what moves along, which stream it needs, what was cut off."""
from __future__ import annotations

import copy
from typing import Any

import as_planned
import hosts
import pytest
import run as cases
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix as matrices

ARCHIVE = "0ubuntu0.24.04.1"
MATRIX = matrices.load([])


def plan(facts: dict[str, Any], policy: dict[str, Any] | None = None) -> dict[str, Any]:
    """Plan a host exactly as one is planned."""
    return cases.make_plan({"id": "moves", "facts": facts, "policy": policy or {}}, MATRIX)


def offers(facts: dict[str, Any], versions: dict[str, str]) -> dict[str, Any]:
    """Give a host packages on offer."""
    facts["packages"]["available"].update({name: [version] for name, version in versions.items()})
    return facts


def ubuntu(*variants: str, branch: str = "580", version: str = "580.178.04") -> dict[str, str]:
    """Return the packages of Ubuntu's archive for a branch, as sets of names with versions."""
    found = {}
    for end in variants:
        for flavour in ("", "-open"):
            for kind in ("driver", "dkms", "kernel-source"):
                found[f"nvidia-{kind}-{branch}{end}{flavour}"] = f"{version}-{ARCHIVE}"
            found[f"linux-modules-nvidia-{branch}{end}{flavour}-6.8.0-149-generic"] = "6.8.0-149.149"
        for name in ("nvidia-kernel-common", "nvidia-utils", "nvidia-compute-utils", "libnvidia-compute",
                     "libnvidia-cfg1"):
            found[f"{name}-{branch}{end}"] = f"{version}-{ARCHIVE}"
    return found


def noble(gpu: str = "t4") -> dict[str, Any]:
    return offers(hosts.fresh("ubuntu 24.04", (gpu,)), {**ubuntu("-server", ""), "dkms": "3", "gcc-13": "13"})


def settled(facts: dict[str, Any], policy: dict[str, Any]) -> dict[str, Any]:
    """Return the host after a plan, which has nothing left."""
    done = as_planned.carry_out(facts, plan(facts, policy))
    assert plan(done, policy)["verdict"] == "ok"
    return done


def moves(done: dict[str, Any], policy: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    made = plan(done, {**policy, "gpu_reboot_allowed": True})
    return made["decisions"]["driver"], [change["action"] for change in made["changes"]]


def test_server_packages_go_for_plain_ones() -> None:
    done = settled(noble(), {})
    driver, _actions = moves(done, {"gpu_driver_variant": "plain"})
    assert "nvidia-headless-no-dkms-580-open" in driver["packages"]
    assert {"libnvidia-compute-580-server", "nvidia-headless-no-dkms-580-server-open"} <= set(driver["remove"])
    assert driver["because"] == ["gpu_driver_variant asks for it"]
    assert not set(driver["remove"]) & set(driver["packages"])
    assert not [name for name in driver["packages"] if "-server" in name], "two sets would exclude each other"
    settled(done, {"gpu_driver_variant": "plain"})


def test_open_modules_go_for_proprietary_ones() -> None:
    done = settled(noble(), {"gpu_driver_flavour": "open"})
    driver, _actions = moves(done, {"gpu_driver_flavour": "proprietary"})
    assert driver["flavour"] == "proprietary" and driver["method"] == "precompiled"
    assert {"nvidia-headless-no-dkms-580-server-open", "nvidia-kernel-source-580-server-open",
            "linux-modules-nvidia-580-server-open-6.8.0-149-generic"} <= set(driver["remove"])
    assert "libnvidia-compute-580-server" not in driver["remove"], "what both flavours share stays"


def test_a_module_that_is_built_goes_for_a_prebuilt_one() -> None:
    done = settled(noble(), {"gpu_driver_method": "dkms"})
    driver, _actions = moves(done, {"gpu_driver_method": "precompiled"})
    assert "nvidia-dkms-580-server-open" in driver["remove"]
    assert "linux-modules-nvidia-580-server-open-6.8.0-149-generic" in driver["packages"]


def test_packages_outside_the_chosen_set_move_in_lock_step() -> None:
    facts = noble()
    done = settled(facts, {})
    for name in ("libnvidia-decode-580-server", "nvidia-settings"):
        done["packages"]["installed"][name] = f"580.159.03-{ARCHIVE}"
    for name in [*done["packages"]["installed"]]:
        if name.startswith(("nvidia-", "libnvidia-")):
            done["packages"]["installed"][name] = f"580.159.03-{ARCHIVE}"
    done["kernel"]["installed"][0]["nvidia"]["version"] = "580.159.03"
    offers(done, {"libnvidia-decode-580-server": f"580.178.04-{ARCHIVE}"})
    driver, _actions = moves(done, {"gpu_driver_version": "580.178.04"})
    assert driver["packages"]["libnvidia-decode-580-server"] == f"580.178.04-{ARCHIVE}"
    assert "nvidia-settings" not in driver["packages"], "a tool with versions of its own"


# ---- RHEL


def el9(stream: str | None = None, gpu: str = "t4") -> dict[str, Any]:
    facts = hosts.fresh("rhel 9.8", (gpu,))
    names = ("nvidia-driver-cuda", "kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms", "nvidia-driver-cuda-libs",
             "nvidia-kmod-common", "libnvidia-ml", "libnvidia-cfg", "nvidia-persistenced", "nvidia-modprobe")
    for name in names:
        facts["packages"]["available"][name] = ["3:595.91.07-1.el9", "3:580.178.04-1.el9", "3:570.211.01-1.el9"]
    offers(facts, {"dkms": "3.2-1.el9", "gcc-c++": "11-1",
                   "kmod-nvidia-580.178.04-5.14.0-687.12.1": "3:580.178.04-1.el9"})
    facts["packages"]["repositories"].append(
        {"id": "cuda", "url": "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64", "suites": [],
         "signed_by": "x", "file": "/etc/yum.repos.d/cuda.repo", "enabled": True})
    facts["packages"]["modules"] = {"nvidia-driver": {"stream": stream, "state": "enabled"}} if stream else {}
    return facts


@pytest.mark.parametrize(("policy", "stream"), [
    ({"gpu_driver_branch": "580", "gpu_driver_method": "dkms"}, "580-open"),
    ({"gpu_driver_branch": "580", "gpu_driver_method": "dkms", "gpu_driver_flavour": "proprietary"}, "580-dkms"),
    ({"gpu_driver_branch": "580", "gpu_driver_method": "precompiled"}, "580"),
    ({"gpu_driver_branch": "595"}, "595-open"),
])
def test_each_driver_has_its_stream(policy: dict[str, Any], stream: str) -> None:
    made = plan(el9("570-open"), policy)
    assert made["decisions"]["driver"]["streams"] == {"nvidia-driver": stream}
    change = next(change for change in made["changes"] if change["action"] == "stream")
    assert (change["before"], change["after"]) == ("570-open", stream)


def test_a_stream_that_is_right_or_off_after_the_install_is_left_alone() -> None:
    policy = {"gpu_driver_branch": "580", "gpu_driver_method": "dkms"}
    for stream in ("580-open", "open-dkms", None):
        done = as_planned.carry_out(el9(stream), plan(el9(stream), policy))
        done["packages"]["modules"] = el9(stream)["packages"]["modules"]
        assert plan(done, policy)["decisions"]["driver"]["streams"] == {}, stream
    done["packages"]["modules"] = el9("595-open")["packages"]["modules"]
    assert plan(done, policy)["decisions"]["driver"]["streams"] == {"nvidia-driver": "580-open"}


def test_a_module_for_one_kernel_goes_with_its_version() -> None:
    old, new = "kmod-nvidia-580.159.03-5.14.0-687.12.1", "kmod-nvidia-580.178.04-5.14.0-687.12.1"
    policy = {"gpu_driver_branch": "580", "gpu_driver_method": "precompiled"}
    done = settled(el9(), policy)
    for name in [*done["packages"]["installed"]]:
        if name.startswith(("nvidia-", "libnvidia-", "kmod-nvidia")):
            done["packages"]["installed"][name] = "3:580.159.03-1.el9"
    done["packages"]["installed"][old] = done["packages"]["installed"].pop(new)
    done["kernel"]["installed"][0]["nvidia"]["version"] = "580.159.03"
    driver, _actions = moves(done, {**policy, "gpu_driver_version": "580.178.04"})
    assert new in driver["packages"] and old in driver["remove"]


def test_a_package_without_its_module_is_installed_again() -> None:
    policy = {"gpu_driver_branch": "580", "gpu_driver_method": "dkms"}
    done = settled(el9(), policy)
    whole = copy.deepcopy(done)
    assert plan(whole, policy)["decisions"]["driver"]["reinstall"] == []
    done["kernel"]["installed"][0]["nvidia"] = None
    made = plan(done, policy)
    assert made["decisions"]["driver"]["reinstall"] == ["kmod-nvidia-open-dkms"]
    assert [one["target"] for one in made["changes"] if one["action"] == "reinstall"] == ["kmod-nvidia-open-dkms"]


def test_a_mirror_takes_the_place_of_nvidias_repository() -> None:
    mirror = {"url": "https://mirror.example/cuda/rhel9", "key_url": "https://mirror.example/key",
              "fingerprint": "610C7B14E068A878070DA4E99CD0A493D42D0685"}
    (repository,) = plan(el9(), {"gpu_driver_repository": mirror})["decisions"]["driver"]["repositories"]
    assert "baseurl=https://mirror.example/cuda/rhel9\n" in repository["content"]
    assert "module_hotfixes=1\n" in repository["content"] and "priority=50\n" in repository["content"]
    suse = plan(hosts.fresh("sles 15.7", ("t4",)), {"gpu_driver_repository": mirror})["decisions"]["driver"]
    assert suse["repositories"][0]["path"].startswith("/etc/zypp/repos.d/")


def test_a_kernel_that_does_not_say_its_compiler_is_built_with_that_of_the_system() -> None:
    facts = noble()
    kernel = facts["kernel"]["installed"][0]
    kernel.update(compiler=None, headers=False)
    facts["kernel"].pop("running_compiler", None)
    facts["kernel"]["running"] = kernel["release"] = facts["kernel"]["default_boot"] = "6.99.0-1-generic"
    available = facts["packages"]["available"]
    available["linux-headers-6.99.0-1-generic"] = ["6.99.0-1.1"]
    driver = plan(facts, {"gpu_driver_method": "dkms"})["decisions"]["driver"]
    assert (driver["method"], driver["prerequisites"]) == ("dkms", ["dkms", "make", "libelf-dev", "gcc-13"])


def test_headers_of_rpm_are_asked_for_by_version_and_held_by_name() -> None:
    facts = el9()
    facts["kernel"]["installed"][0].update(headers=False, packages={"headers": None})
    release = facts["kernel"]["running"].removesuffix(".x86_64")
    facts["packages"]["available"]["kernel-devel"] = [release]
    facts["packages"]["installed"].pop("kernel-devel")
    kernel = plan(facts, {"gpu_driver_source": "nvidia", "gpu_driver_method": "dkms"})["decisions"]["kernel"]
    assert kernel["headers"] == [f"kernel-devel-{release}"]
    assert "kernel-devel" in kernel["hold"] and "kernel-devel" not in kernel["deny"]
    assert not [name for name in kernel["hold"] if release in name]


def test_one_mirror_for_driver_and_toolkit_is_one_source() -> None:
    mirror = {"url": "https://mirror.example/nvidia", "suite": "/", "key_url": "https://mirror.example/key.asc",
              "fingerprint": "A" * 40}
    policy = {"gpu_driver_source": "nvidia", "gpu_driver_repository": mirror, "gpu_toolkit_repository": mirror}
    decisions = plan(hosts.fresh("rhel 9.8"), policy)["decisions"]
    assert [one["name"] for one in decisions["driver"]["repositories"]] == ["baremetal-nvidia-cuda"]
    assert decisions["toolkit"]["repositories"] == []
    policy["gpu_toolkit_repository"] = {**mirror, "url": "https://mirror.example/toolkit"}
    decisions = plan(hosts.fresh("rhel 9.8"), policy)["decisions"]
    assert [one["name"] for one in decisions["toolkit"]["repositories"]] == ["baremetal-nvidia-container-toolkit"]


# ---- parts of the driver beside it


def nscq(branch: str, version: str) -> dict[str, str]:
    """Return the parts of the fabric as Ubuntu's archive has them: the branch in their names, whatever the branch."""
    return {f"{name}-{branch}": f"{version}-{ARCHIVE}" for name in ("nvidia-fabricmanager", "libnvidia-nscq")}


def switched(*branches: tuple[str, str]) -> dict[str, Any]:
    """Return a host of Ubuntu with NVSwitches and R570 with NSCQ from the archive, which has these branches."""
    facts = offers(hosts.fresh("ubuntu 24.04", ("h100",), 4), {"dkms": "3", "gcc-13": "13"})
    for branch, version in (("570", "570.211.01"), *branches):
        offers(facts, {**ubuntu("-server", branch=branch, version=version), **nscq(branch, version)})
    done = as_planned.carry_out(facts, plan(facts, {"gpu_driver_branch": "570"}))
    done["packages"]["installed"].update(nscq("570", "570.211.01"))
    return done


def test_parts_of_the_archive_move_within_the_archive() -> None:
    done = switched(("580", "580.178.04"))
    made = plan(done, {"gpu_driver_branch": "580"})["decisions"]["driver"]
    assert made["source"] == "distro" and made["fabric"] == nscq("580", "580.178.04")
    assert {"nvidia-fabricmanager-570", "libnvidia-nscq-570"} <= set(made["remove"])


def test_a_part_that_the_archive_has_not_is_named_and_no_other_source_is_taken_for_it_when_that_is_asked_for() -> None:
    done = switched(("580", "580.178.04"))
    del done["packages"]["available"]["libnvidia-nscq-580"]
    made = plan(done, {"gpu_driver_branch": "580", "gpu_driver_source": "distro"})
    assert made["verdict"] == "blocked"
    (said,) = [one for one in made["findings"] if one["rule"] == "DRV008"]
    assert "NSCQ 580.178.04 is needed, and libnvidia-nscq-580 is not on offer" in said["summary"]


@pytest.mark.parametrize(("name", "offered", "title"), [
    ("nvidia-imex", "nvidia-imex", "IMEX"), ("libnvidia-nscq-580", "libnvidia-nscq", "NSCQ")])
def test_parts_of_el_move_in_lock_step_or_keep_the_driver_out(name: str, offered: str, title: str) -> None:
    policy = {"gpu_driver_branch": "580", "gpu_driver_method": "dkms"}
    done = settled(el9(gpu="h100"), policy)
    done["packages"]["installed"][name] = "580.178.04-1"
    made = plan(done, policy)
    assert [(one["action"], one["target"]) for one in made["changes"]] == [("hold", name)], "it is held with the driver"
    made = plan(done, {"gpu_driver_branch": "595"})
    assert made["verdict"] == "blocked"
    assert [f"{title} 595.91.07 is needed, and {offered} is not on offer" in one["summary"]
            for one in made["findings"] if one["rule"] == "DRV008"] == [True]
    moved = plan(offers(done, {offered: "595.91.07-1"}), {"gpu_driver_branch": "595"})["decisions"]["driver"]
    assert moved["version"] == "595.91.07" and moved["fabric"] == {offered: "595.91.07-1"}


# ---- NVIDIA's own pins


def pinned(branch: str = "580") -> dict[str, Any]:
    """Return a host of Ubuntu with R580 of NVIDIA's repository, kept by its pinning package; R595 is on offer too."""
    facts = offers(hosts.fresh("ubuntu 24.04", ("l40s",)), {**ubuntu("-server"), "dkms": "3", "gcc-13": "13"})
    facts["packages"]["repositories"].append(
        {"id": "cuda", "url": "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/",
         "suites": ["/"], "signed_by": "/x", "file": "/etc/apt/sources.list.d/cuda.list", "enabled": True})
    for one in ("595", branch):
        policy = {"gpu_driver_source": "nvidia", "gpu_driver_branch": one}
        for name, version in plan({**facts, "packages": {**facts["packages"], "available": {}}}, policy)[
                "decisions"]["driver"]["packages"].items():
            facts["packages"]["available"].setdefault(name, []).append(version or f"{one}-1")
    offers(facts, {f"nvidia-{kind}-580": "580.178.04-1ubuntu1" for kind in ("dkms", "kernel-source")})
    return settled(facts, policy)


@pytest.mark.parametrize(("policy", "goes"), [
    ({"gpu_driver_source": "nvidia", "gpu_driver_branch": "595"}, True),
    ({"gpu_driver_source": "distro", "gpu_driver_branch": "580"}, True),
    ({"gpu_driver_source": "nvidia", "gpu_driver_branch": "580", "gpu_driver_flavour": "proprietary"}, False)])
def test_a_pin_of_nvidias_goes_with_the_branch_that_it_keeps(policy: dict[str, Any], goes: bool) -> None:
    done = pinned()
    assert "nvidia-driver-pinning-580" in done["packages"]["installed"]
    made = plan(done, policy)["decisions"]["driver"]
    assert ("nvidia-driver-pinning-580" in made["remove"]) is goes, made["because"]
    if goes:
        after = as_planned.carry_out(done, plan(done, {**policy, "gpu_reboot_allowed": True}))
        assert [name for name in after["packages"]["installed"] if "pinning" in name] == [
            name for name in made["packages"] if "pinning" in name]


def cut_off(done: dict[str, Any], keep: tuple[str, ...]) -> dict[str, Any]:
    """Return the host with these of its driver's packages alone: half of what a transaction moves."""
    half = copy.deepcopy(done)
    there = half["packages"]["installed"]
    for name in [name for name in there if "nvidia" in name and not name.startswith(keep)]:
        del there[name]
    for row in half["kernel"]["installed"]:
        row["nvidia"] = None
    half["driver"].update(dkms=[], loaded=None, library=None)
    return half


@pytest.mark.parametrize("keep", [("libnvidia-compute",), ("libnvidia-cfg1", "libnvidia-compute"), ("nvidia-dkms",),
                                  ("nvidia-dkms", "nvidia-kernel")])
@pytest.mark.parametrize("asked", [{}, {"gpu_driver_branch": "580"}])
def test_half_a_driver_is_made_a_whole_one(keep: tuple[str, ...], asked: dict[str, Any]) -> None:
    """What the first half of a transaction brought in is no driver that people wanted so."""
    policy = {"gpu_driver_method": "dkms", **asked}
    done = settled(noble(), policy)
    whole = plan(done, policy)["decisions"]["driver"]["packages"]
    half = cut_off(done, keep)
    assert set(half["packages"]["installed"]) < set(done["packages"]["installed"])
    made = plan(half, policy)
    assert made["decisions"]["driver"]["packages"] == whole
    installs = {change["target"] for change in made["changes"] if change["action"] == "install"}
    assert {name for name in whole if not name.startswith(keep)} <= installs


def test_who_takes_fewer_packages_keeps_them() -> None:
    """Module and library are there: the rest of the series is not forced on a host."""
    policy = {"gpu_driver_method": "dkms"}
    done = settled(noble(), policy)
    del done["packages"]["installed"]["libnvidia-cfg1-580-server"]
    made = plan(done, policy)
    assert "libnvidia-cfg1-580-server" not in made["decisions"]["driver"]["packages"]
    assert "install" not in {change["action"] for change in made["changes"]}
