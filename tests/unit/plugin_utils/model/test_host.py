# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of any quality: three answers, no exception."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import facts, host
from hypothesis import given, settings
from hypothesis import strategies as st

UNKNOWN = facts.UNKNOWN


def test_unknown_is_no_value() -> None:
    assert not UNKNOWN
    assert facts.or_none(UNKNOWN) is None
    assert list(facts.each(UNKNOWN)) == []


@pytest.mark.parametrize(
    ("tree", "path", "answer"),
    [
        ({"a": {"b": 1}}, "a.b", 1),
        ({"a": {"b": None}}, "a.b", None),
        ({"a": None}, "a.b.c", None),
        ({"a": {}}, "a.b", UNKNOWN),
        ({"a": []}, "a.b", UNKNOWN),
        ({}, "a", UNKNOWN),
        (None, "a", UNKNOWN),
        ("text", "a", UNKNOWN),
    ],
)
def test_get(tree: Any, path: str, answer: Any) -> None:
    assert facts.Reader(tree).get(path) is answer or facts.Reader(tree).get(path) == answer


def test_a_wrong_kind_is_unknown() -> None:
    wrong = {"text": 1, "flag": "yes", "number": True, "table": [], "rows": {}, "texts": "x", "nan": float("nan")}
    reader = facts.Reader(wrong)
    assert reader.text("text") is UNKNOWN
    assert reader.flag("flag") is UNKNOWN
    assert reader.number("number") is UNKNOWN
    assert reader.number("nan") is UNKNOWN
    assert reader.table("table") is UNKNOWN
    assert reader.rows("rows") is UNKNOWN
    assert reader.texts("texts") is UNKNOWN


def test_a_list_with_garbage_is_not_known_in_full() -> None:
    assert host.read({"gpus": [{"id": "10de:1eb8"}, "garbage"]}).gpus is UNKNOWN
    assert host.read({"kernel": {"installed": [{"release": 1}]}}).kernels is UNKNOWN
    assert host.read({"gpus": None}).gpus is None
    assert host.read({"gpus": []}).gpus == ()


def test_a_host() -> None:
    seen = host.read({
        "os": {"id": "Debian", "version": 12, "arch": "amd64"},
        "kernel": {"running": "6.1.0-50-amd64",
                   "installed": [{"release": "6.1.0-50-amd64", "nvidia": {"version": "1"}}]},
        "gpus": [{"id": "10DE:1EB8", "address": "0000:3b:00.0", "link": {"width": 8}}],
        "storage": {"/": {"free_mb": 9}, "/var": {"free_mb": 5}},
        "packages": {"locked_by": {"pid": 3, "command": "apt"}, "held": ["a", 1]},
        "state": {"holds": ["a", {"package": "b"}]},
        "unknown": {"boot": "no grub"},
    })
    assert (seen.os.id, seen.os.version, seen.os.arch, seen.os.name) == ("debian", "12", "x86_64", "debian 12")
    assert seen.kernel("6.1.0-50-amd64") is not None and seen.kernel("other") is None
    assert isinstance(seen.gpus, tuple) and seen.gpus[0].id == "10de:1eb8" and seen.gpus[0].width == 8
    assert (seen.free_mb("/var/lib"), seen.free_mb("/usr/src"), seen.free_mb("/variant")) == (5, 9, 9)
    assert seen.packages.lock_holder == "apt (pid 3)"
    assert seen.packages.held == ("a",)
    assert seen.own_holds == ("a", "b")
    assert seen.why_unknown("boot") == "no grub"
    assert seen.why_unknown("gpus") == "it is not among the facts"


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


SECTIONS = ("os", "kernel", "gpus", "driver", "packages", "containers", "storage", "state", "files", "unknown")
KEYS = ("installed", "nouveau", "smi", "held", "containerd", "loaded", "open")


@settings(max_examples=150, deadline=None)
@given(tree=st.dictionaries(st.sampled_from(SECTIONS), junk | st.dictionaries(st.sampled_from(KEYS), junk)))
def test_reading_never_raises(tree: Any) -> None:
    seen = host.read(tree)
    assert isinstance(seen.why_unknown("x"), str)
    seen.free_mb("/var")
    seen.kernel("x")
