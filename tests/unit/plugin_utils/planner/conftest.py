# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner's tests share hosts and cases with tests/cases."""
from __future__ import annotations

import datetime
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "cases"))

from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix, planner

NOW = datetime.date(2026, 11, 30)


@pytest.fixture(name="plan")
def fixture_plan() -> Callable[..., dict[str, Any]]:
    """Plan facts with policy variables as keywords."""

    def make(facts: object, name: str = "gpu-1", now: datetime.date = NOW, **policy: Any) -> dict[str, Any]:
        return planner.plan(name, facts, policy, matrix.load(), now)

    return make
