# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short texts about one plan: who the host is, the verdict in a line, the diff, the findings that block."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

SEVERITIES = ("error", "warning", "info")
_NOTHING = "nothing to do"
_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")


def subject(facts: Mapping[str, Any], matrix: Any = None) -> dict[str, Any]:
    """Return what a person knows the host by: gpus, os, kernel, driver, containerd; each a text or None.

    ``matrix`` gives names to PCI ids; without it, or for an id that it does not know, the id itself is shown.
    """
    return {
        "gpus": _gpus(facts.get("gpus"), matrix),
        "os": _os(_mapping(facts.get("os"))),
        "kernel": _kernel(_mapping(facts.get("kernel"))),
        "driver": _driver(_mapping(facts.get("driver")), _mapping(facts.get("kernel"))),
        "containerd": _text(_mapping(_mapping(facts.get("containers")).get("containerd")).get("version")),
    }


def headline(plan: Mapping[str, Any]) -> str:
    """Return the verdict and what stands behind it in one line."""
    counts = Counter(finding.get("severity") for finding in open_findings(plan))
    parts = [f"{len(plan['changes'])} change(s)" if plan.get("changes") else _NOTHING]
    if plan.get("pending"):
        needs = sorted({str(item["needs"]) for item in plan["pending"] if item.get("needs")})
        parts.append(f"{len(plan['pending'])} pending" + (f" ({', '.join(needs)})" if needs else ""))
    parts += [f"{counts[severity]} {severity}(s)" for severity in SEVERITIES[:2] if counts[severity]]
    return f"{plan['verdict']}: {', '.join(parts)}"


def group(plan: Mapping[str, Any], *, check_mode: bool, forced: bool = False) -> str:
    """Return the inventory group that the playbooks put the host into.

    gpu_blocked, gpu_change, gpu_pending (as planned but for changes that wait for leave) and gpu_ok; in check mode
    gpu_planned instead of gpu_change, so that no changing play finds a host. A ``forced`` host is in gpu_change even
    if it is as planned: every task of the roles runs on it.
    """
    verdict = str(plan["verdict"])
    if forced and verdict == "ok" and not check_mode:
        return "gpu_change"
    pending = plan.get("pending") or ()
    if verdict == "change" and pending and not plan.get("changes") and all(map(_elsewhere, pending)):
        return "gpu_pending"
    if verdict == "change":
        return "gpu_planned" if check_mode else "gpu_change"
    return "gpu_pending" if verdict == "ok" and plan.get("pending") else f"gpu_{verdict}"


def _elsewhere(change: Mapping[str, Any]) -> bool:
    """Say whether a pending change is made by a playbook of its own, so that the roles have nothing to do for it."""
    return str(change.get("needs") or "").startswith("playbook ")


def open_findings(plan: Mapping[str, Any], severities: Iterable[str] = SEVERITIES) -> list[Mapping[str, Any]]:
    """Return the findings that are not waived, worst first."""
    wanted = [severity for severity in SEVERITIES if severity in set(severities)]
    findings = [item for item in plan.get("findings") or () if not item.get("waived")]
    return [item for severity in wanted for item in findings if item.get("severity") == severity]


def finding_line(finding: Mapping[str, Any]) -> str:
    """Return a finding in one breath: rule, subject, reason, way out."""
    text = f"{finding.get('rule')} {finding.get('subject')}: {finding.get('summary')}"
    remedy = finding.get("remedy")
    return f"{text} — {remedy}" if remedy else text


def blocked(plan: Mapping[str, Any]) -> str:
    """Return why the host is blocked, as the message of a failed task."""
    errors = open_findings(plan, ["error"])
    lines = [finding_line(item) for item in errors] or ["the plan names no reason (this is a bug of the planner)"]
    return "Nothing was changed, because:\n" + "\n".join(f"- {line}" for line in lines)


def waiting(plan: Mapping[str, Any]) -> str:
    """Return which changes wait for leave, as the message of a failed task."""
    return "Changes wait for leave (gpu_pending_fails is true):\n" + "\n".join(
        f"- {pending_line(item)}" for item in plan.get("pending") or ()
    )


def change_line(change: Mapping[str, Any]) -> str:
    """Return a change as one line: role, verb, target, before → after, disruption."""
    before, after = short(change.get("before")), short(change.get("after"))
    movement = "" if before == after else f": {before} → {after}"
    disruption = change.get("disruption") or "none"
    tail = "" if disruption == "none" else f" [{disruption}]"
    return f"{change.get('role')} {change.get('action')} {change.get('target')}{movement}{tail}"


