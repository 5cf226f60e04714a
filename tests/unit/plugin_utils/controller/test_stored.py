# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored facts: every form they come in, and what is said when they are not there."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import stored

FACTS = {"os": {"id": "debian"}, "gpus": []}


@pytest.mark.parametrize(
    "content",
    [
        FACTS,
        {"gpu_facts": FACTS},
        {"ansible_facts": {"gpu_facts": FACTS}},
        {"g1": FACTS, "g2": {"os": {"id": "ubuntu"}}},
        {"g1": {"gpu_facts": FACTS}},
    ],
)
@pytest.mark.parametrize("suffix", [".json", ".yml"])
def test_every_form_is_read(tmp_path: pathlib.Path, content: Any, suffix: str) -> None:
    place = tmp_path / f"facts{suffix}"
    place.write_text(json.dumps(content))
    assert stored.read(str(place), "g1") == FACTS


@pytest.mark.parametrize("name", ["g1.json", "g1.yml", "g1.yaml"])
def test_a_directory_holds_one_file_a_host(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(FACTS))
    assert stored.read(str(tmp_path), "g1") == FACTS
    with pytest.raises(stored.StoredFactsError, match=r"g2.json"):
        stored.read(str(tmp_path), "g2")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ("[1]", "list, not a mapping"),
        ('{"g7": 1}', "holds no facts of g1"),
        ("", "NoneType|cannot be read"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path: pathlib.Path, text: str, says: str) -> None:
    place = tmp_path / "facts.json"
    place.write_text(text)
    with pytest.raises(stored.StoredFactsError, match=rf"facts.json.*({says})"):
        stored.read(str(place), "g1")


def test_a_path_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(stored.StoredFactsError, match="nowhere"):
        stored.read(str(tmp_path / "nowhere"), "g1")
