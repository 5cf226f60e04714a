# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registry hosts of containerd: one ``hosts.toml`` a registry, which it reads at each pull."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..containerd import toml_text

FOLDER = "/etc/containerd/certs.d"


def files(hosts: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return path and content of each file."""
    return [{"path": f"{FOLDER}/{name}/hosts.toml", "content": _content(entry)} for name, entry in hosts.items()]


def _content(entry: Mapping[str, Any]) -> str:
    lines = ["# written by the Ansible collection baremetal.nvidia"]
    if entry["server"] is not None:
        lines.append(f"server = {toml_text.value(entry['server'])}")
    for host in entry["hosts"]:
        lines += ["", toml_text.header(("host", host["url"]))]
        lines += [f"  {key} = {toml_text.value(value)}" for key, value in host.items() if key != "url"]
    return "\n".join(lines) + "\n"
