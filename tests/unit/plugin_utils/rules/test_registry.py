# SPDX-License-Identifier: GPL-3.0-or-later
"""Every rule is documented, and has a case in which it fires and one in which it does not."""
from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.rules import document, registry
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.rules.context import Context

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tests" / "cases"))

import run

# A case without a rule stands beside those of a subject that it belongs to; the part cases runs it.
FILES = sorted((ROOT / "tests/cases/rules").glob("*.yml"))
CASES = [case for path in FILES for case in run.load(path) if "rule" in case]
RULES = registry.rules()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_case_fires_it_and_one_does_not(rule: registry.Rule) -> None:
    assert {case["fires"] for case in CASES if case["rule"] == rule.id} == {True, False}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    assert list(run.differences(case, run.make_plan(case, matrix.load()))) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_what_why_and_what_to_do(rule: registry.Rule) -> None:
    assert re.fullmatch(r"(GPU|DRV|KRN|PKG|CUD|CTR|OPR|HLT|SYS)\d{3}", rule.id)
    assert rule.title and not rule.title.endswith(".")
    assert rule.why.endswith(".")
    assert rule.remedy and not rule.remedy.endswith(".")
    assert rule.sources
    assert (rule.plan_check is None) != (rule.candidate_check is None)
    check = rule.plan_check or rule.candidate_check
    assert (check.__doc__ or "").startswith("Fires "), check


def test_no_case_names_a_rule_that_is_not() -> None:
    assert {case["rule"] for case in CASES} <= {rule.id for rule in RULES}


def test_an_id_is_given_once() -> None:
    def check(context: Context) -> Any:
        """Fires never."""
        yield from ()

    with pytest.raises(ValueError, match=RULES[0].id):
        registry.plan_rule(RULES[0].id, "info", "again", why="w.", remedy="r", sources=["s"])(check)


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs/rules.md").read_text(encoding="utf-8") == document.markdown(), "run scripts/generate.py rules"
