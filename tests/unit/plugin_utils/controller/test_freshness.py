# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan is used again only when run, facts, policy and matrix are the same."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import freshness

DIGESTS = {"facts": "f", "policy": "p", "matrix": "m"}
PLAN = {"verdict": "ok", "run_id": freshness.RUN_ID, "digests": dict(DIGESTS)}


def test_the_same_run_and_digests_are_fresh() -> None:
    assert freshness.stale_reason(PLAN, DIGESTS) is None
    assert freshness.stale_reason(PLAN, {"policy": "p", "matrix": "m"}) is None, (
        "facts that were not kept are not compared"
    )


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (None, "no plan"),
        ({}, "no plan"),
        ("text", "no plan"),
        ({**PLAN, "run_id": "old"}, "another run"),
        ({"verdict": "ok"}, "another run"),
        ({**PLAN, "digests": None}, "no digests"),
        *[({**PLAN, "digests": {**DIGESTS, part: "other"}}, f"{part} changed") for part in DIGESTS],
        ({**PLAN, "digests": {}}, "changed"),
    ],
)
def test_anything_else_is_stale_and_says_why(plan: Any, says: str) -> None:
    reason = freshness.stale_reason(plan, DIGESTS)
    assert reason is not None and says in reason


@pytest.mark.parametrize(
    ("facts", "age"),
    [
        ({"read_at": 900}, 100),
        ({"read_at": 1100}, 0),
        ({}, None),
        ({"read_at": "text"}, None),
        ({"read_at": True}, None),
    ],
)
def test_age(facts: dict[str, Any], age: int | None) -> None:
    assert freshness.take({"os": {}, **facts}, 1000.0)[2] == age


def test_decoded_facts_have_the_same_digest_and_are_not_changed() -> None:
    facts = {"b": [1, {"c": None}], "a": "x", "read_at": 900}
    decoded = freshness.take(facts, 1000.0, decoded=True)
    assert decoded == freshness.take(facts, 1000.0)
    decoded[0]["more"] = 1
    assert "more" not in facts


def test_the_moment_of_reading_is_not_in_the_digest() -> None:
    assert freshness.take({"a": 1, "read_at": 5}, 10.0)[1] == freshness.take({"a": 1}, 10.0)[1]
    assert freshness.take({"a": 2}, 10.0)[1] != freshness.take({"a": 1}, 10.0)[1]


@pytest.mark.parametrize(
    ("packages", "old"),
    [
        ({"cache_age": 100}, False),
        ({"cache_age": 101}, True),
        ({"cache_age": None}, True),
        ({}, False),
        (None, False),
    ],
)
def test_old_lists(packages: Any, old: bool) -> None:
    assert freshness.lists_old({"packages": packages}, 100) is old


def test_only_a_plan_of_this_run_was_applied() -> None:
    decided = {"decisions": {"driver": {"version": "1", "predicted": True, "branch": "x"}}}
    assert freshness.previous({**decided, "run_id": freshness.RUN_ID}) == {
        "driver": {"version": "1", "predicted": True}
    }
    assert freshness.previous({**decided, "run_id": "old"}) is None
    assert freshness.previous(None) is None
