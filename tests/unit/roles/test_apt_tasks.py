# SPDX-License-Identifier: GPL-3.0-or-later
"""Every task that uses apt waits for its lock, restarts nothing, trusts no unsigned package (behaviour g01, g05)."""
from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import _bootstrap  # pylint: disable=unused-import
import pytest
import yaml

FILES = sorted(path for folder in ("roles/*/tasks", "roles/*/handlers", "playbooks")
               for path in _bootstrap.ROOT.glob(f"{folder}/*.yml"))
FORBIDDEN = ("allow_unauthenticated", "trusted=yes", "gpgcheck: false", "--allow-unauthenticated", "--force-yes")


def tasks(nodes: Any) -> Iterator[dict[str, Any]]:
    """All tasks of a file, those in blocks and plays included."""
    for node in nodes or []:
        yield node
        for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
            yield from tasks(node.get(key))


def apt_tasks() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for path in FILES:
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            if "ansible.builtin.apt" in task:
                found.append((f"{path.relative_to(_bootstrap.ROOT)}: {task['name']}", task))
    return found


@pytest.mark.parametrize("task", [task for _name, task in apt_tasks()], ids=[name for name, _task in apt_tasks()])
def test_apt_waits_and_restarts_nothing(task: dict[str, Any]) -> None:
    arguments = task["ansible.builtin.apt"]
    assert "gpu_lock_timeout" in str(arguments.get("lock_timeout")), "lock_timeout from the one variable"
    if "name" in arguments or "deb" in arguments:
        assert arguments.get("policy_rc_d") == 101
        assert "environment" in task, "NEEDRESTART_SUSPEND"


def test_transactions_are_made_by_package_set_alone() -> None:
    assert apt_tasks() == [], "package_set asks for the lock, denies services and undoes that after a cut"


@pytest.mark.parametrize("path", sorted(_bootstrap.ROOT.glob("roles/*/meta/options.yml")), ids=lambda p: p.parts[-3])
def test_the_lock_is_waited_for_five_minutes_by_default(path: pathlib.Path) -> None:
    option = yaml.safe_load(path.read_text(encoding="utf-8")).get("options", {}).get("gpu_lock_timeout")
    assert option is None or option["default"] >= 300


def test_a_task_without_a_timeout_would_be_found() -> None:
    bad = {"name": "x", "block": [{"name": "y", "ansible.builtin.apt": {"name": "z"}}]}
    (_block, found) = tasks([bad])
    with pytest.raises(AssertionError, match="lock_timeout"):
        test_apt_waits_and_restarts_nothing(found)


@pytest.mark.parametrize("word", FORBIDDEN)
def test_signatures_are_never_switched_off(word: str) -> None:
    files = [path for folder in ("roles", "playbooks", "plugins/modules", "plugins/action")
             for path in _bootstrap.ROOT.glob(f"{folder}/**/*") if path.suffix in (".yml", ".j2", ".py")]
    assert files and not [path for path in files if word in path.read_text(encoding="utf-8")]
