#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: boot_once
short_description: Start a kernel once, for trial
version_added: 0.1.0
description:
  - Lets GRUB start a kernel at the next boot and only then. The default stays on the kernel that is proved, so that a
    panic, a power cycle or a watchdog brings the host back to it.
  - The kernel starts from an entry of its own, which restarts the host on a panic, an oops or a lock-up. That entry
    is never the default. It outlives a new menu and is gone when the trial ends.
  - C(baremetal-nvidia-trial-early.service) clears C(next_entry) early in the next boot, checks that it is gone, and
    notes which kernel came up. C(baremetal-nvidia-trial.service) says whether that kernel is healthy. The host has
    booted to its default target, the module loads in the version that was proved, and there is a default route if
    there was one before. Facts give the answer as C(boot.trial).
  - A hardware watchdog is armed by systemd for the time of the trial.
  - No unit is reloaded and nothing is started now. A trial takes effect with the next boot.
  - Refused where GRUB cannot write its environment (C(/boot) on software RAID, LVM, btrfs or ZFS), as it would then
    start the kernel again and again, where a restart goes past GRUB (kexec), where the default is not a saved one, and
    where the kernel or its initrd is missing.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  state:
    description:
      - V(armed) lets the kernel start at the next boot.
      - V(absent) ends the trial, whether it was won, lost or never started, and takes everything of it out. The boot
        default is not touched. To keep the kernel, make it the default first (M(baremetal.nvidia.boot_default)).
    type: str
    choices: [armed, absent]
    default: armed
  release:
    description:
      - Kernel release, as C(uname -r) prints it.
      - Required with O(state=armed). With O(state=absent) a trial of another kernel is then refused rather than ended.
    type: str
  panic:
    description: Seconds after which the kernel on trial restarts the host when it panics.
    type: int
    default: 30
  timeout:
    description: Seconds after its start within which the kernel has to be found healthy. Then the trial has failed.
    type: int
    default: 600
  fallback_reboot:
    description: Whether the host restarts by itself, into the default kernel, when the trial has failed.
    type: bool
    default: false
  watchdog:
    description: V(auto) arms a hardware watchdog where there is one.
    type: str
    choices: [auto, 'off']
    default: auto
  module:
    description: The module that has to load, as C(modprobe) names it.
    type: str
    default: nvidia
  version:
    description: The version that the module has to have. Without it any version will do.
    type: str
"""

EXAMPLES = r"""
- name: Try a kernel at the next boot
  baremetal.nvidia.boot_once:
    release: 6.1.0-50-amd64
    module: nvidia-current
    version: 535.261.03

- name: Restart the host
  ansible.builtin.reboot:

- name: End the trial
  baremetal.nvidia.boot_once:
    state: absent
"""

RETURN = r"""
entry:
  description: The trial's own menu entry. Null with O(state=absent).
  returned: success
  type: str
  sample: baremetal-nvidia-trial-6.1.0-50-amd64
boots:
  description: The kernel release that starts by default, after the trial or instead of it.
  returned: success
  type: str
arguments:
  description: What the kernel on trial gets beside its usual arguments.
  returned: success
  type: str
watchdog:
  description: The watchdog that the trial uses, as C(device) and C(identity), or null.
  returned: success
  type: dict
not_covered:
  description: After what the host does not come back by itself, one sentence each.
  returned: success
  type: list
  elements: str
trial:
  description: The trial as C(release), C(phase), C(since) and C(reason). Null with O(state=absent).
  returned: success
  type: dict
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.once import BootOnce, Outcome, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

ARGUMENTS = {
    "state": {"type": "str", "choices": ["armed", "absent"], "default": "armed"},
    "release": {"type": "str"},
    "panic": {"type": "int", "default": 30},
    "timeout": {"type": "int", "default": 600},
    "fallback_reboot": {"type": "bool", "default": False},
    "watchdog": {"type": "str", "choices": ["auto", "off"], "default": "auto"},
    "module": {"type": "str", "default": "nvidia"},
    "version": {"type": "str"},
    "lease": {"type": "str"},
}


def work(module: AnsibleModule) -> Outcome:
    """Do what the arguments say. Raises HostError, OSError."""
    asked = module.params
    if not module.check_mode:
        Store().renew(asked["lease"], doing=f"boot_once ({asked['state']} {asked['release'] or ''})".strip())
    once = BootOnce(run)
    if asked["state"] == "absent":
        return once.end(module.check_mode, asked["release"])
    names = ("release", "panic", "timeout", "fallback_reboot", "watchdog", "module", "version")
    return once.arm(Request(**{name: asked[name] for name in names}), module.check_mode)


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True,
                           required_if=[("state", "armed", ("release",))])
    try:
        outcome = work(module)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=outcome.changed, entry=outcome.entry, boots=outcome.boots, arguments=outcome.arguments,
                     watchdog=outcome.watchdog, not_covered=outcome.not_covered, trial=outcome.trial,
                     actions=outcome.actions, diff=outcome.diff)


if __name__ == "__main__":
    main()
