# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd: which of its files is changed and how, told by what its configuration says now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import containerd as configuration
from ..model import version as versions
from ..model.facts import each
from ..rules.context import Context
from . import toolkit

_TOLD = (
    "version",
    "config_version",
    "plugin",
    "strategy",
    "path",
    "drop_in",
    "drop_in_path",
    "files",
    "owner",
    "refused",
    "low_level_runtime",
    "differences",
    "runtime_path",
    "default_runtime",
    "restart",
)
_PACKAGES = ("containerd.io", "containerd")
OPERATORS_RUNTIME = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
_OPERATORS_WORK = ("owner_leaves", "runtime_differs", "orphan_drop_in", "default_unknown")


def fill(context: Context, facts: object) -> None:
    """Fill in ``context.containerd``."""
    decision = context.containerd
    if not context.has_gpus or not context.uses("containerd"):
        return
    if context.toolkit.version is None and not context.toolkit_by_operator:
        return
    containers = facts.get("containers") if isinstance(facts, Mapping) else None
    installed = _installed(context)
    known = installed is not None or isinstance(context.host.containers.containerd, str)
    predicted = None if known else _predicted(context)
    if not known and predicted is None:
        decision.because.append("there is no containerd, and no source of the host is known to offer one")
        return
    answer = configuration.decide(
        containers if isinstance(containers, Mapping) else {},
        default_runtime=context.wishes.containerd_default_runtime,
        runtime_path=OPERATORS_RUNTIME if context.toolkit_by_operator else toolkit.RUNTIME_PATH,
        version=predicted[1] if predicted else None,
    )
    if isinstance(containers, Mapping) and isinstance(containers.get("containerd"), Mapping):
        context.containerd_notes = tuple(answer.notes)
    if context.toolkit_by_operator:
        _operators(context, answer)
        return
    told: dict[str, Any] = answer.as_dict()
    for name in _TOLD:
        setattr(decision, name, told.get(name))
    if installed is not None:
        decision.packages, decision.hold = {installed[0]: installed[1]}, [installed[0]]
    elif predicted is not None:
        decision.packages, decision.hold = {predicted[0]: predicted[2]}, [predicted[0]]


def _operators(context: Context, answer: Any) -> None:
    """Leave containerd to the operator's toolkit; what is wrong with its files is still told."""
    decision = context.containerd
    decision.version, decision.config_version, decision.path = answer.version, answer.config_version, answer.path
    decision.owner = answer.owner
    decision.because.append("the operator's toolkit configures containerd")
    context.containerd_notes = tuple(note for note in context.containerd_notes if note.kind not in _OPERATORS_WORK)


def _installed(context: Context) -> tuple[str, str] | None:
    for name in _PACKAGES:
        version = context.host.packages.version(name)
        if isinstance(version, str):
            return name, version
    return None


def _predicted(context: Context) -> tuple[str, str, str] | None:
    """Return package, containerd's version and the package's version that would be installed; None if none is known."""
    for name in _PACKAGES:
        for offered in each(context.host.packages.offers(name)):
            version = versions.upstream(offered)
            if version is not None:
                return name, version, offered
    system = context.host.os
    row = context.matrix.distro_package(f"{system.id} {system.version}", "containerd")
    version = versions.upstream(row.version) if row is not None else None
    return ("containerd", version, str(row.version)) if version is not None else None
