# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning one host costs less than 5 ms of processor time."""
from __future__ import annotations

import statistics
import time
from typing import Any

import as_planned
import hosts


def test_a_plan_takes_less_than_five_milliseconds(plan: Any) -> None:
    facts = hosts.containers(hosts.fresh("debian 12", ("t4",) * 8))
    done = as_planned.carry_out(facts, plan(facts))
    for one in (facts, done):
        taken = []
        for _number in range(30):
            before = time.process_time()
            plan(one)
            taken.append(time.process_time() - before)
        assert statistics.median(taken) < 0.005, f"{statistics.median(taken) * 1000:.1f} ms"
