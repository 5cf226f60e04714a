# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an eviction is waited for, and how it ends; the looks themselves are the module's."""

from __future__ import annotations

import types

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.action import cluster_evict

HELD = {"ai/b": "The disruption budget web needs 1 healthy pods and has 1 currently"}


def look(users=(), **more):
    return {"users": list(users), "refused": [], "blocked": {}, "evicted": [], "unschedulable": True, **more}


@pytest.fixture
def run(monkeypatch):
    """Run the action over answers of the module (the last one again and again); return (result, number of looks)."""
    monkeypatch.setattr(cluster_evict.time, "sleep", lambda _seconds: None)
    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr(cluster_evict.time, "monotonic", lambda: next(clock))
    said = []
    monkeypatch.setattr(cluster_evict.display, "display", said.append)

    def start(*answers, check=False, **given):
        action = cluster_evict.ActionModule.__new__(cluster_evict.ActionModule)
        action._task = types.SimpleNamespace(args={"node": "g1", "timeout": 10, "interval": 1, **given})
        action._play_context = types.SimpleNamespace(check_mode=check)
        asked = []

        def execute(**call):
            asked.append(call["module_args"])
            return answers[min(len(asked), len(answers)) - 1]

        monkeypatch.setattr(action, "_execute_module", execute)
        monkeypatch.setattr(cluster_evict.ActionBase, "run", lambda self, tmp=None, task_vars=None: {})
        return action.run(task_vars={}), len(asked), said

    return start


def test_it_waits_until_the_pods_are_gone(run):
    result, looks, said = run(look(["ai/a"], evicted=["ai/a"]), look(["ai/a"]), look())
    assert (looks, result["changed"], result["evicted"]) == (3, True, ["ai/a"]) and not result.get("failed")
    assert said[0].endswith("s] ai/a ends (no pod of g1 was evicted)"), said


def test_a_budget_is_waited_for_and_named(run):
    result, looks, said = run(look(["ai/a", "ai/b"], evicted=["ai/a"], blocked=HELD), look(["ai/b"], blocked=HELD))
    assert result["failed"] and looks > 2 and len(said) == looks
    assert result["msg"].startswith("After 1"), result["msg"]
    assert "ai/b is held by a PodDisruptionBudget: The disruption budget web needs 1" in result["msg"]
    assert "evicted from g1 so far: ai/a" in result["msg"]


def test_time_that_is_up_at_once_still_sees_what_goes(run):
    result, looks, _said = run(look(["ai/a"], evicted=["ai/a"]), look(), timeout=0)
    assert looks == 2 and not result.get("failed")


def test_what_may_not_go_stops_it_before_any_does(run):
    result, looks, _said = run(look(["ai/a"], refused=["ai/a has no controller"]))
    assert result["failed"] and looks == 1 and result["msg"] == "ai/a has no controller (no pod of g1 was evicted)"


def test_a_server_that_is_away_meanwhile_is_asked_again(run):
    away = {"failed": True, "msg": "Connection refused"}
    result, looks, said = run(look(["ai/a"], evicted=["ai/a"]), away, look())
    assert looks == 3 and not result.get("failed") and "the API server does not answer" in said[1]
    first, looks, _said = run(away)
    assert first["failed"] and looks == 1
    lost, looks, _said = run(look(["ai/a"], evicted=["ai/a"]), {"failed": True, "msg": "401 Unauthorized"})
    assert lost["failed"] and looks == 2


def test_check_mode_and_a_look_ask_once(run):
    result, looks, _said = run(look(["ai/a"], evicted=["ai/a"]), check=True)
    assert looks == 1 and result["changed"] and not result.get("failed")
    result, looks, _said = run(look(["ai/a"], refused=["ai/a has no controller"]), state="looked")
    assert looks == 1 and not result["changed"] and not result.get("failed")
