# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner's questions for people's own playbooks: answered from variables alone, with no host at hand.

Each question goes through the same ``plan()`` or the same matrix as a host does, so an answer here is the answer there.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping
from typing import Any

from . import edge, engine, gpu_names, policy_vars, question
from .question import AskError

_PCI = re.compile(r"10de:[0-9a-f]{4}\Z", re.IGNORECASE)
#: How many meanings of names are looked at.
MOST = 64
_ANSWER = ("branch", "version", "flavour", "source", "method", "predicted", "because")


def driver_for(what: Any, system: str | None = None, arch: str = "x86_64", **policy: Any) -> dict[str, Any]:
    """Return the driver that the planner would choose.

    ``what``: a name (``H100``), a PCI id (``10de:2330``), a list of them, or facts of a host.
   ``system``: such as ``ubuntu 24.04``; not
    needed with facts. ``policy``: policy variables, with or without gpu_ (``cuda="12.4"``, ``driver_branch="580"``).
    Returns branch, version, flavour, source, method, predicted, because, and ``blocked``: the reasons against it, empty
    when there are none.
    """
    plan = plan_for(what, system, arch, policy)
    decision = plan["decisions"].get("driver") or {}
    errors = [item for item in plan["findings"] if item.get("severity") == "error" and not item.get("waived")]
    return {
        **{key: decision.get(key) for key in _ANSWER},
        "blocked": [f"{item['subject']}: {item['summary']}" for item in errors],
    }


def plan_for(what: Any, system: str | None, arch: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole plan of a host that has these GPUs, this system and nothing else known."""
    planner = engine.load()
    named = {name if name.startswith("gpu_") else f"gpu_{name}": edge.plain(value) for name, value in policy.items()}
    settings = planner.validate({})
    try:
        policy_vars.refuse_unknown(named, settings)
        settings = planner.validate(named)
        matrix = planner.matrix(settings.get("gpu_matrix_overlay") or ())
    except planner.refusals as error:  # pylint: disable=catching-non-exception
        raise AskError(str(error)) from error
    today = datetime.datetime.now(datetime.timezone.utc).date()
    meanings, hosts = _hosts(edge.plain(what), system, arch, matrix)
    plans = [planner.plan(str(facts.get("host") or "asked"), facts, settings, matrix, today) for facts in hosts]
    if meanings:
        question.agree(repr(what), meanings, plans)
    return plans[0]


def cuda_max(driver: Any) -> str | None:
    """Return the newest CUDA that a driver version runs natively, such as 13.0; None when it is not known."""
    found = engine.load().matrix(()).cuda_max(_driver(driver))
    return None if found is None else str(found)


def frameworks_ok(
    driver: Any, frameworks: Any, gpu: Any = "10de:20b5", system: str = "ubuntu 24.04"
) -> dict[str, dict[str, Any]]:
    """Return for each framework whether a driver version runs it there, and the wheel index to take.

    ``frameworks``: such as ``{pytorch: "2.7"}``. ``gpu``: a PCI id, a list of them or facts; by default an A100.
    A framework or version that the matrix does not know has ``ok: None``.
    """
    asked = edge.plain(frameworks)
    if not isinstance(asked, Mapping):
        raise AskError(f"frameworks is {asked!r}; a mapping such as {{pytorch: '2.7'}} is needed")
    plan = plan_for(gpu, system, "x86_64", {"driver_version": _driver(driver), "frameworks": asked})
    answers: dict[str, dict[str, Any]] = (plan["decisions"].get("cuda") or {}).get("frameworks") or {}
    return answers


def supported_on(driver: Any, kernel: Any, system: str, flavour: str = "open", source: str = "nvidia") -> bool:
    """Say whether a driver is known to build on a kernel release; what is not known is not supported."""
    if flavour not in ("open", "proprietary"):
        raise AskError(f"flavour is {flavour!r}; allowed are open and proprietary")
    if source not in ("distro", "nvidia"):
        raise AskError(f"source is {source!r}; allowed are distro and nvidia")
    os_id, os_version = _system(system)
    fit = engine.load().matrix(()).kernel_fit(_driver(driver), flavour, str(kernel), os_id, os_version, source)
    return bool(fit.answer == "builds")


def supported_by(gpu: Any, driver: Any) -> bool:
    """Say whether a driver version runs a GPU, given by PCI id or name; what is not known is not supported."""
    if not isinstance(gpu, str):
        raise AskError(f"{gpu!r} is neither a PCI id nor the name of a GPU")
    matrix, version = engine.load().matrix(()), _driver(driver)
    if matrix.branch(version.partition(".")[0]) is None:
        return False
    answers: dict[bool, list[str]] = {}
    for one in _products(matrix, gpu):
        answers.setdefault(matrix.supports(one, version).answer == "yes", []).append(f"{one.name} ({one.id})")
    if len(answers) > 1:
        runs, others = ", ".join(answers[True]), ", ".join(answers[False])
        said = f"{version} runs {runs}; not {others}"
        raise AskError(f"{gpu!r} may mean cards with different answers; name one of them. {said}")
    return True in answers


def _hosts(what: Any, system: str | None, arch: str, matrix: Any) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """Return what the GPUs may mean, and the facts of a host for each meaning; given facts mean themselves."""
    if isinstance(what, Mapping):
        return [], [dict(what)]
    names = [what] if isinstance(what, str) else what
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise AskError(f"{what!r} is neither a PCI id, the name of a GPU, a list of them, nor facts of a host")
    if system is None:
        raise AskError("system is needed with PCI ids and names, such as 'ubuntu 24.04'")
    os_id, os_version = _system(system)
    host = {"os": {"id": os_id, "version": os_version, "arch": arch}}
    if all(_PCI.match(one) for one in names):
        return [], [{**host, "gpus": [_gpu(number, one.lower()) for number, one in enumerate(names, 1)]}]
    meanings = list(itertools.islice(itertools.product(*(_products(matrix, one) for one in names)), MOST))
    hosts = [{**host, "gpus": [_gpu(number, one.id) for number, one in enumerate(gpus, 1)]} for gpus in meanings]
    return meanings, hosts


def _gpu(number: int, pci: str) -> dict[str, Any]:
    return {"address": f"0000:{number:02x}:00.0", "id": pci}


def _products(matrix: Any, name: str) -> tuple[Any, ...]:
    try:
        return gpu_names.find(matrix, name)
    except gpu_names.UnknownGpu as error:
        raise AskError(str(error)) from error


def _system(system: Any) -> tuple[str, str]:
    try:
        return question.system("os", system)
    except AskError:
        raise AskError(f"{system!r} is no system; such as 'ubuntu 24.04' or 'debian 13'") from None


def _driver(version: Any) -> str:
    if not isinstance(version, str) or not re.match(r"[0-9]+(\.[0-9]+)+\Z", version):
        raise AskError(f"{version!r} is no driver version; a text such as '580.178.04' is needed (quote it)")
    return str.__str__(version)
