# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner's questions for people's own playbooks: answered from variables alone, with no host at hand.

Each question goes through the same ``plan()`` or the same matrix as a host does, so an answer here is the answer there.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from . import edge, engine, policy_vars

_PCI = re.compile(r"10de:[0-9a-f]{4}\Z", re.IGNORECASE)
_SYSTEM = re.compile(r"([a-z]+)[ -]?([0-9][0-9.]*)\Z")
_ANSWER = ("branch", "version", "flavour", "source", "method", "predicted", "because")


class AskError(ValueError):
    """A question that cannot be meant: names what was given and what is allowed."""


def driver_for(what: Any, system: str | None = None, arch: str = "x86_64", **policy: Any) -> dict[str, Any]:
    """Return the driver that the planner would choose.

    ``what``: a PCI id (``10de:2330``), a list of ids, or facts of a host. ``system``: such as ``ubuntu 24.04``; not
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
    facts = _facts(edge.plain(what), system, arch)
    named = {name if name.startswith("gpu_") else f"gpu_{name}": edge.plain(value) for name, value in policy.items()}
    settings = planner.validate({})
    try:
        policy_vars.refuse_unknown(named, settings)
        settings = planner.validate(named)
        matrix = planner.matrix(settings.get("gpu_matrix_overlay") or ())
    except planner.refusals as error:  # pylint: disable=catching-non-exception
        raise AskError(str(error)) from error
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return planner.plan(str(facts.get("host") or "asked"), facts, settings, matrix, today)


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


def _facts(what: Any, system: str | None, arch: str) -> dict[str, Any]:
    if isinstance(what, Mapping):
        return dict(what)
    ids = [what] if isinstance(what, str) else what
    if not isinstance(ids, list) or not ids:
        raise AskError(f"{what!r} is neither a PCI id, a list of PCI ids, nor facts of a host")
    for item in ids:
        if not isinstance(item, str) or not _PCI.match(item):
            raise AskError(f"{item!r} is no PCI id of NVIDIA; such as 10de:2330 (lspci -nn shows it)")
    if system is None:
        raise AskError("system is needed with PCI ids, such as 'ubuntu 24.04'")
    os_id, os_version = _system(system)
    return {
        "os": {"id": os_id, "version": os_version, "arch": arch},
        "gpus": [{"address": f"0000:{number:02x}:00.0", "id": item.lower()} for number, item in enumerate(ids, 1)],
    }


def _system(system: Any) -> tuple[str, str]:
    match = _SYSTEM.match(str(system).strip().lower())
    if match is None:
        raise AskError(f"{system!r} is no system; such as 'ubuntu 24.04' or 'debian 13'")
    return match[1], match[2]


def _driver(version: Any) -> str:
    if not isinstance(version, str) or not re.match(r"[0-9]+(\.[0-9]+)+\Z", version):
        raise AskError(f"{version!r} is no driver version; a text such as '580.178.04' is needed (quote it)")
    return str.__str__(version)
