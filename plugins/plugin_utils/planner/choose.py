# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choosing the driver: what is asked for, else what is installed, else the newest that everything allows.

Every candidate is judged by the rules; one of severity error excludes it. On a new host a candidate that is past its
end, below its security floor or untried on the kernel is taken only where nothing better is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from ..model import version as versions
from ..model.facts import each
from ..model.plan import Finding
from ..rules import registry
from ..rules.context import Candidate, Context, Refusal
from ..rules.gpu import last_branch
from . import candidates

_RELUCTANT = frozenset(("DRV003", "DRV004", "KRN002"))
_MOST_JUDGED = 40


def choose(context: Context) -> None:
    """Fill in ``candidate`` (what the host gets), ``asked`` (what was asked for and is refused) and why."""
    if context.wishes.driver_is_asked:
        _asked(context, context.wishes.driver_branch)
    elif context.installed is not None and (wish := _other_wish(context)) is not None:
        _asked(context, context.installed.branch, wish)
    elif context.installed is not None:
        _sticky(context)
    else:
        _best(context, _auto(context))


def _other_wish(context: Context) -> str | None:
    """Return the variable that asks for another flavour, source, method or variant than what is installed has."""
    installed, wishes = context.installed, context.wishes
    if installed is None or installed.method == "runfile":
        return "gpu_driver_runfile" if installed is not None and wishes.driver_runfile == "replace" else None
    here = candidates.present(context)
    for variable, asked, there in (
        ("flavour", wishes.driver_flavour, installed.flavour),
        ("source", wishes.driver_source, installed.source),
        ("method", wishes.driver_method, here.method if here is not None else installed.method),
    ):
        if asked not in ("auto", "custom") and there is not None and asked != there:
            return f"gpu_driver_{variable}"
    series, variant = installed.series, wishes.driver_variant
    if variant != "auto" and installed.source == "distro" and series is not None and context.host.os.id == "ubuntu":
        return None if candidates.has_variant(series, variant) else "gpu_driver_variant"
    return None


def _asked(context: Context, branch: str, variable: str | None = None) -> None:
    wishes = context.wishes
    if branch == "auto":
        branch = versions.branch_of(wishes.driver_version or "")
    found = _lazy(one for source in candidates.sources(context)
                  for one in candidates.of_branch(context, branch, source, wishes.driver_version))
    installed = context.installed
    if found is None and installed is not None and installed.branch == branch and installed.version == (
        wishes.driver_version or installed.version
    ):
        found = _lazy(one for one in (candidates.as_it_is(context),) if one is not None)
    if found is None:
        found = [candidates.bare(context, branch, wishes.driver_version, candidates.sources(context)[0])]
    refused = _first_without_error(context, found)
    if context.candidate is not None:
        _say(context, f"{variable or 'gpu_driver_' + ('version' if wishes.driver_version else 'branch')} asks for it")
        return
    context.asked = refused
    refusals, context.refusals = context.refusals, []
    _alternative(context)
    context.refusals = refusals
    context.driver.because.clear()
    if context.candidate is not None:
        _say(context, f"R{branch} is refused: {refusals[0].summary}" if refusals else f"R{branch} is refused")


def _alternative(context: Context) -> None:
    """Choose what could be there instead of what was asked for; give up more wishes only where nothing else is left."""
    wishes = context.wishes
    steps: tuple[dict[str, Any], ...] = (
        {}, {"driver_flavour": "auto", "driver_method": "auto"}, {"driver_source": "auto"})
    for loosened in steps:
        context.wishes = replace(context.wishes, **loosened)
        _best(context, _auto(context))
        if context.candidate is not None:
            break
    context.wishes = wishes


def _lazy(found: Iterator[Candidate]) -> Iterable[Candidate] | None:
    """Return the candidates, made one at a time; None if there is none at all."""
    first = next(found, None)
    return None if first is None else chain((first,), found)


def _first_without_error(context: Context, found: Iterable[Candidate]) -> Candidate | None:
    """Take the first candidate without an error; else return the one with the least, and say them in ``refusals``."""
    least: tuple[tuple[int, int], Candidate] | None = None
    for candidate in islice(found, _MOST_JUDGED):
        errors = [finding for finding in registry.judge(context, candidate) if finding.severity == "error"]
        if not errors:
            context.candidate = candidate
            return None
        if least is None or _weight(errors) < least[0]:
            least = (_weight(errors), candidate)
        context.refusals += [Refusal(candidate, finding.rule, finding.summary) for finding in errors]
    return least[1] if least is not None else None


