#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: driver_runfile
short_description: Take out a driver that was installed from a runfile
version_added: 0.1.0
description:
  - Runs the own uninstaller of a driver that C(NVIDIA-Linux-….run) installed, then sets aside what it leaves, such as
    modules for other kernels, libraries of its version and its entry in DKMS. Nothing that a package owns is touched,
    and nothing is deleted but by the uninstaller.
  - Refuses while processes use the GPUs, and names them.
  - What is there is written down and the transaction opened in the state file before the first file goes. Called again
    after it was cut off, it goes on; O(state=finished) closes the transaction once packages are in place.
  - Packages that take its place are to be proved and fetched before.
extends_documentation_fragment:
  - baremetal.nvidia.host
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  state:
    description: V(absent) takes the runfile out, V(finished) notes that packages are in its place.
    type: str
    choices: [absent, finished]
    default: absent
  processes_may_stop:
    description: Whether it goes while processes use the GPUs. They are left alone until the host restarts.
    type: bool
    default: false
  timeout:
    description: Seconds that the uninstaller may take.
    type: int
    default: 1800
seealso:
  - module: baremetal.nvidia.driver_proof
  - module: baremetal.nvidia.package_set
"""

EXAMPLES = r"""
- name: Take the runfile out
  baremetal.nvidia.driver_runfile:
    lease: "{{ ansible_facts['gpu_plan']['run_id'] }}"
"""

RETURN = r"""
version:
  description: The version that the runfile installed, null where nothing tells it.
  returned: success
  type: str
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
moved:
  description: Files that the uninstaller had left, and that were set aside.
  returned: success
  type: list
  elements: str
left:
  description: What is still there, or in check mode what would go.
  returned: success
  type: list
  elements: str
backup:
  description: The directory that they were set aside to, null for none.
  returned: success
  type: str
resumed:
  description: Whether a run that was cut off had begun.
  returned: success
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.detect import detect
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.runfile.remove import Remover
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["absent", "finished"], "default": "absent"},
            "processes_may_stop": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 1800},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        store = Store()
        if not module.check_mode:
            store.renew(asked["lease"], doing="driver_runfile")
        remover = Remover(run, detect("/") or "apt", store)
        if asked["state"] == "finished":
            outcome = remover.finish(check=module.check_mode)
        else:
            outcome = remover.remove(asked["lease"] or "by hand", asked["processes_may_stop"], check=module.check_mode,
                                     timeout=asked["timeout"])
    except (HostError, OSError, ValueError) as exc:
        module.fail_json(msg=str(exc))
    shown = {"before": f"driver {outcome.version or 'from a runfile'}, of no package\n", "after": ""}
    module.exit_json(changed=outcome.changed, version=outcome.version, actions=outcome.actions, moved=outcome.moved,
                     left=outcome.left, backup=outcome.backup, resumed=outcome.resumed,
                     diff=shown if outcome.changed else {})


if __name__ == "__main__":
    main()
