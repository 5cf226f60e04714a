# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for any host: properties of the planner, tried on made-up and mangled facts."""
from __future__ import annotations

import copy
import datetime
import json
from collections.abc import Iterator
from typing import Any

import as_planned
import hosts
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix, planner
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.version import KernelRelease
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NOW = datetime.date(2026, 11, 30)
MATRIX = matrix.load()
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
shapes = st.tuples(
    st.sampled_from(sorted(hosts.SYSTEMS)),
    st.sampled_from([("t4",), ("h100_pcie",) * 2, ("v100",), ("a10",), ("l40s",), ("rtx5090",), ("p40",), (),
                     ("10de:ffff",)]),
    st.booleans(),
)
wishes = st.fixed_dictionaries(
    {},
    optional={
        "gpu_driver_branch": st.sampled_from(["auto", "470", "535", "550", "570", "580", "595", "620", "999"]),
        "gpu_driver_version": st.sampled_from(["580.178.04", "535.309.01", "550.163.01", "999.10.01"]),
        "gpu_driver_flavour": st.sampled_from(["auto", "open", "proprietary"]),
        "gpu_driver_source": st.sampled_from(["auto", "distro", "nvidia", "custom"]),
        "gpu_driver_method": st.sampled_from(["auto", "dkms", "precompiled"]),
        "gpu_driver_owner": st.sampled_from(["host", "operator", "none"]),
        "gpu_cuda": st.sampled_from(["11.8", "12.4", "13.0", ">=12.4,<13", "99.0"]),
        "gpu_frameworks": st.sampled_from([{}, {"pytorch": "2.7"}, {"tensorflow": "2.15"}, {"pytorch": "9.9"}]),
        "gpu_kernel_policy": st.sampled_from(["hold", "gated", "off"]),
        "gpu_kernel_release": st.sampled_from(["6.1.0-50-amd64", "9.9.9-1-amd64"]),
        "gpu_reboot_allowed": st.booleans(),
    },
)


def made(facts: object, policy: dict[str, Any] | None = None, now: datetime.date = NOW) -> dict[str, Any]:
    return planner.plan("gpu-1", facts, policy or {}, MATRIX, now)


def host(shape: tuple[str, tuple[str, ...], bool]) -> dict[str, Any]:
    system, gpus, has_containerd = shape
    facts = hosts.fresh(system, gpus)
    return hosts.containers(facts) if has_containerd else facts


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*before, key)
        yield from paths(inner, (*before, key))


