#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_archive
short_description: Install containerd, runc and CNI plugins from their projects' release files
version_added: 0.1.0
description:
  - Fetches the release files, checks each by its SHA-256, starts containerd and runc once apart, and only then puts the
    programs in place, each by a rename. A host on which they lie already is left alone.
  - containerd's programs go to C(/usr/local/bin), runc to C(/usr/local/sbin), CNI plugins to C(/opt/cni/bin).
  - Where no unit of containerd is there, one is written and enabled, without a reload of systemd's units.
  - Starts or restarts nothing. See M(baremetal.nvidia.containerd_restart).
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
attributes:
  diff_mode:
    support: none
options:
  parts:
    description: Release files by name. V(containerd), V(runc) and V(cni) are known.
    type: dict
    required: true
    suboptions:
      containerd:
        description: containerd's archive, as C(version), C(url) and C(sha256).
        type: dict
        suboptions: &part
          version:
            description: The version.
            type: str
            required: true
          url:
            description: Where the host fetches it.
            type: str
            required: true
          sha256:
            description: SHA-256 of the file.
            type: str
            required: true
      runc:
        description: The program runc.
        type: dict
        suboptions: *part
      cni:
        description: The archive of the CNI plugins.
        type: dict
        suboptions: *part
  proxy:
    description: A proxy that the files are fetched through.
    type: str
  timeout:
    description: Seconds that each answer of a server may take.
    type: int
    default: 60
seealso:
  - module: baremetal.nvidia.containerd_config
  - module: baremetal.nvidia.containerd_restart
"""

EXAMPLES = r"""
- name: Install containerd and runc from their release files
  baremetal.nvidia.containerd_archive:
    parts:
      containerd:
        version: 2.1.9
        url: https://mirror.example.net/containerd-2.1.9-linux-amd64.tar.gz
        sha256: "{{ containerd_sha256 }}"
      runc:
        version: 1.3.6
        url: https://mirror.example.net/runc.amd64
        sha256: "{{ runc_sha256 }}"
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import proxies
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.archive import Archive, Part
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

PARTS = ("containerd", "runc", "cni")


def main() -> None:
    text = {"type": "str", "required": True}
    part = {"type": "dict", "options": {"version": text, "url": text, "sha256": text}}
    module = AnsibleModule(
        argument_spec={
            "parts": {"type": "dict", "required": True, "options": dict.fromkeys(PARTS, part)},
            "proxy": {"type": "str"},
            "timeout": {"type": "int", "default": 60},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    params = module.params

    def fetch(url: str) -> bytes:
        with proxies.through(params["proxy"]):
            data: bytes = open_url(url, timeout=params["timeout"]).read()
        return data

    parts = [Part(name, **params["parts"][name]) for name in PARTS if params["parts"].get(name)]
    try:
        if not module.check_mode:
            Store().renew(params["lease"])
        outcome = Archive(fetch, run)(parts, check=module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=bool(outcome.actions), actions=outcome.actions)


if __name__ == "__main__":
    main()
