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

_PACKAGES = ("containerd.io", "containerd")


def fill(context: Context, facts: object) -> None:
    """Fill in ``context.containerd``."""
    decision = context.containerd
    if not context.has_gpus or context.wishes.container_runtime != "containerd":
        return
    if context.toolkit.version is None:
        return
    containers = facts.get("containers") if isinstance(facts, Mapping) else None
    installed = _installed(context)
    known = installed is not None or isinstance(context.host.containers.containerd, str)
    predicted = None if known else _predicted(context)
    answer = configuration.decide(
        containers if isinstance(containers, Mapping) else {},
        default_runtime=context.wishes.containerd_default_runtime,
        runtime_path=context.toolkit.runtime_path or toolkit.RUNTIME_PATH,
        version=predicted[1] if predicted else None,
    )
    told: dict[str, Any] = answer.as_dict()
    decision.version = told.get("version")
    decision.config_version = told.get("config_version")
    decision.plugin = told.get("plugin")
    decision.strategy = str(told.get("strategy"))
    decision.path = told.get("path")
    decision.drop_in = told.get("drop_in_path") or told.get("drop_in")
    decision.runtime_path = told.get("runtime_path")
    decision.default_runtime = told.get("default_runtime")
    decision.restart = bool(told.get("restart"))
    if installed is not None:
        decision.packages, decision.hold = {installed[0]: installed[1]}, [installed[0]]
    elif predicted is not None:
        decision.packages, decision.hold = {predicted[0]: predicted[2]}, [predicted[0]]
    if isinstance(containers, Mapping) and isinstance(containers.get("containerd"), Mapping):
        context.containerd_notes = tuple(answer.notes)


def _installed(context: Context) -> tuple[str, str] | None:
    for name in _PACKAGES:
        version = context.host.packages.version(name)
        if isinstance(version, str):
            return name, version
    return None


def _predicted(context: Context) -> tuple[str, str | None, str | None] | None:
    """Return package, containerd's version and the package version that would be installed."""
    for name in _PACKAGES:
        for offered in each(context.host.packages.offers(name)):
            return name, versions.upstream(offered.replace("~ds1", "")), offered
    return ("containerd", None, None)
