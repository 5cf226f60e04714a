# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the host agree with its plan? Looked at anew, from facts, by other means than the planner's own changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import describe

LEVELS = ("auto", "static", "device")
#: Rules about what moved behind our back: a hold, a kernel, the boot default, a module.
DRIFT = ("KRN020", "KRN021", "KRN022", "KRN023")


def level_of(facts: Mapping[str, Any], wanted: str = "auto") -> str:
    """Return the level that is proved: device where a GPU answers, else static; or what was asked for."""
    if wanted not in LEVELS:
        raise ValueError(f"gpu_verify_level is {wanted!r}; allowed are {', '.join(LEVELS)}")
    if wanted != "auto":
        return wanted
    smi = _mapping(_mapping(facts.get("driver")).get("smi"))
    return "device" if smi.get("status") == "ok" else "static"


def differences(plan: Mapping[str, Any], facts: Mapping[str, Any], level: str = "auto") -> list[str]:
    """Return what keeps the host from being as planned, in sentences; an empty list means that it is.

    ``plan``: made from ``facts``, which were read after the change; its ``previous`` is what was applied. Pending
    changes are no difference. ``level``: one of LEVELS.
    """
    found = [describe.finding_line(item) for item in describe.open_findings(plan, ["error"])]
    found += [f"still to be done: {describe.change_line(item)}" for item in plan.get("changes") or ()]
    found += _moved(plan)
    decision = _mapping(_mapping(plan.get("decisions")).get("driver"))
    waiting = bool(plan.get("pending"))
    if decision.get("version") and decision.get("owner", "host") == "host":
        found += _modules(decision, facts, waiting)
        if level_of(facts, level) == "device":
            found += _device(decision, facts, waiting)
    return found


def drift(plan: Mapping[str, Any]) -> list[str]:
    """Return what moved behind our back, and by which command where the package log says it."""
    return [describe.finding_line(item) for item in describe.open_findings(plan) if item.get("rule") in DRIFT]


def _moved(plan: Mapping[str, Any]) -> list[str]:
    """The version that was applied must be the one that is planned now, unless it was a prediction."""
    was = _mapping(_mapping(plan.get("previous")).get("driver"))
    now = _mapping(_mapping(plan.get("decisions")).get("driver"))
    if was.get("predicted") or was.get("version") in (None, now.get("version")):
        return []
    return [f"driver {was.get('version')} was applied, but the host now asks for {now.get('version')}"]


def _modules(decision: Mapping[str, Any], facts: Mapping[str, Any], waiting: bool) -> list[str]:
    """Every kernel that the plan counts on has the planned module, of this version and flavour, and an initrd."""
    installed = _mapping(facts.get("kernel")).get("installed")
    if not isinstance(installed, list):
        return ["the installed kernels are unknown, so no module could be checked"]
    kernels = {item.get("release"): item for item in map(_mapping, installed)}
    found = []
    for release in decision.get("kernels") or ():
        kernel = kernels.get(release)
        if kernel is None:
            found.append(f"kernel {release} is part of the plan and not installed")
            continue
        module = kernel.get("nvidia")
        if not isinstance(module, Mapping):
            found.append(f"kernel {release} has no nvidia module")
        elif not waiting:
            found += [
                f"kernel {release}: the nvidia module's {key} is {module.get(key)}, planned is {decision.get(key)}"
                for key in ("version", "flavour")
                if decision.get(key) and module.get(key) != decision.get(key)
            ]
        if isinstance(module, Mapping) and module.get("vermagic_ok") is False:
            found.append(f"kernel {release}: the nvidia module was built for another kernel")
        if kernel.get("initrd") is False:
            found.append(f"kernel {release} has no initrd: it would not boot")
        inside = _mapping(kernel.get("nvidia_in_initrd")).get("version")
        if inside and isinstance(module, Mapping) and module.get("version") not in (None, inside):
            found.append(f"kernel {release}: its initrd holds nvidia {inside} and would load that, on disk is "
                         f"{module.get('version')}")
    return found


def _device(decision: Mapping[str, Any], facts: Mapping[str, Any], waiting: bool) -> list[str]:
    """The loaded driver is the planned one, and every GPU that the bus shows answers."""
    driver = _mapping(facts.get("driver"))
    smi, loaded = _mapping(driver.get("smi")), _mapping(driver.get("loaded"))
    if smi.get("status") != "ok":
        return [f"nvidia-smi does not answer ({smi.get('status') or 'missing'}), so no GPU could be checked"]
    found = []
    if not waiting and loaded.get("version") != decision.get("version"):
        found.append(f"the loaded driver is {loaded.get('version')}, planned is {decision.get('version')}")
    gpus = facts.get("gpus")
    if isinstance(gpus, list) and smi.get("gpus") != len(gpus):
        found.append(f"{smi.get('gpus')} of {len(gpus)} GPUs answer")
    return found + (_fabric(gpus) if isinstance(gpus, list) and not waiting else [])


def _fabric(gpus: list[Any]) -> list[str]:
    """Every GPU that tells a fabric has joined it: all else looks healthy before that, and CUDA does not start."""
    found = []
    for gpu in map(_mapping, gpus):
        state = _mapping(gpu.get("fabric"))
        if state and (state.get("state") != "Completed" or state.get("status") not in ("Success", None)):
            said = ", ".join(str(word) for word in (state.get("state"), state.get("status")) if word) or "unknown"
            found.append(f"the fabric of {gpu.get('address')} is not complete: {said}")
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
