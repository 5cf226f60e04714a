#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: initramfs
short_description: Rebuild initial ramdisks one kernel at a time, and never lose a good one
version_added: 0.1.0
description:
  - Sees to it that a kernel module (nouveau) is not loaded from the initial ramdisk. An image that has the module but
    blocks it in its own C(modprobe.d) is good.
  - With O(driver_as_installed), an image that holds an nvidia module of another version or flavour than the one that is
    installed for its kernel is rebuilt too, since the host would load it at its next boot, under other libraries.
  - Each image is built beside the present one, looked into, synced, and renamed into place. It is refused, and the
    former one stays, when it cannot be read, still loads the module, holds modules of another kernel, or lacks a driver
    of disks or file systems that the former one had.
  - The former image is kept as C(/boot/initrd.img-RELEASE.baremetal-nvidia.old).
  - Images are built by initramfs-tools or dracut, whichever the host has. A host without a builder (a container) is
    left alone, with a reason.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  kernels:
    description: Kernel releases, as C(uname -r) prints them.
    type: list
    elements: str
    required: true
  absent_modules:
    description: Kernel modules that must not be loaded from the image.
    type: list
    elements: str
    default: [nouveau]
  driver_as_installed:
    description: Rebuild an image whose nvidia module is not the installed one. An image without one is good.
    type: bool
    default: false
  force:
    description: Rebuild images that are good as well. Not idempotent.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Take nouveau out of the initial ramdisks
  baremetal.nvidia.initramfs:
    kernels: [6.1.0-47-amd64, 6.1.0-50-amd64]

- name: After a driver move, have no image load the former module
  baremetal.nvidia.initramfs:
    kernels: [6.1.0-50-amd64]
    driver_as_installed: true
"""

RETURN = r"""
results:
  description: What became of each image.
  returned: success
  type: list
  elements: dict
  contains:
    kernel:
      description: Kernel release.
      type: str
    changed:
      description: Whether its image was (in check mode, would be) replaced.
      type: bool
    reason:
      description: Why, or null.
      type: str
    kept:
      description: Where the former image is, or null.
      type: str
  sample:
    - kernel: 6.1.0-50-amd64
      changed: true
      reason: it loads nouveau
      kept: /boot/initrd.img-6.1.0-50-amd64.baremetal-nvidia.old
skipped_reason:
  description: Why nothing could be built here, or null.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.initramfs import Initramfs, as_results
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kernels": {"type": "list", "elements": "str", "required": True},
            "absent_modules": {"type": "list", "elements": "str", "default": ["nouveau"]},
            "driver_as_installed": {"type": "bool", "default": False},
            "force": {"type": "bool", "default": False},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        if not module.check_mode:
            Store().renew(asked["lease"], doing=f"initramfs ({', '.join(asked['kernels'])})")
        images = Initramfs(run, driver_as_installed=asked["driver_as_installed"])
        outcome = images.rebuild(asked["kernels"], asked["absent_modules"], asked["force"], module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=outcome.changed, results=as_results(outcome), skipped_reason=outcome.skipped_reason,
                     diff=outcome.diff)


if __name__ == "__main__":
    main()
