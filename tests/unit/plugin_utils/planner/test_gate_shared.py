# SPDX-License-Identifier: GPL-3.0-or-later
"""A ready module that serves several kernels is opened for the next one, or the kernel does not come."""
from __future__ import annotations

from typing import Any

import hosts
import pytest

HERE, NEXT = "6.12.0-55.40.1.el10_0.x86_64", "6.12.0-55.43.1.el10_0.x86_64"
DRIVER, VERSION = "615.71.09", "3:615.71.09-1.el10"
USERSPACE = ("nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-driver-common", "nvidia-kmod-common",
             "nvidia-persistenced")


def host(*kmods: str, offered: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return an EL 10 host that runs R615 with a ready module, and a kernel on offer."""
    facts = hosts.fresh("almalinux 10.0", ("l40s",))
    facts["kernel"]["installed"][0]["nvidia"] = {"version": DRIVER, "flavour": "open", "origin": "precompiled",
                                                 "signed": True, "vermagic_ok": True}
    bare = NEXT.removesuffix(".x86_64")
    facts["kernel"]["candidates"] = [{"release": NEXT, "packages": {"kernel": bare, "kernel-core": bare},
                                      "security": True, "origin": "baseos", "since": None, "cves": []}]
    facts["driver"].update(loaded={"version": DRIVER, "flavour": "open"}, library=DRIVER, origin="packages")
    packages = facts["packages"]
    packages["installed"].update(dict.fromkeys((*USERSPACE, *kmods), VERSION))
    packages["available"].update({name: [VERSION] for name in (*USERSPACE, *offered)})
    return facts


def stage(plan: Any, facts: dict[str, Any]) -> dict[str, Any]:
    made = plan(facts, gpu_kernel_policy="gated", gpu_driver_branch="615", gpu_driver_method="precompiled",
                gpu_driver_source="nvidia")
    kernel = made["decisions"]["kernel"]
    told = [one["summary"] for one in made["findings"] if one["rule"] == "KRN017" and NEXT in one["subject"]]
    return {"module": kernel["stage"] and kernel["stage"]["module"], "told": told}


@pytest.mark.parametrize("name", ["kmod-nvidia-open", "kmod-nvidia-open-kabi"])
def test_the_installed_package_is_opened_whatever_its_name(plan: Any, name: str) -> None:
    made = stage(plan, host(name))
    assert made["told"] == []
    assert made["module"] == {"method": "precompiled", "package": name, "version": VERSION, "driver": DRIVER}


def test_one_that_is_on_offer_is_opened(plan: Any) -> None:
    made = stage(plan, host(offered=("kmod-nvidia-open",)))
    assert (made["module"]["package"], made["module"]["version"]) == ("kmod-nvidia-open", VERSION)


@pytest.mark.parametrize("kmods", [(), ("kmod-nvidia-open-dkms",), ("kmod-nvidia-a", "kmod-nvidia-b")])
def test_without_a_package_that_can_be_opened_the_kernel_does_not_come(plan: Any, kmods: tuple[str, ...]) -> None:
    made = stage(plan, host(*kmods))
    assert made["module"] is None
    assert len(made["told"]) == 1 and "which package brings the ready modules of 615.71.09 (open)" in made["told"][0]
