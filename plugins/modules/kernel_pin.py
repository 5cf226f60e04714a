#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_pin
short_description: Keep a set of packages, such as a kernel family, from moving
version_added: 0.1.0
description:
  - Holds the packages of a set that are installed, and blocks those that are not, so that no upgrade, no new dependency
    and no automatic upgrade moves them. All of the set or nothing of it.
  - On Debian and Ubuntu these are dpkg holds, an apt preferences file with a negative priority, and an exclusion for
    unattended-upgrades.
  - With dnf 4 these are entries of the versionlock plugin or, where that is not installed or switched off, exclusions
    in F(/etc/dnf/dnf.conf). With dnf 5 they are entries of F(/etc/dnf/versionlock.toml). A host that has both is pinned
    for both. dnf-automatic follows all of them. Where PackageKit or microdnf of dnf 4's generation is installed, which
    follow exclusions only, there are both.
  - With zypper these are locks in F(/etc/zypp/locks). YaST's online update, os-update, transactional-update and
    C(zypper purge-kernels) follow them. A person at a terminal can still answer zypper's question with "remove lock".
  - While a set holds kernels, C(installonly_limit) of dnf is made unlimited, since dnf throws out the oldest kernel
    and spares only the running one. A number that leaves room for two more kernels than there are is kept. The former
    number comes back when the set is released.
  - Holds that people made are left alone and reported as theirs, also when the set is released.
  - Half a pin is refused. A kernel family of which one installed package stays free still moves.
  - Several sets stand beside each other. A call is about its own set alone.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  set:
    description: Name of the set. Letters, digits, C(_).
    type: str
    default: kernel
  state:
    description:
      - V(present) makes the set as listed; names of it that are no longer listed are released.
      - V(absent) releases the names given, or the whole set when none is given.
    type: str
    choices: [present, absent]
    default: present
  packages:
    description:
      - Names (or globs) that shall not move. What is installed is held; what is not, is blocked.
      - A glob is about installed packages alone.
    type: list
    elements: str
    default: []
  patterns:
    description: Regular expressions; installed packages whose whole name one of them matches are held too.
    type: list
    elements: str
    default: []
  deny:
    description: Names (or globs) that shall not come in. One that is installed is held instead.
    type: list
    elements: str
    default: []
  manual:
    description: Installed packages to mark as installed by hand, so that autoremove leaves them.
    type: list
    elements: str
    default: []
  lifted:
    description:
      - Names of the set that are free for now, since the next task changes them. The next call without them closes the
        gap.
    type: list
    elements: str
    default: []
  why:
    description: The reason, kept in the state file and reported.
    type: str
    default: the kernel moves only to one with a proved NVIDIA module
  lock_timeout:
    description: Seconds to wait for the lock of the package manager. Then the process that has it is named.
    type: int
    default: 300
seealso:
  - module: baremetal.nvidia.host_lease
"""

EXAMPLES = r"""
- name: Hold the kernel and its headers, and keep other flavours out
  baremetal.nvidia.kernel_pin:
    packages: [linux-image-amd64, linux-headers-amd64, linux-image-6.1.0-50-amd64, linux-headers-6.1.0-50-amd64]
    deny: [linux-image-rt-amd64, linux-image-cloud-amd64]
    manual: [linux-image-6.1.0-50-amd64]

- name: Hold whatever of the driver is installed
  baremetal.nvidia.kernel_pin:
    set: driver
    patterns: ['(lib)?nvidia-.*', 'libcuda1']
    why: driver and libraries move together

- name: Release it all
  baremetal.nvidia.kernel_pin:
    state: absent
"""

RETURN = r"""
held:
  description: Each name that is held or blocked now, those of other sets and of people included.
  returned: success
  type: list
  elements: dict
  contains:
    package:
      description: Its name.
      type: str
    how:
      description:
        - V(hold) for what is installed and V(preference) for what is kept out, with apt. V(versionlock) or V(exclude)
          with dnf, V(lock) with zypper.
      type: str
    owner:
      description: V(ours) or V(person).
      type: str
    why:
      description: The reason.
      type: str
  sample:
    - package: linux-image-amd64
      how: hold
      owner: ours
      why: the kernel moves only to one with a proved NVIDIA module
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
  sample: [hold linux-image-amd64, write /etc/apt/preferences.d/baremetal-nvidia]
waited:
  description: Seconds that were spent waiting for the lock of the package manager.
  returned: success
  type: float
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.detect import backend
from ansible_collections.baremetal.nvidia.plugins.module_utils.pin import Pin, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    names = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "set": {"type": "str", "default": "kernel"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "packages": names, "patterns": names, "deny": names, "manual": names, "lifted": names,
            "why": {"type": "str", "default": "the kernel moves only to one with a proved NVIDIA module"},
            "lock_timeout": {"type": "int", "default": 300},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    request = Request(
        pin_set=asked["set"], present=asked["state"] == "present", why=asked["why"],
        lock_timeout=asked["lock_timeout"],
        **{key: tuple(asked[key]) for key in ("packages", "patterns", "deny", "manual", "lifted")},
    )
    try:
        store = Store()
        if not module.check_mode:
            store.renew(asked["lease"], doing=f"kernel_pin ({asked['set']})")
        outcome = Pin(backend(run), store).run(request, check=module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=outcome.changed, actions=outcome.actions, held=outcome.held,
                     waited=round(outcome.waited, 1), diff=outcome.diff)


if __name__ == "__main__":
    main()
