#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_guard
short_description: Refuse kernels that are typed in by hand
version_added: 0.1.0
description:
  - Puts a guard in front of the package manager. A transaction that would install a kernel that is not allowed, or
    remove a proved one, is refused before anything is unpacked, with a message that names the playbook to run instead.
  - Holds keep upgrades from moving a kernel. The guard is for commands that ask for one by name, and for holds that
    were taken away.
  - With apt it is a hook (C(DPkg::Pre-Install-Pkgs)), which unattended-upgrades and aptitude obey too. With dnf 4 it is
    a plugin, with dnf 5 an action of its actions plugin (1.4.0 or newer). What decides is one POSIX shell script,
    without Python and without the network.
  - It is closed on a positive match alone. When the script is missing, fails, or cannot read its list, the transaction
    goes through, with a line in the log.
  - One command is let through when it has E(BAREMETAL_NVIDIA_ALLOW=1) in its environment, or when root has made the
    file F(/run/baremetal-nvidia/allow-once), which is used up by that. Both leave a line in the log.
  - A plugin of zypper cannot stop a transaction, and C(dpkg -i) and C(rpm -i) ask no one. See RV(skipped_reason).
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  state:
    description: Whether the guard is there.
    type: str
    choices: [present, absent]
    default: present
  allowed:
    description: Kernel releases that may be installed, as C(uname -r) prints them. Those of O(proved) are too.
    type: list
    elements: str
    default: []
  proved:
    description: Kernel releases that may not be removed.
    type: list
    elements: str
    default: []
seealso:
  - module: baremetal.nvidia.kernel_pin
"""

EXAMPLES = r"""
- name: Let no other kernel in
  baremetal.nvidia.kernel_guard:
    allowed: [6.1.0-47-amd64, 6.1.0-50-amd64]
    proved: [6.1.0-47-amd64]

- name: Take the guard away
  baremetal.nvidia.kernel_guard:
    state: absent
"""

RETURN = r"""
via:
  description: By what the guard sees transactions. V(hook) is apt's, V(plugin) dnf 4's, V(actions) dnf 5's.
  returned: success
  type: list
  elements: str
  sample: [hook]
skipped_reason:
  description: Why there is no guard, or none for a part of what is on the host. None when nothing is missing.
  returned: success
  type: str
  sample: null
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
  sample: [write /var/lib/baremetal-nvidia/guard.list]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.kernel_guard.guard import Guard
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.detect import detect
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    releases = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "allowed": releases, "proved": releases,
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        store = Store()
        if not module.check_mode:
            store.renew(asked["lease"], doing="kernel_guard")
        outcome = Guard(detect() or "unknown", run).run(
            asked["state"] == "present", asked["allowed"], asked["proved"], check=module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=outcome.changed, via=outcome.via, skipped_reason=outcome.skipped_reason,
                     actions=outcome.actions, diff=outcome.diff)


if __name__ == "__main__":
    main()
