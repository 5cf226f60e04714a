# SPDX-License-Identifier: GPL-3.0-or-later
"""What helm 3 and helm 4 both know: helm 4 lists releases of every state by itself, and ends with an error at --all."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import yaml

TASKS = pathlib.Path(__file__).resolve().parents[3] / "roles" / "gpu_operator" / "tasks"
STATES = {"deployed", "failed", "pending", "superseded", "uninstalled", "uninstalling"}


def _asked(nodes: Any) -> Iterator[dict[str, Any]]:
    """Yield the arguments of helm_info, in blocks as well."""
    for node in nodes or []:
        if "kubernetes.core.helm_info" in node:
            yield node["kubernetes.core.helm_info"]
        for key in ("block", "rescue", "always"):
            yield from _asked(node.get(key))


def test_releases_of_every_state_are_asked_for_by_name() -> None:
    found = {path.name: list(_asked(yaml.safe_load(path.read_text(encoding="utf-8")))) for path in TASKS.glob("*.yml")}
    states = {name: [set(one["release_state"]) for one in listed if "release_state" in one]
              for name, listed in found.items()}
    # a release that is pending or failed has to be seen, or it would count as none
    assert states.pop("pending.yml") == states.pop("read.yml") == [STATES]
    assert not any(states.values())
