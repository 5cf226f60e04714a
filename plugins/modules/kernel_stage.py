#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_stage
short_description: Bring a kernel onto a host so that it can be taken back, whatever moment the power goes
version_added: 0.2.0
description:
  - Stands before and after the package transaction that installs a kernel. The transaction itself is a task of its own
    (M(ansible.builtin.apt), M(ansible.builtin.dnf), M(community.general.zypper)).
  - O(state=opened) sees that the kernel can come in (room in C(/boot), whole packages, a resolver that takes nothing
    out and brings in no other kernel), and writes down everything that taking it back needs, before a package moves.
    The packages that will be replaced are packed again from their files.
  - While it is open, C(update-grub) as package scripts find it in C(/var/lib/baremetal-nvidia/stage-bin) does nothing,
    so that the boot menu is never half written. M(baremetal.nvidia.boot_default) makes it anew afterwards.
  - O(state=checked) looks whether the kernel is whole - image, initrd with the disk and file system drivers of the
    present one, the NVIDIA module of the right version, every other out-of-tree module - and fails with what is not.
  - O(state=closed) ends it, and the kernel stays. O(state=undone) takes it back, down to the packages' versions,
    C(/boot), C(/lib/modules), DKMS' tree, marks and holds, compares that with what was written down, and fails where it
    differs.
  - O(state=recovered) finishes what a cut-off run left where the kernel is whole, takes it back where it is not, and
    says which. Where nothing had moved yet, what was written down (also in C(/boot)) is removed.
  - O(state=menu_kept) and O(state=menu_free) are for a transaction that only takes kernels out - the boot menu is left
    alone until M(baremetal.nvidia.boot_default) makes it anew.
extends_documentation_fragment:
  - baremetal.nvidia.host
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  state:
    description: The step.
    type: str
    choices: [opened, checked, closed, undone, recovered, menu_kept, menu_free]
    required: true
  release:
    description: Kernel release that comes in. Required with O(state=opened).
    type: str
  beside:
    description: Kernel release that stays the boot default. Required with O(state=opened).
    type: str
  packages:
    description: Packages that the transaction will install, each with its exact version. Required with O(state=opened).
    type: dict
  driver:
    description: Driver version that the kernel's NVIDIA module must have. Required with O(state=opened).
    type: str
  flavour:
    description: Flavour that it must have. Empty for either.
    type: str
    choices: [open, proprietary]
  signed:
    description:
      - Whether the NVIDIA modules, and O(others) unless they are unsigned in O(beside) too, must be signed, by a key
        that the kernel takes as far as the host can tell.
    type: bool
    default: false
  others:
    description: Other out-of-tree modules that the kernel must have, as the facts name them (C(extra_modules)).
    type: list
    elements: str
    default: []
  lock_timeout:
    description: Seconds to wait for the lock of the package manager. Then the process that has it is named.
    type: int
    default: 300
seealso:
  - module: baremetal.nvidia.driver_proof
  - module: baremetal.nvidia.boot_default
  - module: baremetal.nvidia.kernel_pin
"""

EXAMPLES = r"""
- name: Write down how to take the kernel back
  baremetal.nvidia.kernel_stage:
    state: opened
    release: 6.1.0-57-amd64
    beside: 6.1.0-47-amd64
    driver: 535.309.01
    packages:
      linux-image-6.1.0-57-amd64: 6.1.192-3
      linux-headers-6.1.0-57-amd64: 6.1.192-3

- name: See that it is whole
  baremetal.nvidia.kernel_stage:
    state: checked

- name: Let it stay
  baremetal.nvidia.kernel_stage:
    state: closed
"""

RETURN = r"""
how:
  description: What became of it - V(opened), V(whole), V(closed), V(finished), V(taken back) or V(nothing).
  returned: success
  type: str
moves:
  description: What the transaction will move, by the resolver, each with its former and new version.
  returned: success, with state opened
  type: dict
lines:
  description: What was done, one line each.
  returned: success
  type: list
  elements: str
problems:
  description: What was not whole.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage.stage import Outcome, Stage, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

SPEC: dict[str, Any] = {
    "state": {
        "type": "str",
        "choices": ["opened", "checked", "closed", "undone", "recovered", "menu_kept", "menu_free"],
        "required": True,
    },
    "release": {"type": "str"},
    "beside": {"type": "str"},
    "packages": {"type": "dict"},
    "driver": {"type": "str"},
    "flavour": {"type": "str", "choices": ["open", "proprietary"]},
    "signed": {"type": "bool", "default": False},
    "others": {"type": "list", "elements": "str", "default": []},
    "lock_timeout": {"type": "int", "default": 300},
    "lease": {"type": "str"},
}


def step(asked: dict[str, Any], stage: Stage, check: bool) -> Outcome:
    """Do what the state says; in check mode only what reads."""
    state = asked["state"]
    if state == "opened":
        return stage.open(
            Wish(
                release=asked["release"],
                beside=asked["beside"],
                packages={name: str(version) if version else None for name, version in asked["packages"].items()},
                driver=asked["driver"],
                flavour=asked["flavour"],
                signed=asked["signed"],
                others=tuple(asked["others"]),
            ),
            check,
        )
    if state == "recovered":
        return stage.recover(check)
    if check:
        return Outcome()
    if state in ("menu_kept", "menu_free"):
        return stage.menu(state == "menu_kept")
    return {"checked": stage.check, "closed": stage.close, "undone": stage.undo}[state]()


def main() -> None:
    module = AnsibleModule(
        argument_spec=SPEC,
        required_if=[("state", "opened", ("release", "beside", "packages", "driver"))],
        supports_check_mode=True,
    )
    asked = module.params
    try:
        store = Store()
        if not module.check_mode:
            store.renew(asked["lease"], doing=f"kernel_stage ({asked['state']})")
        stage = Stage(run, store, run_id=asked["lease"] or "", lock_timeout=asked["lock_timeout"])
        outcome = step(asked, stage, module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    for note in outcome.notes:
        module.warn(note)
    result = {"changed": outcome.changed, "how": outcome.how, "moves": outcome.moves, "lines": outcome.lines,
              "problems": outcome.problems}
    if asked["state"] == "checked" and outcome.problems:
        module.fail_json(msg="the kernel that came in is not whole: " + "; ".join(outcome.problems), **result)
    result["diff"] = {"before": "", "after": "".join(f"{name}: {move}\n" for name, move in outcome.moves.items())
                      or "".join(f"{line}\n" for line in outcome.lines)}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