def _weight(errors: list[Finding]) -> tuple[int, int]:
    """Say how far a candidate is from being possible: what the GPU itself excludes no setting brings nearer."""
    return len(errors), sum(1 for finding in errors if finding.rule.startswith("GPU"))


def _sticky(context: Context) -> None:
    installed = context.installed
    if installed is None:
        return
    here = candidates.present(context) or candidates.as_it_is(context)
    if here is None:
        return
    errors = [finding for finding in registry.judge(context, here) if finding.severity == "error"]
    if not errors:
        context.candidate = here
        _say(context, f"{installed.version} is installed and no rule excludes it")
        return
    context.left = Refusal(here, errors[0].rule, errors[0].summary)
    same = [one for source in candidates.sources(context)
            for one in candidates.of_branch(context, installed.branch, source) if not one.installed]
    same.sort(key=lambda one: one.version != installed.version)
    if _first_without_error(context, same) is None and context.candidate is not None:
        _say(context, f"{here.label} cannot stay: {errors[0].summary}")
        return
    context.refusals = [Refusal(here, finding.rule, finding.summary) for finding in errors]
    _best(context, _auto(context))
    if context.candidate is None:
        context.asked, context.left = here, None


def _auto(context: Context) -> Iterator[Iterable[Candidate]]:
    """Yield the candidates of a new host in rounds: one per source, newest branch first."""
    if context.packaging is None:
        return
    for source in candidates.sources(context):
        names = {row.branch for row in context.packaging.find(source="distro" if source == "custom" else source)}
        rows = [row for name in names if (row := context.matrix.branch(name)) is not None]
        for types in (("production", "lts"), ("legacy",)):
            branches = sorted((row.name for row in rows if row.type in types), key=int, reverse=True)
            yield (one for branch in branches for one in candidates.of_branch(context, branch, source))


def _best(context: Context, rounds: Iterator[Iterable[Candidate]]) -> None:
    least: tuple[tuple[int, int], Candidate] | None = None
    for found in rounds:
        reluctant: Candidate | None = None
        for candidate in islice(found, _MOST_JUDGED):
            findings = list(registry.judge(context, candidate))
            errors = [finding for finding in findings if finding.severity == "error"]
            if errors:
                if least is None or _weight(errors) < least[0]:
                    least = (_weight(errors), candidate)
                context.refusals += [Refusal(candidate, finding.rule, finding.summary) for finding in errors]
            elif any(finding.rule in _RELUCTANT and finding.severity == "warning" for finding in findings):
                reluctant = reluctant or candidate
            else:
                context.candidate = candidate
                break
        context.candidate = context.candidate or reluctant
        if context.candidate is not None:
            _because(context, context.candidate)
            return
    if context.asked is None and least is not None:
        context.asked = _only_branch(context) or least[1]


def _only_branch(context: Context) -> Candidate | None:
    """Return the bare candidate of the last branch that knows all GPUs, where no source has that branch."""
    lasts = [last for card in each(context.cards) if (last := last_branch(card)) is not None]
    if not lasts or context.packaging is None:
        return None
    last = min(lasts, key=int)
    if any(context.packaging.find(branch=last, source=source) for source in candidates.sources(context)):
        return None
    return candidates.bare(context, last, None, candidates.sources(context)[0])


def _because(context: Context, chosen: Candidate) -> None:
    """Say which constraint decided: why each newer branch was not taken."""
    said = set()
    for refusal in context.refusals:
        branch = refusal.candidate.branch
        if branch not in said and branch != chosen.branch:
            said.add(branch)
            _say(context, f"not R{branch}: {refusal.summary}")
    row = context.matrix.branch(chosen.branch)
    kind = {"lts": "LTS", "production": "production"}.get(row.type, row.type) if row is not None else "known"
    _say(context, f"R{chosen.branch} is the newest {kind} branch that GPU, kernel, system, CUDA and frameworks allow")
    if context.wishes.driver_flavour == "auto":
        _say(context, f"{chosen.flavour} modules: {_flavour_reason(context, chosen)}")


def _flavour_reason(context: Context, chosen: Candidate) -> str:
    other = [refusal for refusal in context.refusals
             if refusal.candidate.branch == chosen.branch and refusal.candidate.flavour != chosen.flavour]
    return other[0].summary if other else f"the default of R{chosen.branch} that every GPU here runs with"


def _say(context: Context, reason: str) -> None:
    if reason not in context.driver.because:
        context.driver.because.append(reason)
