# SPDX-License-Identifier: GPL-3.0-or-later
"""Without gpu_operator_values the installed ones stay, but for what the policy says now: they hold its former words."""
from __future__ import annotations

from typing import Any

import pytest
from operator_plans import MINE, OPERATOR, applied, cluster, fleet

UNASKED = {"gpu_driver_owner": "operator", "gpu_kernel_policy": "off"}


def second(first: dict[str, Any], then: dict[str, Any], values: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the values of the second run."""
    there = cluster("a", values=values)
    made = fleet(applied(there, fleet(there, a=first)), a=then)
    assert made["unproved"] == [] and made["conflicts"] == []
    return dict(made["values"])


@pytest.mark.parametrize("values", [None, {}])
@pytest.mark.parametrize(("said", "driver"), [
    ({"gpu_driver_version": "580.178.04"}, {"enabled": True, "version": "580.178.04"}),
    ({"gpu_driver_branch": "595"}, {"enabled": True, "version": "595.91.07"}),
    ({"gpu_driver_branch": "580", "gpu_driver_method": "precompiled"},
     {"enabled": True, "usePrecompiled": True, "version": "580"}),
    ({"gpu_driver_flavour": "open"}, {"enabled": True, "version": "580.173.02", "kernelModuleType": "open"}),
    ({}, {"enabled": True, "version": "580.173.02"}),    # auto moves nothing
])
def test_what_the_policy_says_of_the_driver_is_followed(
    said: dict[str, Any], driver: dict[str, Any], values: dict[str, Any] | None
) -> None:
    assert second(OPERATOR, {**UNASKED, **said}, values)["driver"] == driver


def test_back_from_precompiled_and_from_a_kind_of_module() -> None:
    precompiled = {**UNASKED, "gpu_driver_branch": "580", "gpu_driver_method": "precompiled",
                   "gpu_driver_flavour": "open"}
    back = {**OPERATOR, "gpu_driver_method": "dkms", "gpu_driver_flavour": "proprietary"}
    assert second(precompiled, back)["driver"] == {
        "enabled": True, "version": "580.173.02", "kernelModuleType": "proprietary"}


def test_an_own_value_stays_whatever_the_policy_says() -> None:
    asked = {"driver": {"version": "580.105.08"}}
    made = second(OPERATOR, {**OPERATOR, "gpu_driver_version": "580.178.04"}, asked)
    assert made["driver"]["version"] == "580.105.08"


def test_the_mode_of_containers_and_the_owner_of_the_driver_are_followed() -> None:
    legacy = {**OPERATOR, "gpu_container_mode": "legacy"}
    assert second(legacy, {**OPERATOR, "gpu_container_mode": "cdi"})["cdi"] == {"enabled": True}
    assert second(legacy, OPERATOR)["cdi"] == {"enabled": False}    # auto moves nothing
    # beside the host's own driver first, asked for by an empty gpu_operator_values
    there = cluster("a", values={})
    after = {**applied(there, fleet(there, a=MINE)), "values": None}
    assert after["operator"]["values"]["driver"]["enabled"] is False
    assert fleet(after, a=OPERATOR)["values"]["driver"] == {"enabled": True, "version": "580.173.02"}


def _tainted(there: dict[str, Any], **taints: str) -> dict[str, Any]:
    for node in there["nodes"]:
        if node["name"] in taints:
            node["taints"] = [{"key": taints[node["name"]], "effect": "NoSchedule"}]
    return there


@pytest.mark.parametrize("values", [None, {}])
def test_taints_that_come_later_are_tolerated_too(values: dict[str, Any] | None) -> None:
    there = _tainted(cluster("a", "b", values=values), a="team")
    first = fleet(there, a=OPERATOR, b=OPERATOR)
    made = fleet(_tainted(applied(there, first), b="other"), a=OPERATOR, b=OPERATOR)["values"]
    for listed in (made["daemonsets"]["tolerations"], made["node-feature-discovery"]["worker"]["tolerations"]):
        assert sorted(one["key"] for one in listed) == ["nvidia.com/gpu", "other", "team"]
        assert {one["operator"] for one in listed} == {"Exists"}
    assert fleet(applied(there, first), a=OPERATOR, b=OPERATOR)["values"] == first["values"]


def test_tolerations_that_a_person_gives_stay() -> None:
    mine = {"daemonsets": {"tolerations": [{"key": "team", "operator": "Exists"}]}}
    made = fleet(_tainted(cluster("a", values=mine), a="other"), a=OPERATOR)["values"]
    assert made["daemonsets"] == mine["daemonsets"] and "node-feature-discovery" not in made


def test_an_installed_toleration_of_everything_is_enough() -> None:
    there = _tainted(cluster("a", values=None), a="other")
    there["operator"] = {"version": "v26.7.0", "values": {
        "daemonsets": {"tolerations": [{"operator": "Exists"}]},
        "node-feature-discovery": {"worker": {"tolerations": [{"operator": "Exists"}]}}}}
    made = fleet(there, a=OPERATOR)["values"]
    assert made["daemonsets"] == {"tolerations": [{"operator": "Exists"}]}
    assert made["node-feature-discovery"] == {"worker": {"tolerations": [{"operator": "Exists"}]}}
