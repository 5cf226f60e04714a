# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd: which of its files is changed and how, told by what its configuration says now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import containerd as configuration
from ..rules.context import Context
from . import containerd_source, registry, toolkit

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
    "units",
    "disturbs",
    "program",
)
OPERATORS_RUNTIME = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
_OPERATORS_WORK = ("owner_leaves", "runtime_differs", "orphan_drop_in", "default_unknown")


def fill(context: Context, facts: object) -> None:
    """Fill in ``context.containerd``."""
    decision, wishes = context.containerd, context.wishes
    if not context.has_gpus or not context.uses("containerd"):
        return
    gone = wishes.containerd_state == "absent"
    if context.toolkit.version is None and not context.toolkit_by_operator and not gone:
        return
    read = facts if isinstance(facts, Mapping) else {}
    containers = read.get("containers")
    there = isinstance(containers, Mapping) and isinstance(containers.get("containerd"), Mapping)
    if gone and not there and containerd_source.installed(context) is None:
        return  # nothing to take out, and nothing is installed for it
    version = containerd_source.fill(context)
    if version is None:
        return
    answer = configuration.decide(
        containers if isinstance(containers, Mapping) else {},
        default_runtime=wishes.containerd_default_runtime,
        runtime_path=OPERATORS_RUNTIME if context.toolkit_by_operator else toolkit.RUNTIME_PATH,
        version=version,
        settings=_settings(context),
        state=wishes.containerd_state,
        record=_record(read.get("state")),
    )
    if there:
        context.containerd_notes = tuple(answer.notes)
    if context.toolkit_by_operator and not gone:
        decision.packages, decision.hold, decision.repositories, decision.archive = {}, [], [], {}
        _operators(context, answer)
        return
    told: dict[str, Any] = answer.as_dict()
    for name in _TOLD:
        setattr(decision, name, told.get(name))
    if gone:
        decision.packages, decision.hold, decision.repositories, decision.archive = {}, [], [], {}
    elif answer.owner == "host":
        decision.registry = registry.files(wishes.containerd_registry_hosts)


def _settings(context: Context) -> configuration.Settings:
    wishes = context.wishes
    if wishes.containerd_state == "absent":
        return configuration.Settings()
    folder = wishes.containerd_registry_config_path
    if folder is None and wishes.containerd_registry_hosts:
        folder = registry.FOLDER
    return configuration.Settings(wishes.containerd_sandbox_image, folder, wishes.containerd_systemd_cgroup,
                                  cri=True if wishes.containerd_source == "docker" else None)


def _record(state: object) -> Mapping[str, Any] | None:
    """Return what was set on this host before, by file."""
    configured = state.get("configured") if isinstance(state, Mapping) else None
    return configured if isinstance(configured, Mapping) else None


def _operators(context: Context, answer: Any) -> None:
    """Leave containerd to the operator's toolkit; what is wrong with its files is still told."""
    decision = context.containerd
    decision.version, decision.config_version, decision.path = answer.version, answer.config_version, answer.path
    decision.owner = answer.owner
    decision.because.append("the operator's toolkit configures containerd")
    context.containerd_notes = tuple(note for note in context.containerd_notes if note.kind not in _OPERATORS_WORK)
