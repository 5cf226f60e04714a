# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry: a rule is one small function with an id, a title, a reason, a way out and its sources.

Rules of the stage ``candidate`` judge one driver that could be there; the selection asks them too, so that what
excludes a driver and what is said about it are the same words. Rules of the stage ``plan`` look at the whole.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..model.plan import Finding, Severity
from .context import Candidate, Context

FAMILIES = (
    "gpu", "driver", "multi_node", "secure_boot", "kernel", "kernel_moves", "restarts", "packages", "sources", "cuda",
    "cuda_toolkit", "containers", "containerd", "devices", "health", "system", "operator", "operator_values",
    "operator_driver", "operator_objects", "operator_runtime", "sharing", "sharing_groups", "mig", "monitoring",
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule fires: what it is about, what is wrong, and what to do if that differs from the rule's own remedy."""

    subject: str
    summary: str
    remedy: str | None = None
    severity: Severity | None = None
    sources: Sequence[str] = ()


PlanCheck = Callable[[Context], Iterator[Hit]]
CandidateCheck = Callable[[Context, Candidate], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it is registered and documented."""

    id: str
    severity: Severity
    title: str
    why: str
    remedy: str
    sources: tuple[str, ...]
    plan_check: PlanCheck | None = None
    candidate_check: CandidateCheck | None = None

    def finding(self, hit: Hit) -> Finding:
        """Return the finding of a hit."""
        return Finding(
            rule=self.id,
            severity=hit.severity or self.severity,
            subject=hit.subject,
            summary=hit.summary,
            remedy=hit.remedy or self.remedy,
            sources=tuple(dict.fromkeys([*hit.sources, *self.sources])),
        )


_REGISTRY: dict[str, Rule] = {}


def _register(rule: Rule) -> None:
    if rule.id in _REGISTRY:
        raise ValueError(f"two rules are called {rule.id}")
    _REGISTRY[rule.id] = rule


def plan_rule(
    ident: str, severity: Severity, title: str, *, why: str, remedy: str, sources: Sequence[str]
) -> Callable[[PlanCheck], PlanCheck]:
    """Register a function that looks at the whole plan."""

    def register(check: PlanCheck) -> PlanCheck:
        _register(Rule(ident, severity, title, why, remedy, tuple(sources), plan_check=check))
        return check

    return register


def candidate_rule(
    ident: str, severity: Severity, title: str, *, why: str, remedy: str, sources: Sequence[str]
) -> Callable[[CandidateCheck], CandidateCheck]:
    """Register a function that judges one driver."""

    def register(check: CandidateCheck) -> CandidateCheck:
        _register(Rule(ident, severity, title, why, remedy, tuple(sources), candidate_check=check))
        return check

    return register


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """Return all rules, by id."""
    package = __name__.rpartition(".")[0]
    for family in FAMILIES:
        importlib.import_module(f"{package}.{family}")
    return tuple(_REGISTRY[ident] for ident in sorted(_REGISTRY))


@lru_cache(maxsize=1)
def candidate_rules() -> tuple[Rule, ...]:
    """Return the rules that judge one driver."""
    return tuple(rule for rule in rules() if rule.candidate_check)


@lru_cache(maxsize=1)
def plan_rules() -> tuple[Rule, ...]:
    """Return the rules that look at the whole plan."""
    return tuple(rule for rule in rules() if rule.plan_check)


def judge(context: Context, candidate: Candidate) -> Iterator[Finding]:
    """Yield what the rules have against a driver; errors that are waived are left out."""
    for rule in candidate_rules():
        if rule.id in context.waived or rule.candidate_check is None:
            continue
        for hit in rule.candidate_check(context, candidate):
            yield rule.finding(hit)


def inspect(context: Context) -> Iterator[Finding]:
    """Yield the findings of a plan, those about the driver that was asked for or chosen included."""
    judged = context.asked or context.candidate
    for rule in rules():
        if rule.candidate_check is not None and judged is not None:
            for hit in rule.candidate_check(context, judged):
                yield rule.finding(hit)
        elif rule.plan_check is not None:
            for hit in rule.plan_check(context):
                yield rule.finding(hit)
