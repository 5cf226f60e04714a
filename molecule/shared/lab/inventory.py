# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the inventory of the hosts that are up, and the known_hosts that ssh checks them against."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from . import distros, hosts
from .settings import ROOT, Settings

# site.yml fills them; here they only have to be known.
EMPTY_GROUPS = ("gpu_ok", "gpu_change", "gpu_blocked", "gpu_pending", "gpu_refresh", "gpu_planned",
                "gpu_kernel_moves")


def _entry(settings: Settings, host: hosts.Host) -> dict[str, Any]:
    archive = {} if host.system is None else {"lab_archive": distros.source(settings)}
    return {
        "ansible_host": "127.0.0.1",
        "ansible_port": hosts.port(settings, host),
        "ansible_user": host.user,
        "ansible_become": host.user != "root",
        "ansible_ssh_private_key_file": str(hosts.client_key(settings)),
        "ansible_ssh_common_args": (f"-o UserKnownHostsFile={settings.state / 'keys' / 'known_hosts'} "
                                    "-o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"),
        **archive,
    }


def write(settings: Settings, up: list[hosts.Host], repositories: dict[str, Any]) -> Path:
    """Write hosts.yml, known_hosts and (for a lab beside the first) the shared group variables."""
    folder = settings.inventory
    folder.mkdir(parents=True, exist_ok=True)
    known = [f"[127.0.0.1]:{hosts.port(settings, host)} {' '.join(public.read_text().split()[:2])}\n"
             for host in up for public in [hosts.host_key(settings, host).with_suffix(".pub")]]
    (settings.state / "keys" / "known_hosts").write_text("".join(known))
    content = {"all": {
        "vars": {"lab_repositories": repositories},
        "children": {
            "gpu_hosts": {"hosts": {host.name: _entry(settings, host) for host in up}},
            **{group: {"hosts": {}} for group in EMPTY_GROUPS},
        }}}
    path = folder / "hosts.yml"
    header = "---\n# Written by scripts/lab: the hosts that are up. Do not edit.\n"
    path.write_text(header + yaml.safe_dump(content, sort_keys=False, width=160))
    shared = ROOT / "inventories" / "lab" / "group_vars"
    link = folder / "group_vars"
    if folder != shared.parent and not link.is_symlink():
        link.symlink_to(shared)
    return path
