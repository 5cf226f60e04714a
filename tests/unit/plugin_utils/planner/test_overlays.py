# SPDX-License-Identifier: GPL-3.0-or-later
"""A person's own rows decide, and the plan says where."""
from __future__ import annotations

from typing import Any

import hosts
import run

OURS = {
    "name": "ours",
    "products": [{"id": "10de:ffff", "name": "Our board", "architecture": "turing", "first_driver": "450.51",
                  "datacenter": True, "source": ["our own board"], "checked": "2026-11-30"}],
    "versions": [{"version": "595.91.07", "branch": "595", "known_bad": ["hangs on our board"],
                  "source": ["our own tests"], "checked": "2026-11-30"}],
}


def planned(overlay: list[Any], **policy: Any) -> dict[str, Any]:
    case = {"id": "x", "facts": hosts.fresh("ubuntu 24.04", ("10de:ffff",)),
            "policy": {"gpu_matrix_overlay": overlay, **policy}}
    return run.make_plan(case)


def test_an_own_board_is_known() -> None:
    assert any(one["rule"] == "GPU001" for one in planned([])["findings"])
    made = planned([OURS])
    assert not any(one["rule"] == "GPU001" for one in made["findings"])
    assert {"overlay": "ours", "row": "product 10de:ffff (Our board)"} in made["overlays"]


def test_a_version_known_to_be_bad_is_not_taken() -> None:
    assert planned([])["decisions"]["driver"]["version"] == "595.91.07"
    made = planned([OURS])
    assert made["decisions"]["driver"]["branch"] == "580"
    assert any("hangs on our board" in reason for reason in made["decisions"]["driver"]["because"])
    asked = planned([OURS], gpu_driver_version="595.91.07")
    assert asked["verdict"] == "blocked"
    assert {"overlay": "ours", "row": "version 595.91.07"} in asked["overlays"]


def test_without_an_overlay_there_is_nothing_to_say(plan: Any) -> None:
    assert plan(hosts.fresh())["overlays"] == []
