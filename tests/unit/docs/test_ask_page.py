# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/ask.md: every question on the page is one that can be asked, and has the answer's first words."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import answer, question
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import answer as words

PAGE = pathlib.Path(__file__).resolve().parents[3].joinpath("docs", "ask.md").read_text(encoding="utf-8")


def examples() -> list[tuple[dict[str, Any], list[str]]]:
    """Return each question of the page with the labels of the answer below it."""
    found = []
    for asked, said in re.findall(r"```console\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL):
        inline = re.search(r"-e '(\{.*\})'", asked)
        text = inline[1] if inline else asked.partition("question.yml\n")[2].rpartition("$ ansible-playbook")[0]
        found.append((yaml.safe_load(text)["gpu_ask"], re.findall(r"^([A-Z]+(?: [A-Z]+)*)  ", said, re.MULTILINE)))
    return found


def test_there_are_questions_on_the_page() -> None:
    assert len(examples()) == 4


@pytest.mark.parametrize(("asked", "labels"), examples())
def test_a_question_of_the_page_is_answered_as_shown(asked: dict[str, Any], labels: list[str]) -> None:
    text = words.render(answer.answer(asked))
    assert labels and [label for label in labels if f"\n{label}  " not in f"\n{text}"] == []


def test_every_key_is_on_the_page() -> None:
    assert [key for key in question.KEYS if f"`{key}`" not in PAGE] == []
