#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: package_source
short_description: Set up a package repository with its key checked by full fingerprint
version_added: 0.1.0
description:
  - Writes a deb822 source file and the keyring that it names in C(Signed-By), or a C(.repo) file of dnf or zypper and
    the key that it names in C(gpgkey), which rpm is made to trust too, so that no transaction has to ask.
  - The key is trusted by its full fingerprint, read from the key itself, without gpg. A key that is another one, or
    that
    comes with others, ends the task before anything is written.
  - Other files that name the same repository are taken out, with a backup. With two of them that disagree about
    C(Signed-By), apt reads no source at all; this module works on files alone and so works then too.
  - Never switches signature checks off. Content that does is refused.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  state:
    description:
      - V(present) writes the file. V(absent) writes none, and takes the repositories in O(replaces) out of all files
        but O(path).
    type: str
    choices: [present, absent]
    default: present
  path:
    description:
      - The source file. Its name ends in C(.sources) (apt), or in C(.repo), in C(/etc/yum.repos.d) or
        C(/etc/zypp/repos.d). Required with O(state=present).
    type: path
  content:
    description: The whole content of the source file. Required with O(state=present).
    type: str
  key:
    description: The key that signs the repository. Leave it out where the system's own keyring does.
    type: dict
    suboptions:
      path:
        description:
          - The keyring file, as C(Signed-By) or C(gpgkey) names it. For apt text if it ends in C(.asc) and packets
            otherwise, for rpm text.
        type: path
        required: true
      fingerprint:
        description: Full fingerprint, 40 hexadecimal digits (64 for a version 6 key). Blanks do not count.
        type: str
        required: true
      url:
        description: Where the host fetches the key, if the right one does not lie at O(key.path) yet.
        type: str
      content:
        description: The key itself, armored, instead of O(key.url).
        type: str
  retired_keys:
    description: Full fingerprints of keys that the vendor replaced. They are taken out of apt's global trust.
    type: list
    elements: str
    default: []
  remove_duplicates:
    description:
      - Whether other files that name the repository are taken out. In a C(.repo) file of others the repository is
        switched off.
    type: bool
    default: true
  replaces:
    description:
      - Addresses of other repositories that are taken out in the same way, such as that of another release of the
        system.
    type: list
    elements: str
    default: []
  proxy:
    description:
      - A proxy for the repository and its key. For apt it stands in a file of its configuration; the file of dnf or
        zypper has to name it itself, and this is for the key alone.
    type: str
  backup_keep:
    description: How many backups of a file are kept, in C(/var/lib/baremetal-nvidia/backups).
    type: int
    default: 5
  timeout:
    description: Seconds to wait for the key.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: The container toolkit's repository
  baremetal.nvidia.package_source:
    path: /etc/apt/sources.list.d/baremetal-nvidia-container-toolkit.sources
    content: |
      Types: deb
      URIs: https://nvidia.github.io/libnvidia-container/stable/deb/amd64/
      Suites: /
      Signed-By: /etc/apt/keyrings/baremetal-nvidia-container-toolkit.asc
    key:
      path: /etc/apt/keyrings/baremetal-nvidia-container-toolkit.asc
      url: https://nvidia.github.io/libnvidia-container/gpgkey
      fingerprint: C95B 321B 61E8 8C18 09C4 F759 DDCA E044 F796 ECB0

- name: NVIDIA's CUDA repository on RHEL 9, in the place of RHEL 8's
  baremetal.nvidia.package_source:
    path: /etc/yum.repos.d/baremetal-nvidia-cuda.repo
    content: |
      [baremetal-nvidia-cuda]
      name=NVIDIA CUDA repository (rhel9)
      baseurl=https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64
      gpgcheck=1
      gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-baremetal-nvidia-cuda
      module_hotfixes=1
    key:
      path: /etc/pki/rpm-gpg/RPM-GPG-KEY-baremetal-nvidia-cuda
      url: https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/D42D0685.pub
      fingerprint: 610C 7B14 E068 A878 070D A4E9 9CD0 A493 D42D 0685
    replaces:
      - https://developer.download.nvidia.com/compute/cuda/repos/rhel8/x86_64

- name: Of two files that name one repository one stays
  baremetal.nvidia.package_source:
    state: absent
    path: /etc/apt/sources.list.d/cuda.sources
    replaces:
      - https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
removed:
  description: Files out of which the repository or a retired key was taken.
  returned: success
  type: list
  elements: str
backups:
  description: Backups that were made.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.package_source import (
    Key,
    PackageSource,
    Wish,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

LARGEST_KEY = 1024 * 1024


def wish_of(params: dict[str, Any]) -> Wish:
    """The options as a wish."""
    key = Key(**params["key"]) if params["key"] else None
    return Wish(params["path"], params["content"], key, tuple(params["retired_keys"]), params["remove_duplicates"],
                tuple(params["replaces"]), params["proxy"] or None)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path"},
            "content": {"type": "str"},
            "key": {"type": "dict", "no_log": False, "options": {
                "path": {"type": "path", "required": True},
                "fingerprint": {"type": "str", "required": True},
                "url": {"type": "str"},
                "content": {"type": "str", "no_log": False},
            }},
            "retired_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "remove_duplicates": {"type": "bool", "default": True},
            "replaces": {"type": "list", "elements": "str", "default": []},
            "proxy": {"type": "str"},
            "backup_keep": {"type": "int", "default": 5},
            "timeout": {"type": "int", "default": 30},
            "lease": {"type": "str"},
        },
        required_if=[("state", "present", ("path", "content"))],
        supports_check_mode=True,
    )
    params = module.params
    if params["state"] == "absent" and not params["replaces"]:
        module.fail_json(msg="state=absent needs replaces: the addresses of the repositories that go. Nothing was done")

    def fetch(url: str) -> bytes:
        data: bytes = open_url(url, timeout=params["timeout"]).read(LARGEST_KEY)
        return data

    source = PackageSource(fetch, keep=params["backup_keep"], run=run)
    try:
        if not module.check_mode:
            Store().renew(params["lease"])
        if params["state"] == "absent":
            outcome = source.take_out(params["replaces"], params["path"], check=module.check_mode)
        else:
            outcome = source.set(wish_of(params), check=module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    diff = {"before": "\n".join(outcome.before), "after": "\n".join(outcome.after)} if outcome.changed else {}
    module.exit_json(changed=outcome.changed, actions=outcome.actions, removed=outcome.removed,
                     backups=outcome.backups, diff=diff)


if __name__ == "__main__":
    main()
