# SPDX-License-Identifier: GPL-3.0-or-later
"""What many hosts have in common is decided once."""
from __future__ import annotations

from typing import Any

import as_planned
import hosts
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan_fleet


def test_a_module_is_built_once_for_hosts_that_are_alike(plan: Any) -> None:
    plans = [plan(hosts.fresh("debian 12"), name=f"a{number}") for number in range(5)]
    plans += [plan(hosts.fresh("debian 13"), name="b1")]
    done = as_planned.carry_out(hosts.fresh("debian 12"), plans[0])
    plans += [plan(done, name="c1")]
    fleet = plan_fleet(reversed(plans))
    assert fleet["hosts"] == 7
    assert [(build["kernel"], build["hosts"]) for build in fleet["builds"]] == [
        ("6.1.0-50-amd64", ["a0", "a1", "a2", "a3", "a4"]), ("6.12.117+deb13-amd64", ["b1"])]
    assert fleet["builds"][0]["build_on"] == "a0"
    assert fleet["verdicts"]["ok"] == ["c1"]
    assert sorted(len(one["hosts"]) for one in fleet["shapes"]) == [1, 1, 5]


def test_blocked_hosts_and_prebuilt_modules_build_nothing(plan: Any) -> None:
    facts = hosts.fresh()
    facts["storage"]["/var"]["free_mb"] = 10
    assert plan_fleet([plan(facts)])["builds"] == []
    assert plan_fleet([plan(hosts.fresh("sles 15.7"))])["builds"] == []
    assert plan_fleet([])["hosts"] == 0
