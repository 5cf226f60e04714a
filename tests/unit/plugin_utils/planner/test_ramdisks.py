# SPDX-License-Identifier: GPL-3.0-or-later
"""The nvidia module in an initial ramdisk follows the one on disk."""
from __future__ import annotations

import copy
from typing import Any

import as_planned
import hosts
import pytest

KERNEL, HERE = "6.1.0-50-amd64", "535.261.03"


def has_535(plan: Any) -> dict[str, Any]:
    """Return a host that is as planned, with the archive's R535."""
    facts = hosts.fresh("debian 12")
    facts["packages"]["available"].update({"nvidia-kernel-dkms": [f"{HERE}-1"], "nvidia-driver": [f"{HERE}-1"]})
    done = as_planned.carry_out(facts, plan(facts))
    assert plan(done)["verdict"] == "ok" and done["driver"]["library"] == HERE
    return done


def inside(facts: dict[str, Any], value: Any) -> dict[str, Any]:
    facts = copy.deepcopy(facts)
    facts["kernel"]["installed"][0]["nvidia_in_initrd"] = value
    return facts


def images(made: dict[str, Any], key: str = "changes") -> list[tuple[str, str, str]]:
    return [(one["target"], one["before"], one["disruption"]) for one in made[key] if one["action"] == "initramfs"]


@pytest.mark.parametrize(("value", "before"), [
    ({"version": "525.147.05", "flavour": "proprietary"}, "nvidia 525.147.05 proprietary in the initramfs"),
    ({"version": HERE, "flavour": "open"}, f"nvidia {HERE} open in the initramfs"),
])
def test_a_stale_one_is_rebuilt_at_once(plan: Any, value: dict[str, str], before: str) -> None:
    made = plan(inside(has_535(plan), value))
    assert images(made) == [(KERNEL, before, "none")]
    assert made["decisions"]["driver"]["initramfs"] == [KERNEL] and made["verdict"] == "change"


@pytest.mark.parametrize("value", [None, {"version": HERE, "flavour": "proprietary"}, {"version": HERE}])
def test_a_good_one_is_left_alone(plan: Any, value: Any) -> None:
    made = plan(inside(has_535(plan), value))
    assert made["verdict"] == "ok" and made["decisions"]["driver"]["initramfs"] == []


def test_one_that_nobody_looked_into_is_nothing_to_do_where_nothing_moves(plan: Any) -> None:
    facts = has_535(plan)
    del facts["kernel"]["installed"][0]["nvidia_in_initrd"]
    assert plan(facts)["verdict"] == "ok"


def moving(plan: Any, value: Any, **policy: Any) -> dict[str, Any]:
    facts = inside(has_535(plan), value)
    facts["packages"]["available"] = {}
    if value == "absent":
        del facts["kernel"]["installed"][0]["nvidia_in_initrd"]
    return plan(facts, gpu_driver_branch="580", gpu_driver_source="nvidia", **policy)


@pytest.mark.parametrize("value", [{"version": HERE, "flavour": "proprietary"}, "absent"])
def test_with_a_move_it_comes_and_waits_with_the_packages(plan: Any, value: Any) -> None:
    waits = moving(plan, value)
    assert [one[::2] for one in images(waits, "pending")] == [(KERNEL, "reboot")] and images(waits) == []
    goes = moving(plan, value, gpu_reboot_allowed=True)
    actions = [one["action"] for one in goes["changes"] if one["role"] == "gpu_driver"]
    assert images(goes) and "install" in actions[:actions.index("initramfs")]


def test_a_move_with_nothing_in_the_ramdisk_rebuilds_none(plan: Any) -> None:
    assert images(moving(plan, None, gpu_reboot_allowed=True)) == []
