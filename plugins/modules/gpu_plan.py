#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; nothing here runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_plan
short_description: Plan what a GPU host needs
description:
  - Compares what is on the host (RV(ansible_facts.gpu_facts)) with the policy variables (C(gpu_*)) and the
    compatibility matrix, and returns one plan. Nothing on the host is changed, and no host is asked unless O(gather)
    says so.
  - Runs on the controller. The same facts, policy and matrix give the same plan on any machine.
  - A plan that this run made already is used again when facts, policy and matrix are the same; one that a fact cache
    kept from an earlier run never is.
  - A C(gpu_*) variable that looks like a misspelt policy variable is refused.
version_added: 0.1.0
author: baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  gather:
    description:
      - Whether M(baremetal.nvidia.gpu_facts) is run here, in the same task.
      - V(never) plans from the facts that are there and fails without any; V(missing) reads the host unless this run
        did so already; V(always) reads it again, as is right after a change.
    type: str
    choices: [never, missing, always]
    default: never
  cluster:
    description: What is in the Kubernetes cluster that the host is a node of; the operator's part of the plan needs it.
    type: dict
  facts:
    description: Facts to plan from, as M(baremetal.nvidia.gpu_facts) returned them, instead of those of the host.
    type: dict
  facts_file:
    description:
      - Facts stored on the controller, instead of those of the host. A directory holds C(HOST.json) or C(HOST.yml); a
        file holds the facts of one host, or a mapping of host names to facts.
      - A relative path is taken from the working directory.
    type: path
  stored:
    description: Whether the variable C(gpu_facts_file), where it is set, counts as O(facts_file).
    type: bool
    default: false
  keep_facts:
    description:
      - Whether facts that were read here are returned too. Thousands of hosts that are as planned cost less without.
    type: bool
    default: true
  group:
    description:
      - Whether the host is put into an inventory group by its plan, in the same task.
      - V(verdict) uses C(gpu_ok), C(gpu_change) (C(gpu_planned) in check mode), C(gpu_blocked), and C(gpu_pending) for
        a host that is as planned but for changes that wait for leave.
      - V(refresh) does the same, but puts a host whose package lists are older than C(gpu_cache_max_age) into
        C(gpu_refresh), outside of check mode.
      - Ansible calls a task that adds a host to a group "changed", so set C(changed_when) to V(false). What would
        change, in check mode, is then said by a task without O(group), which uses the same plan again.
    type: str
    choices: [none, verdict, refresh]
    default: none
  policy:
    description: Policy variables that win over the host's variables.
    type: dict
  max_age:
    description: Seconds after which facts that are there already are refused as too old; V(0) takes any.
    type: int
    default: 3600
  refresh_error:
    description: Why the package lists could not be refreshed; the plan then says so, and blocks if it needs them.
    type: str
  stop_on_blocked:
    description: Whether the task fails, with the findings, when the verdict is V(blocked).
    type: bool
    default: false
  stop_on_pending:
    description: Whether the task fails when changes wait for leave and C(gpu_pending_fails) is true.
    type: bool
    default: false
attributes:
  check_mode:
    description: Can run in check mode, and then says what would change.
    support: full
  diff_mode:
    description: In check mode the diff lists every change with before and after.
    support: full
  action:
    description: Runs on the controller.
    support: full
  idempotent:
    description: Never changes anything.
    support: full
seealso:
  - module: baremetal.nvidia.gpu_facts
  - module: baremetal.nvidia.gpu_report
"""

EXAMPLES = r"""
- name: Read and plan the host in one task
  baremetal.nvidia.gpu_plan:
    gather: missing

- name: Plan from facts that were stored a week ago
  baremetal.nvidia.gpu_plan:
    facts_file: /srv/facts
  delegate_to: localhost

- name: Ask what a newer branch would mean, without changing any variable
  baremetal.nvidia.gpu_plan:
    policy:
      gpu_driver_branch: "580"
  register: what_if
"""

RETURN = r"""
verdict:
  description: V(ok) = nothing to do, V(change), or V(blocked) = an error finding stands in the way.
  returned: success
  type: str
  sample: change
reused:
  description: Whether the plan that this run made earlier was used again.
  returned: success
  type: bool
ansible_facts:
  description: The plan, and the facts where they were read here. Absent when the plan was used again.
  returned: success
  type: dict
  contains:
    gpu_plan:
      description:
        - The plan, with C(verdict), C(decisions), C(changes), C(pending), C(findings), C(subject), C(run_id),
          C(digests), C(facts_age), C(facts_from) and C(lists_old).
      type: dict
      returned: success
    gpu_reboot_required:
      description:
        - Whether the host is as planned only after a restart, with or without leave for it (C(gpu_reboot_allowed)).
      type: bool
      returned: success
    gpu_facts:
      description: What was read on the host, or from O(facts_file).
      type: dict
      returned: when they were read here
"""
