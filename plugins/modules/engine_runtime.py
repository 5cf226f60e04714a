#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_runtime
short_description: Give Docker or CRI-O the nvidia runtime
version_added: 0.1.0
description:
  - Docker's C(/etc/docker/daemon.json) is merged. Whatever else it says stays, and the daemon reads it anew without
    a restart.
  - CRI-O gets the drop-in C(/etc/crio/crio.conf.d/99-nvidia.conf), with the monitor of its default runtime, and is
    restarted. Right before, in the same call, the GPU containers of the host are counted. With some of them there
    nothing is written unless O(allowed), and the result says so.
  - The program looks at the file before it is put in place. Afterwards the daemon has to know the runtime. Otherwise
    the former file is put back and the task fails with the reason.
  - A daemon that does not run only gets its file.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  engine:
    description: Whose runtime.
    type: str
    choices: [docker, crio]
    required: true
  state:
    description: V(absent) takes out what this module put in; what stood there before comes back.
    type: str
    choices: [present, absent]
    default: present
  runtime_path:
    description: The runtime's program.
    type: path
    default: /usr/bin/nvidia-container-runtime
  default_runtime:
    description: The default runtime. Empty keeps what is there.
    type: str
  cdi:
    description: Whether Docker reads CDI specifications (from its next start on). Empty keeps what is there.
    type: bool
  allowed:
    description: Whether CRI-O may restart under running GPU containers.
    type: bool
    default: false
  backup_keep:
    description: How many backups of the file are kept, in C(/var/lib/baremetal-nvidia/backups).
    type: int
    default: 5
  timeout:
    description: Seconds to wait until the daemon knows the runtime.
    type: int
    default: 30
seealso:
  - module: baremetal.nvidia.containerd_config
"""

EXAMPLES = r"""
- name: Give Docker the nvidia runtime
  baremetal.nvidia.engine_runtime:
    engine: docker

- name: Take it out of CRI-O again
  baremetal.nvidia.engine_runtime:
    engine: crio
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
  sample: [write /etc/docker/daemon.json, reload docker.service]
backup:
  description: The backup that was made; null without one.
  returned: success
  type: str
skipped_reason:
  description: Why nothing was done although something differs; null otherwise.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.engine_files import Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.engine_handler import EngineHandler
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import processes
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "engine": {"type": "str", "choices": ["docker", "crio"], "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "runtime_path": {"type": "path", "default": "/usr/bin/nvidia-container-runtime"},
            "default_runtime": {"type": "str"},
            "cdi": {"type": "bool"},
            "allowed": {"type": "bool", "default": False},
            "backup_keep": {"type": "int", "default": 5},
            "timeout": {"type": "int", "default": 30},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    wish = None if asked["state"] == "absent" else Wish(
        asked["runtime_path"], asked["default_runtime"] or None, asked["cdi"])
    try:
        store = Store()
        if not module.check_mode:
            store.renew(asked["lease"], doing=f"engine_runtime ({asked['engine']})")
        handler = EngineHandler(asked["engine"], run, lambda: processes.gpu_containers(Tree()), store,
                                keep=asked["backup_keep"], timeout=asked["timeout"], run_id=asked["lease"])
        outcome = handler.set(wish, module.check_mode, asked["allowed"])
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    diff = {}
    if outcome.before != outcome.after and outcome.changed:
        diff = {"before_header": handler.path, "after_header": handler.path, "before": outcome.shown_before,
                "after": outcome.shown_after}
    module.exit_json(changed=outcome.changed, actions=outcome.actions, backup=outcome.backup,
                     skipped_reason=outcome.skipped_reason, diff=diff)


if __name__ == "__main__":
    main()
