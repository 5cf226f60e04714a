# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is cut off in the middle of an answer must not keep a run waiting for ever."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]


def restarts(tasks: list[dict[str, Any]], args: str = "") -> Iterator[tuple[str, str]]:
    for task in tasks:
        own = str(task.get("vars", {}).get("ansible_ssh_extra_args", args))
        if "ansible.builtin.reboot" in task or "reboot" in task:
            yield task["name"], own
        for part in ("block", "rescue", "always"):
            yield from restarts(task.get(part, []), own)


FOUND = [(str(path.relative_to(ROOT)), *found) for path in sorted(ROOT.glob("roles/*/tasks/*.yml"))
         for found in restarts(yaml.safe_load(path.read_text()) or [])]


def test_there_are_restarts_to_look_at() -> None:
    assert {"gpu_kernel", "gpu_driver"} <= {path.split("/")[1] for path, _name, _args in FOUND}


@pytest.mark.parametrize("path, name, args", FOUND)
def test_each_restart_asks_whether_its_connection_lives(path: str, name: str, args: str) -> None:
    assert "-o ServerAliveInterval=" in args and "-o ControlPath=none" in args, f"{path}: {name}"
    assert args.startswith("{{ __"), "what ssh is called with here stays"
