# SPDX-License-Identifier: GPL-3.0-or-later
"""Tagged types become exact builtin types, once."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible._internal._datatag._tags import Origin
from ansible.module_utils._internal._datatag import AnsibleTagHelper
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge


def tag(value: Any) -> Any:
    return AnsibleTagHelper.tag(value, Origin(description="a test"))


def exact(value: Any) -> bool:
    if isinstance(value, dict):
        return value.__class__ is dict and all(exact(key) and exact(item) for key, item in value.items())
    if isinstance(value, list):
        return value.__class__ is list and all(exact(item) for item in value)
    return value.__class__ in (str, int, float, bool, type(None), datetime.date, datetime.datetime)


NESTED = {
    "a": ["x", 1, 2.5, True, None],
    "b": {"c": datetime.date(2026, 11, 30), "d": datetime.datetime(2026, 1, 2, 3, 4)},
}


@pytest.mark.parametrize("value", ["text", 3, 2.5, datetime.date(2026, 11, 30), NESTED, ["a", {"b": "c"}]])
def test_tagged_values_become_plain(value: Any) -> None:
    tagged = tag({tag("key"): [tag(item) for item in (value if isinstance(value, list) else [value])]})
    assert not exact(tagged), "the test needs a tagged value to begin with"
    result = edge.plain(tagged)
    assert exact(result)
    assert result == {"key": value if isinstance(value, list) else [value]}


def test_sets_and_tuples_become_lists() -> None:
    assert edge.plain({"a": (1, 2), "b": {3}}) == {"a": [1, 2], "b": [3]}


@pytest.mark.parametrize("value", [object(), b"raw", {"x": [object()]}])
def test_what_is_no_data_is_named_with_its_path(value: Any) -> None:
    with pytest.raises(edge.EdgeError, match="gpu_cuda"):
        edge.plain(value, "gpu_cuda")


def test_plain_json_gives_exact_types_and_a_digest_without_order() -> None:
    first, digest = edge.plain_json(tag({"b": tag("x"), "a": [tag(1)]}))
    second, same = edge.plain_json({"a": [1], "b": "x"})
    assert exact(first) and first == second and digest == same
    assert edge.plain_json({"a": [2], "b": "x"})[1] != digest
    assert edge.digest({"b": 1, "a": 2}) == edge.digest({"a": 2, "b": 1})


def test_plain_json_takes_dates_as_text_and_refuses_the_rest() -> None:
    assert edge.plain_json({"d": datetime.date(2026, 11, 30)})[0] == {"d": "2026-11-30"}
    with pytest.raises(edge.EdgeError):
        edge.plain_json({"o": object()})
