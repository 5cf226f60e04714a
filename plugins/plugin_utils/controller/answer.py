# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers to questions without a host: the planner's own plans of hosts of which only the question is known."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from typing import Any

from . import engine, names, question
from .known_kernels import known_kernels
from .question import AskError, Question

DRIVER = ("branch", "version", "flavour", "source", "method", "predicted")
#: The rule that says that nobody has tried a driver on a kernel.
UNTRIED = "KRN002"


def answer(given: Any, policy: Mapping[str, Any] | None = None, today: datetime.date | None = None) -> dict[str, Any]:
    """Return the answer to a question.

    ``given``: see question.KEYS; ``policy``: policy variables that hold beside those in the question. Raises AskError
    for a question that cannot be meant. The answer has ``question``, ``possible``, ``driver``, ``cuda``, ``toolkit``,
    ``kernels`` (each release with ``answer`` yes, no or untried, ``driver`` and ``why``), ``changes`` and ``pending``
    (of the driver, where the question names the one that is installed) and ``findings``.
    """
    planner = engine.load()
    try:
        asked = question.policy_of(given, names.policy())
        settings = planner.validate({**(policy or {}), **asked})
        matrix = planner.matrix(settings.get("gpu_matrix_overlay") or ())
    except planner.refusals as error:  # pylint: disable=catching-non-exception
        raise AskError(str(error)) from error
    read = question.read(given, matrix, asked)
    day = today or datetime.datetime.now(datetime.timezone.utc).date()

    def plan(gpus: tuple[Any, ...], kernel: str | None = None) -> dict[str, Any]:
        return planner.plan("asked", read.facts(gpus, kernel), settings, matrix, day)

    plans = [plan(gpus) for gpus in read.meanings]
    question.agree(f"{question.NAME}.gpu", read.meanings, plans)
    chosen, gpus = plans[0], read.meanings[0]
    decisions = chosen["decisions"]
    releases = read.kernels or (() if read.kernel else known_kernels(matrix, read.os_id, read.os_version, read.arch))
    return {
        "question": _echo(read, asked),
        "possible": chosen["verdict"] != "blocked",
        "driver": {**_driver(chosen), **{key: decisions["driver"].get(key) for key in ("packages", "because")}},
        "cuda": decisions["cuda"],
        "toolkit": decisions["toolkit"].get("version"),
        "kernels": [_kernel(release, plan(gpus, release)) for release in releases],
        "changes": _of_driver(chosen["changes"]) if read.driver else [],
        "pending": _of_driver(chosen["pending"]) if read.driver else [],
        "findings": chosen["findings"],
    }


def _echo(read: Question, policy: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "gpus": [_cards(gpus) for gpus in read.meanings],
        "os": f"{read.os_id} {read.os_version}",
        "arch": read.arch,
        "kernel": read.kernel,
        "driver": read.driver,
        "policy": dict(policy),
    }


def _cards(gpus: tuple[Any, ...]) -> str:
    counted = Counter(f"{one.name} ({one.id})" for one in gpus)
    return " + ".join(f"{number} x {card}" if number > 1 else card for card, number in counted.items())


def _driver(plan: Mapping[str, Any]) -> dict[str, Any]:
    decision = plan["decisions"].get("driver") or {}
    return {key: decision.get(key) for key in DRIVER}


def _kernel(release: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    errors = [item["summary"] for item in plan["findings"] if item["severity"] == "error" and not item.get("waived")]
    untried = [item["summary"] for item in plan["findings"] if item["rule"] == UNTRIED]
    word = "no" if plan["verdict"] == "blocked" else "untried" if untried else "yes"
    return {
        "release": release,
        "answer": word,
        "driver": _driver(plan),
        "why": errors or untried or [one for one in plan["decisions"]["driver"]["because"] if one.startswith("not R")],
    }


def _of_driver(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what happens to the driver; the rest needs facts that a question does not have."""
    return [item for item in changes if item["role"] == "gpu_driver"]
