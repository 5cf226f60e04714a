# SPDX-License-Identifier: GPL-3.0-or-later
"""Exact versions on every system: what a machine that was just installed gets, and what is refused with its way out."""
from __future__ import annotations

from typing import Any

import hosts
import pytest
import run as cases
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix as matrices

MATRIX = matrices.load([])
MIRROR = {"url": "https://mirror.local/cuda/", "key_url": "https://mirror.local/key.asc", "fingerprint": "AB" * 20}


def plan(system: str, policy: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Plan a machine that was just installed."""
    facts = hosts.fresh(system, ("t4",))
    for path, value in changes.items():
        target = facts
        *parents, last = path.split("__")
        for parent in parents:
            target = target[parent]
        target[last] = value
    return cases.make_plan({"id": "exact", "facts": facts, "policy": policy or {}}, MATRIX)


def errors(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["rule"]: one for one in made["findings"] if one["severity"] == "error"}


@pytest.mark.parametrize(("system", "policy", "method", "exact", "prerequisite"), [
    ("ubuntu 22.04", {}, "dkms", {"nvidia-dkms-580-server-open": "580.178.04-0ubuntu0.22.04.1"}, "gcc-11"),
    ("ubuntu 24.04", {}, "dkms", {"nvidia-dkms-595-server-open": "595.91.07-0ubuntu0.24.04.1"}, "gcc-13"),
    ("ubuntu 26.04", {}, "dkms", {"nvidia-dkms-595-server-open": "595.91.07-0ubuntu0.26.04.1"}, "gcc-15"),
    ("ubuntu 26.04", {"gpu_driver_source": "nvidia"}, "dkms", {"nvidia-dkms-open": "595.91.07-1ubuntu1"}, "gcc-15"),
    ("ubuntu 24.04", {"gpu_driver_source": "nvidia", "gpu_driver_branch": "580"}, "dkms",
     {"nvidia-dkms-580-open": "580.178.04-1ubuntu1"}, "gcc-13"),
    ("ubuntu 24.04", {"gpu_driver_source": "nvidia", "gpu_driver_branch": "595"}, "dkms",
     {"nvidia-dkms-open": "595.91.07-1ubuntu1", "nvidia-driver-pinning-595": None}, "gcc-13"),
    ("rhel 9.8", {}, "dkms", {"kmod-nvidia-open-dkms": "3:595.91.07-1.el9"}, "gcc-c++"),
    ("rocky 9.6", {"gpu_driver_branch": "580"}, "dkms", {"kmod-nvidia-open-dkms": "3:580.178.04-1.el9"}, "dkms"),
    ("almalinux 10.0", {"gpu_driver_repository": MIRROR}, "dkms", {"kmod-nvidia-open-dkms": "3:595.91.07-1.el10"},
     "dkms"),
    ("sles 15.7", {}, "precompiled", {"nvidia-open-driver-G06-signed-cuda-kmp-default": None}, None),
])
def test_each_system_gets_exact_packages_and_the_compiler_of_its_kernel(
    system: str, policy: dict[str, Any], method: str, exact: dict[str, str | None], prerequisite: str | None
) -> None:
    made = plan(system, policy)
    driver = made["decisions"]["driver"]
    assert not errors(made) and driver["method"] == method
    assert {name: driver["packages"].get(name, "absent") for name in exact} == exact
    assert prerequisite is None or prerequisite in driver["prerequisites"]
    dkms_source = [version for name, version in driver["packages"].items() if "pinning" not in name]
    if method == "dkms":
        assert all(version and driver["version"] in version for version in dkms_source), "one version, nothing floats"


def test_el10_is_blocked_until_somebody_confirms_the_key() -> None:
    said = errors(plan("almalinux 10.0"))["PKG008"]
    assert "nvidia-cuda-rhel10" in said["summary"] and "fingerprint" in said["summary"] and said["remedy"]


@pytest.mark.parametrize(("path", "free"), [("/var", 900), ("/boot", 40), ("/usr/src", 100), ("/", 500)])
def test_a_full_disk_is_told_before_anything_changes(path: str, free: int) -> None:
    facts = {mount: {"free_mb": 41000} for mount in ("/", "/boot", "/var", "/usr/src")} | {path: {"free_mb": free}}
    said = errors(plan("ubuntu 24.04", storage=facts))["PKG005"]
    assert said["subject"] == path and f"{path} has {free} MB free, and " in said["summary"]
    assert said["remedy"] == "free space on the file system"


def test_a_kernel_of_another_compiler_asks_for_that_compiler() -> None:
    facts = {"release": "6.17.0-41-generic", "image": True, "initrd": True, "headers": True, "compiler": "gcc-14",
             "nvidia": None, "extra_modules": [], "nouveau_in_initrd": False}
    made = plan("ubuntu 24.04", {"gpu_driver_branch": "580"}, kernel__installed=[facts],
                kernel__running=facts["release"], kernel__default_boot=facts["release"],
                kernel__running_compiler="gcc-14")
    assert {"gcc-14"} == {name for name in made["decisions"]["driver"]["prerequisites"] if name.startswith("gcc")}


def test_the_distributions_cuda_toolkit_is_no_driver_package() -> None:
    facts = hosts.fresh("ubuntu 24.04", ("t4",))
    facts["packages"]["installed"]["nvidia-cuda-toolkit"] = "12.0.140~12.0.1-4build4"
    facts["packages"]["installed"]["cuda-toolkit-12-8"] = "12.8.1-1"
    made = cases.make_plan({"id": "exact", "facts": facts, "policy": {"gpu_driver_branch": "580"}}, MATRIX)
    driver = made["decisions"]["driver"]
    assert not {"nvidia-cuda-toolkit", "cuda-toolkit-12-8"} & {*driver["remove"], *driver["packages"]}


@pytest.mark.parametrize(("system", "own", "way"), [
    ("rocky 8.10", "3.6.8", "dnf install python3.11"),
    ("sles 15.7", "3.6.15", "zypper install python311"),
    ("ubuntu 20.04", "3.8.10", "apt-get install python3.9"),
])
def test_a_system_with_an_old_python_is_planned_and_refused_with_the_way_out(system: str, own: str, way: str) -> None:
    made = plan(system, os__python=own)
    said = errors(made)["SYS005"]
    assert made["verdict"] == "blocked" and made["decisions"]["driver"]["version"]
    assert way in said["remedy"] and "ansible_python_interpreter" in said["remedy"]
    assert "SYS005" not in errors(plan(system, os__python="3.11.2"))


def thinned(note: bool, **available: str) -> dict[str, str | None]:
    """Return what is installed of NVIDIA's R580 where the facts tell of these packages alone."""
    facts = hosts.fresh("ubuntu 24.04", ("t4",))
    facts["packages"]["repositories"].append(
        {"id": "cuda", "url": "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/",
         "suites": ["/"], "signed_by": "/x", "file": "/etc/apt/sources.list.d/cuda.list", "enabled": True})
    facts["packages"]["available"] = {name.replace("_", "-"): [version] for name, version in available.items()}
    if note:
        facts["unknown"]["packages.available[]"] = "of branches that are not installed only the main packages"
    policy = {"gpu_driver_source": "nvidia", "gpu_driver_branch": "580"}
    made = cases.make_plan({"id": "exact", "facts": facts, "policy": policy}, MATRIX)
    return dict(made["decisions"]["driver"]["packages"])


def test_what_the_facts_left_out_for_their_size_is_installed_too() -> None:
    """A DKMS package brings no library; whose version is the driver's by the preferences."""
    dkms = {"nvidia_dkms_580_open": "580.178.04-1ubuntu1"}
    packages = thinned(True, **dkms)
    assert packages["nvidia-dkms-580-open"] == "580.178.04-1ubuntu1"
    assert {"libnvidia-compute-580", "nvidia-compute-utils-580", "nvidia-firmware-580"} <= set(packages)
    assert packages["libnvidia-compute-580"] is None
    assert "libnvidia-compute-580" not in thinned(False, **dkms), "what the facts say is not there is not asked for"
    assert "nvidia-utils-580" in thinned(True, **dkms, libnvidia_compute_580="580.178.04-1ubuntu1")
