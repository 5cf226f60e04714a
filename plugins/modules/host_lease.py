#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_lease
short_description: Keep two runs on one host apart
version_added: 0.1.0
description:
  - Takes, renews or gives back the lease of the host, an entry with run id and expiry in
    C(/var/lib/baremetal-nvidia/state.json). Modules of this collection that change the host renew it.
  - While another run has the lease, the module fails and names that run. A lease that has expired is taken over, and
    the result says so.
  - The lease of a run that was killed on this controller is taken over at once, that of one elsewhere when it expires.
  - What a run that was cut off left open is reported, so that the next one can finish it or take it back.
  - Whether a lease stands is no change of the host, so the module is never C(changed).
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
attributes:
  check_mode:
    support: full
    description: Sees whether the lease can be had, and takes nothing.
  diff_mode:
    support: none
    description: There is nothing to show.
  idempotent:
    support: full
    description: A second call with the same arguments changes nothing.
  platform:
    support: full
    platforms: linux
    description: Where it runs.
options:
  run_id:
    description: Identity of the run. The same for the whole run.
    type: str
    required: true
  state:
    description: Take (or renew), or give back. A lease that is not this run's is left alone.
    type: str
    choices: [acquired, released]
    default: acquired
  ttl:
    description: Seconds for which the lease stands unless it is renewed.
    type: int
    default: 3600
  holder:
    description: Where the run is at home. Filled in by the action of this name.
    type: str
  dead:
    description:
      - Id of a run that is known to be dead, whose lease may be taken. The action of this name finds out when that run
        was started on the same controller.
    type: str
  force:
    description: Take the lease from another run, for one that is known to be dead.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Take the lease
  baremetal.nvidia.host_lease:
    run_id: "{{ ansible_facts['gpu_plan'].run_id }}"
  register: lease

- name: Give it back, unless an outer play of this run took it
  baremetal.nvidia.host_lease:
    run_id: "{{ ansible_facts['gpu_plan'].run_id }}"
    state: released
  when: lease.acquired_here
"""

RETURN = r"""
acquired_here:
  description: Whether this call took the lease, rather than renewing one that this run already had.
  returned: success
  type: bool
released:
  description: Whether this call gave the lease back.
  returned: success
  type: bool
took_over:
  description: The run whose lease had expired and was replaced, or null.
  returned: success
  type: str
note:
  description: What happened to an older lease, in words, or null.
  returned: success
  type: str
held_by:
  description: The lease of the other run.
  returned: failure, when another run has it
  type: dict
left_open:
  description: The transaction that a cut-off run left open, with its steps, or null.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils import lease
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["acquired", "released"], "default": "acquired"},
            "ttl": {"type": "int", "default": lease.TTL},
            "holder": {"type": "str"},
            "dead": {"type": "str"},
            "force": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    asked = module.params
    if not asked["run_id"].strip():
        module.fail_json(msg="run_id is empty: give the id of this run")
    if asked["ttl"] <= 0:
        module.fail_json(msg=f"ttl is {asked['ttl']}: give a number of seconds above 0")
    store = Store()
    outcome, released = lease.Outcome(here=False), False
    try:
        if module.check_mode:
            if asked["state"] == "acquired" and not asked["force"]:
                lease.take(store.read()["lease"], asked["run_id"], store.clock(), asked["ttl"], dead=asked["dead"])
        elif asked["state"] == "acquired":
            outcome = store.renew(asked["run_id"], asked["ttl"], asked["force"], asked["holder"], asked["dead"])
        else:
            released = store.release(asked["run_id"])
        left_open = store.read()["open"]
    except lease.LeaseHeld as exc:
        module.fail_json(msg=str(exc), held_by=exc.lease)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    if outcome.note:
        module.warn(outcome.note)
    module.exit_json(changed=False, acquired_here=outcome.here, released=released, took_over=outcome.took_over,
                     note=outcome.note, left_open=left_open)


if __name__ == "__main__":
    main()
