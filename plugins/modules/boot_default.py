#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: boot_default
short_description: Make the boot loader start one kernel by default
version_added: 0.1.0
description:
  - Sets GRUB's saved default to the menu entry of one kernel, by its id, so that no newer kernel takes its place.
    Writes C(/etc/default/grub.d/zz-baremetal-nvidia.cfg) (or the two settings into C(/etc/default/grub) where GRUB
    reads no snippets), regenerates the menu where that is needed, saves the entry, and reads back what starts next.
  - Menus whose entries are files (BLS, as on RHEL) are set by the entry's id. C(UPDATEDEFAULT=no) keeps a new kernel
    from making itself the default there, and a C(GRUB_DEFAULT) that only the next menu would follow is put right in
    the settings. Where there is C(grubby), it is asked as well what starts next.
  - Where the environment block gets lost or damaged, C(/etc/grub.d/01_baremetal_nvidia) starts the same kernel, and
    not the first one of the menu. (Not with BLS, where the menu stays as the distribution made it.)
  - The menu is generated beside the present one, checked, and put in place in one step. So is the environment block.
  - A kernel without initrd is refused, and so are a C(/boot) that is read-only and an environment block that is
    damaged.
  - A host without a boot loader (a container) is left alone, with a reason.
  - With O(state=absent) the default is the distribution's again, unless that would start another kernel than now.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  state:
    description:
      - V(present) makes O(release) the default.
      - V(absent) takes out what V(present) wrote, and brings back what stood in its place. Where another kernel would
        start then, the default stays saved, with RV(skipped_reason).
    type: str
    choices: [present, absent]
    default: present
  release:
    description: Kernel release, as C(uname -r) prints it. Required with O(state=present).
    type: str
  entries:
    description:
      - Kernel releases that have an entry of their own in the menu afterwards, beside O(release).
      - A kernel that was just installed gets its entry so, while the default stays.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Boot the proved kernel, whatever else gets installed
  baremetal.nvidia.boot_default:
    release: 6.1.0-50-amd64

- name: Put a new kernel into the menu, and keep the default
  baremetal.nvidia.boot_default:
    release: 6.1.0-47-amd64
    entries: [6.1.0-50-amd64]

- name: Give the default back to the distribution
  baremetal.nvidia.boot_default:
    state: absent
"""

RETURN = r"""
boots:
  description: The kernel release that starts next by default, read back after the change. Null when skipped.
  returned: success
  type: str
entry:
  description: The menu entry, as ids from the top. Null when it is not in the menu yet (check mode) or when skipped.
  returned: success
  type: str
  sample: gnulinux-advanced-1234>gnulinux-6.1.0-50-amd64-advanced-1234
entries:
  description:
    - The menu entry of O(release) and of each of O(entries), null where it is not in the menu yet (check mode).
  returned: success
  type: dict
menu:
  description: Where entries come from. V(grub_cfg), or V(bls) where they are files. Null when skipped.
  returned: success
  type: str
once:
  description: An entry that is set to boot once before the default, or null. It is left alone.
  returned: success
  type: str
env_writable:
  description: Whether GRUB itself can write its environment at boot, as a trial boot needs. Null when unknown.
  returned: success
  type: bool
env_reason:
  description: Why it cannot, or why that is unknown.
  returned: success
  type: str
skipped_reason:
  description: Why nothing was set, or why the default was not given back, or null.
  returned: success
  type: str
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.default import BootDefault
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.release import BootRelease
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "release": {"type": "str"},
            "entries": {"type": "list", "elements": "str", "default": []},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
        required_if=[("state", "present", ("release",))],
    )
    release = module.params["release"] if module.params["state"] == "present" else None
    try:
        if not module.check_mode:
            Store().renew(module.params["lease"], doing=f"boot_default ({release or 'absent'})")
        if release is None:
            outcome = BootRelease(run).release(module.check_mode)
        else:
            outcome = BootDefault(run).set(release, module.check_mode, module.params["entries"])
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=outcome.changed, boots=outcome.boots, entry=outcome.entry, once=outcome.once,
                     entries=outcome.entries, menu=outcome.menu,
                     env_writable=outcome.env_writable, env_reason=outcome.env_reason, actions=outcome.actions,
                     skipped_reason=outcome.skipped_reason, diff=outcome.diff)


if __name__ == "__main__":
    main()
