# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner and the matrix, loaded once in the parent process and inherited by every forked worker."""

from __future__ import annotations

import datetime
import functools
import gc
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..report import describe
from . import edge, freshness, names, policy_vars

#: Facts of an ordinary host as planned, recorded in the lab.
_REHEARSAL = pathlib.Path(__file__).with_name("rehearsal.json")
#: As often as CPython needs to settle on specialised byte code.
REHEARSALS = 12


@dataclass(frozen=True)
class Engine:
    """What the action needs of the planner, so that a test can put something small in its place.

    ``plan(host, facts, policy, matrix, now) -> dict``; ``validate(mapping) -> dict`` fills the defaults in;
    ``matrix(overlays) -> Matrix``; ``errors`` are the exceptions that say what a person got wrong.
    """

    plan: Callable[..., dict[str, Any]]
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    matrix: Callable[[Sequence[Any]], Any]
    errors: tuple[type[Exception], ...]

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """Everything that says what a person got wrong, in the planner or on the way to it."""
        return (policy_vars.UnknownVariable, edge.EdgeError, *self.errors)


@functools.cache
def load() -> Engine:
    """Import planner and matrix and read the matrix's files; raises whatever they raise."""
    from ..matrix import MatrixError
    from ..matrix import load as load_matrix
    from ..model import policy
    from ..planner import plan

    load_matrix()
    return Engine(plan=plan, validate=policy.validate, matrix=load_matrix, errors=(policy.PolicyError, MatrixError))


def warm() -> None:
    """Load and rehearse everything now, in the process that workers are forked from.

    Each host is planned in a fork of its own, and a fork pays for every page that it is the first to touch: rules,
    caches and byte code are settled here, and what was loaded is kept out of the garbage collector's sight. What goes
    wrong here is told by the first load() that matters.
    """
    try:
        engine = load()
        facts = json.loads(_REHEARSAL.read_text(encoding="utf-8"))
        for _again in range(REHEARSALS):
            policy_vars.refuse_misspelt(dict.fromkeys(names.policy()), names.known())
            clean = freshness.take(facts, 0.0)[0]
            policy, matrix = engine.validate({}), engine.matrix(())
            plan = engine.plan("rehearsal", clean, policy, matrix, datetime.date(2026, 1, 1))
            edge.digest(policy)
            describe.headline({**plan, "subject": describe.subject(clean, matrix)})
        gc.freeze()
    except Exception:  # noqa: BLE001  the reason is raised again, and reported, where a host needs the engine
        return
