#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_restart
short_description: Restart containerd and see that it works
version_added: 0.1.0
description:
  - Restarts containerd, then waits until its socket, its API and its CRI plugin answer and the runtimes in
    O(handlers) are
    known to it. A restart does not end running containers.
  - Right before, in the same call, the GPU containers of the host are counted. With some of them there the restart
    is left
    out unless O(allowed), and the result says so.
  - If containerd does not come back, the files in O(restore) are put back, it is started with them, and the task
    fails with
    the reason.
  - Never reloads systemd's units, which takes GPUs from running containers under legacy mode.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
attributes:
  diff_mode:
    support: none
  idempotent:
    support: none
    description: Each call restarts. The role calls it only when something in force has changed.
options:
  allowed:
    description: Whether containerd may restart under running GPU containers.
    type: bool
    default: false
  handlers:
    description: Runtimes that must be known to CRI afterwards.
    type: list
    elements: str
    default: []
  restore:
    description:
      - Files to put back if it does not work, as RV(baremetal.nvidia.containerd_config#module:backups) has them.
      - Without any, those of a run that was cut off between its files and its restart.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file.
        type: path
        required: true
      backup:
        description: What it was before. Empty means that there was no such file.
        type: path
  absent:
    description: Runtimes that must not be known to CRI any more afterwards.
    type: list
    elements: str
    default: []
  by_owner:
    description: Whether the owner of this containerd restarts it by itself, so that it is only waited for.
    type: bool
    default: false
  services:
    description: The unit. Of several the first that is there.
    type: list
    elements: str
    default: [containerd.service]
  address:
    description: containerd's socket.
    type: path
    default: /run/containerd/containerd.sock
  path:
    description: containerd's main file.
    type: path
    default: /etc/containerd/config.toml
  program:
    description: containerd's program.
    type: str
    default: containerd
  timeout:
    description: Seconds to wait until it answers.
    type: int
    default: 60
seealso:
  - module: baremetal.nvidia.containerd_config
"""

EXAMPLES = r"""
- name: Let containerd read its files
  baremetal.nvidia.containerd_restart:
    handlers: [nvidia]
    restore: "{{ containerd_files['backups'] }}"
"""

RETURN = r"""
gpu_containers:
  description: GPU containers that were running right before. Null where that could not be told.
  returned: success
  type: int
handlers:
  description: Runtimes that are known to it afterwards.
  returned: success
  type: list
  elements: str
skipped_reason:
  description: Why it was not restarted, or null.
  returned: success
  type: str
actions:
  description: What was done, or in check mode would be.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.config_files import Placed
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.restart import Restart, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import processes
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "allowed": {"type": "bool", "default": False},
            "handlers": {"type": "list", "elements": "str", "default": []},
            "restore": {"type": "list", "elements": "dict", "default": [], "options": {
                "path": {"type": "path", "required": True}, "backup": {"type": "path"}}},
            "absent": {"type": "list", "elements": "str", "default": []},
            "by_owner": {"type": "bool", "default": False},
            "services": {"type": "list", "elements": "str", "default": ["containerd.service"]},
            "address": {"type": "path", "default": "/run/containerd/containerd.sock"},
            "path": {"type": "path", "default": "/etc/containerd/config.toml"},
            "program": {"type": "str", "default": "containerd"},
            "timeout": {"type": "int", "default": 60},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    params = module.params
    wish = Wish(services=tuple(params["services"] or ["containerd.service"]), address=params["address"],
                program=params["program"], main=params["path"],
                handlers=tuple(params["handlers"]), absent=tuple(params["absent"]), by_owner=params["by_owner"],
                allowed=params["allowed"], timeout=params["timeout"],
                restore=tuple(Placed(item["path"], item["backup"] or None) for item in params["restore"]))
    store = Store()
    try:
        if not module.check_mode:
            store.renew(params["lease"])
        restart = Restart(run, lambda: processes.gpu_containers(Tree("/")), store)
        outcome = restart(wish, check=module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=outcome.changed, gpu_containers=outcome.gpu_containers, handlers=outcome.handlers,
                     skipped_reason=outcome.skipped_reason, actions=outcome.actions)


if __name__ == "__main__":
    main()