def change_lines(changes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return changes as lines: those of one role, verb and disruption together when there are three or more of them."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for change in changes:
        key = (change.get("role"), change.get("action"), change.get("disruption"), change.get("needs"))
        groups.setdefault(key, []).append(change)
    lines = []
    for same in groups.values():
        if len(same) < 3:
            lines += [pending_line(change) for change in same]
            continue
        first = same[0]
        disruption = first.get("disruption") or "none"
        tail = "" if disruption == "none" else f" [{disruption}]"
        targets = ", ".join(_movement(change) for change in same)
        lines.append(f"{first.get('role')} {first.get('action')} {len(same)}{tail}: {targets}{_leave(first)}")
    return lines


def _movement(change: Mapping[str, Any]) -> str:
    """Return target and what it becomes, and what it was where that was something."""
    target, before, after = change.get("target"), short(change.get("before")), short(change.get("after"))
    if before == after:
        return str(target)
    return f"{target} {after}" if before == "absent" else f"{target} {before} → {after}"


def _leave(change: Mapping[str, Any]) -> str:
    """Return what a pending change waits for: a variable, or a playbook that does it."""
    needs = change.get("needs")
    if not needs:
        return ""
    return f" — waits for {needs}" + ("" if " " in str(needs) else ": true")


def pending_line(change: Mapping[str, Any]) -> str:
    """Return a pending change as one line, with the variable that allows it."""
    return change_line(change) + _leave(change)


def driver_movement(plan: Mapping[str, Any]) -> str:
    """Return the driver that is there and, if it differs, the one that the plan wants."""
    there = (plan.get("subject") or {}).get("driver")
    wanted = (plan.get("decisions") or {}).get("driver") or {}
    version = wanted.get("version")
    if not version or wanted.get("owner") in ("operator", "none"):
        return there or "none"
    want = f"{version} {wanted.get('flavour') or ''}".strip() + (" (predicted)" if wanted.get("predicted") else "")
    return want if there == want else f"{there or 'none'} → {want}"


def cuda_line(plan: Mapping[str, Any]) -> str | None:
    """Tell the driver's CUDA and the compiler's apart, where toolkits are asked for on the host; else None."""
    cuda = (plan.get("decisions") or {}).get("cuda") or {}
    toolkit = cuda.get("toolkit")
    if not toolkit:
        return None
    compat = f" and {toolkit['compat']} by its compatibility package" if toolkit.get("compat") else ""
    nvcc = f"nvcc is of CUDA {toolkit['nvcc']}" if toolkit.get("nvcc") else "there is no nvcc yet"
    return (f"the driver runs CUDA up to {cuda.get('native_max') or 'unknown'}{compat}; {nvcc}; toolkits "
            f"{', '.join(toolkit['versions'])}, {toolkit['default']} by default")


def diff(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return Ansible's diff of a plan: the same lines, with what is there and what would be."""
    changes = plan.get("changes") or ()
    return {
        "before_header": "host",
        "after_header": "plan",
        "before": "".join(f"{_key(item)}: {short(item.get('before'))}\n" for item in changes),
        "after": "".join(f"{_key(item)}: {short(item.get('after'), 'done')}\n" for item in changes),
    }


def duration(seconds: int) -> str:
    """Return seconds as people say them: 90 s, 12 min, 5 h, 3 d."""
    for size, unit in ((172800, "d"), (7200, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds // {'d': 86400, 'h': 3600, 'min': 60}[unit]} {unit}"
    return f"{seconds} s"


def short(value: Any, absent: str = "absent", width: int = 60) -> str:
    """Return a value of a change as one short line."""
    if value is None or value == "":
        return absent
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {short(item)}" for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        text = ", ".join(short(item) for item in value) or absent
    else:
        text = _DIGEST.sub(r"\1…", " ".join(str(value).split()))
    return text if len(text) <= width else text[: width - 1] + "…"


def _key(change: Mapping[str, Any]) -> str:
    return f"{change.get('role')} {change.get('action')} {change.get('target')}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _gpus(gpus: Any, matrix: Any) -> str | None:
    if not isinstance(gpus, list):
        return None
    if not gpus:
        return "none"
    counted = Counter(_gpu_name(_mapping(gpu), matrix) for gpu in gpus)
    return ", ".join(f"{count} x {name}" for name, count in sorted(counted.items()))


def _gpu_name(gpu: Mapping[str, Any], matrix: Any) -> str:
    pci, subsystem = gpu.get("id"), gpu.get("subsystem")
    if matrix is not None and isinstance(pci, str):
        product = matrix.product(pci, subsystem if isinstance(subsystem, str) else None)
        if product is not None and getattr(product, "name", None):
            return str(product.name)
    return str(pci or "unknown")


def _os(facts: Mapping[str, Any]) -> str | None:
    if not facts.get("id"):
        return None
    return f"{facts['id']} {facts.get('version') or facts.get('codename') or ''}".strip()


def _kernel(facts: Mapping[str, Any]) -> str | None:
    running, boots = facts.get("running"), facts.get("default_boot")
    installed = facts.get("installed")
    known = {_mapping(item).get("release") for item in installed} if isinstance(installed, list) else set()
    if boots and boots != running and running in known:
        return f"{running}, next {boots}"
    return _text(boots or running)


def _driver(driver: Mapping[str, Any], kernel: Mapping[str, Any]) -> str | None:
    """Return what is loaded, else the module that the next kernel would load, else the library's version."""
    loaded = _mapping(driver.get("loaded"))
    if loaded.get("version"):
        return _flavoured(loaded)
    installed = kernel.get("installed")
    for item in installed if isinstance(installed, list) else ():
        module = _mapping(_mapping(item).get("nvidia"))
        if module.get("version") and _mapping(item).get("release") == kernel.get("default_boot"):
            return _flavoured(module)
    return _text(driver.get("library"))


def _flavoured(module: Mapping[str, Any]) -> str:
    return f"{module['version']} {module.get('flavour') or ''}".strip()
