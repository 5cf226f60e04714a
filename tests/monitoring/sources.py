# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources of metrics that the tests go through, and promtool."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import catalogue
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring.source import Source

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _all(exporter: tuple[int, ...]) -> frozenset[str]:
    return frozenset(one.name for one in catalogue.of_groups(catalogue.GROUPS, exporter))


SOURCES = {
    "full": Source("cluster", _all((4, 8, 3)), where="node"),
    "dcgm3": Source("cluster", _all((3, 6, 1)), where="node"),
    "plain": Source("cluster", catalogue.DEFAULT, where="instance", honor=True),
    "dcgm": Source("dcgm", _all((4, 8, 3))),
    "textfile": Source("textfile", catalogue.TEXTFILE),
}


def promtool(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run promtool and return how it ended."""
    found = subprocess.run([ROOT / "scripts" / "promtool.sh"], check=True, text=True, stdout=subprocess.PIPE)
    return subprocess.run([found.stdout.strip(), *map(str, arguments)], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=600)


def check(where: pathlib.Path, groups: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """Have promtool check rule groups."""
    file = where / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": groups}, width=10000), encoding="utf-8")
    return promtool("check", "rules", file)