def put(facts: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(facts)
    here: Any = changed
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return changed


def drop(facts: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(facts)
    here: Any = changed
    for key in path[:-1]:
        here = here[key]
    del here[path[-1]]
    return changed


@SETTINGS
@given(facts=junk, policy=wishes)
def test_never_raises_on_junk(facts: Any, policy: dict[str, Any]) -> None:
    assert made(facts, policy)["verdict"] in ("ok", "change", "blocked")


@SETTINGS
@given(shape=shapes, policy=wishes, data=st.data())
def test_never_raises_on_mangled_facts(shape: Any, policy: dict[str, Any], data: st.DataObject) -> None:
    facts = host(shape)
    if data.draw(st.booleans()):
        facts = as_planned.carry_out(facts, made(facts))
    for _round in range(data.draw(st.integers(1, 3))):
        facts = put(facts, data.draw(st.sampled_from(list(paths(facts)))), data.draw(junk))
    json.dumps(made(facts, policy))


@SETTINGS
@given(shape=shapes)
def test_a_host_made_as_planned_is_ok(shape: Any) -> None:
    facts = host(shape)
    first = made(facts)
    if first["verdict"] == "blocked":
        return
    done = as_planned.carry_out(facts, first)
    second = made(done)
    assert second["verdict"] == "ok", (second["changes"], second["pending"], second["findings"])
    known = {"GPU001"}
    if shape[0] == "ubuntu 20.04":    # no branch that is maintained has packages for it
        known.add("DRV003")
    assert [one for one in second["findings"] if one["severity"] != "info" and one["rule"] not in known] == []
    assert second["decisions"]["driver"]["version"] == first["decisions"]["driver"]["version"]


@SETTINGS
@given(shape=shapes, policy=wishes, installed=st.booleans(), data=st.data())
def test_dropping_a_fact_never_turns_blocked_into_ok(
    shape: Any, policy: dict[str, Any], installed: bool, data: st.DataObject
) -> None:
    facts = host(shape)
    if installed:
        facts = as_planned.carry_out(facts, made(facts))
    if made(facts, policy)["verdict"] != "blocked":
        return
    path = data.draw(st.sampled_from([one for one in paths(facts) if not isinstance(one[-1], int)]))
    assert made(drop(facts, path), policy)["verdict"] != "ok", path


@SETTINGS
@given(shape=shapes, data=st.data())
def test_a_stricter_policy_never_gives_a_newer_kernel(shape: Any, data: st.DataObject) -> None:
    facts = host(shape)
    release = facts["kernel"]["running"]
    for number in range(data.draw(st.integers(1, 3))):
        parsed = KernelRelease.parse(release)
        abi = parsed.abi[0] if parsed.abi else None
        newer = release.replace(f"-{abi}", f"-{abi + number + 1}", 1) if abi is not None else f"9{release}"
        facts["kernel"]["installed"].append({
            "release": newer, "image": data.draw(st.booleans()), "initrd": data.draw(st.booleans()),
            "headers": data.draw(st.booleans()), "compiler": "gcc-12",
            "nvidia": data.draw(st.sampled_from([None, {"version": "580.178.04", "flavour": "open", "origin": "dkms",
                                                        "signed": False, "vermagic_ok": True}]))})
    releases = [one["release"] for one in facts["kernel"]["installed"]]
    facts["kernel"]["default_boot"] = data.draw(st.sampled_from(releases))
    boots = [made(facts, {"gpu_kernel_policy": policy})["decisions"]["kernel"]["boot"]
             for policy in ("hold", "gated", "off")]
    keys = [KernelRelease.parse(boot).key if boot else ((), ()) for boot in boots]
    assert keys == sorted(keys), boots


@SETTINGS
@given(shape=shapes, branch=st.sampled_from(["470", "535", "550", "570", "580", "595"]))
def test_auto_never_moves_a_host_that_no_error_rule_excludes(shape: Any, branch: str) -> None:
    facts = host(shape)
    asked = made(facts, {"gpu_driver_branch": branch})
    if asked["verdict"] == "blocked" or asked["decisions"]["driver"]["version"] is None:
        return
    done = as_planned.carry_out(facts, asked)
    stays = made(done)
    assert stays["decisions"]["driver"]["version"] == asked["decisions"]["driver"]["version"]
    assert stays["changes"] == [], stays["changes"]


@SETTINGS
@given(shape=shapes, policy=wishes, later=st.integers(0, 3000))
def test_same_input_same_output(shape: Any, policy: dict[str, Any], later: int) -> None:
    facts = host(shape)
    now = NOW + datetime.timedelta(days=later)
    one, two = made(copy.deepcopy(facts), dict(policy), now), made(copy.deepcopy(facts), dict(policy), now)
    assert json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


@SETTINGS
@given(shape=shapes, policy=wishes)
def test_facts_and_policy_are_left_as_they_were(shape: Any, policy: dict[str, Any]) -> None:
    facts = host(shape)
    before, wish = copy.deepcopy(facts), copy.deepcopy(policy)
    made(facts, policy)
    assert facts == before
    assert policy == wish


@pytest.mark.parametrize(
    "junk_facts", [None, [], "x", 3, {"gpus": {}}, {"gpus": [None]}, {"os": []}, {"kernel": {"installed": [1]}}]
)
def test_junk_is_blocked_or_empty(junk_facts: Any) -> None:
    made_plan = made(junk_facts)
    assert made_plan["verdict"] == "blocked"
