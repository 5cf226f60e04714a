# SPDX-License-Identifier: GPL-3.0-or-later
"""Package managers wait for their lock, restart nothing, trust no unsigned package (behaviour g01, g05)."""
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


def apt_tasks(path: pathlib.Path) -> list[str]:
    nodes = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [f"{path.name}: {task.get('name')}" for task in tasks(nodes) if "ansible.builtin.apt" in task]


def test_transactions_are_made_by_package_set_alone() -> None:
    found = [name for path in FILES for name in apt_tasks(path)]
    assert FILES and found == [], "package_set asks for the lock, denies services and undoes that after a cut"


@pytest.mark.parametrize("path", sorted(_bootstrap.ROOT.glob("roles/*/meta/options.yml")), ids=lambda p: p.parts[-3])
def test_the_lock_is_waited_for_five_minutes_by_default(path: pathlib.Path) -> None:
    option = yaml.safe_load(path.read_text(encoding="utf-8")).get("options", {}).get("gpu_lock_timeout")
    assert option is None or option["default"] >= 300


def test_a_task_that_uses_apt_would_be_found(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "main.yml"
    path.write_text("[{name: x, block: [{name: y, ansible.builtin.apt: {name: z}}]}]")
    assert apt_tasks(path) == ["main.yml: y"]


@pytest.mark.parametrize("word", FORBIDDEN)
def test_signatures_are_never_switched_off(word: str) -> None:
    files = [path for folder in ("roles", "playbooks", "plugins/modules", "plugins/action")
             for path in _bootstrap.ROOT.glob(f"{folder}/**/*") if path.suffix in (".yml", ".j2", ".py")]
    assert files and not [path for path in files if word in path.read_text(encoding="utf-8")]
