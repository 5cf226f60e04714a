#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; nothing here runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_report
short_description: Show the plans of all hosts of the play
description:
  - Prints the plans that M(baremetal.nvidia.gpu_plan) made in this run as a table, hosts of the same shape in one row,
    and writes them as JSON or as an HTML page if asked to.
  - Runs once a play, on the controller; no host is asked.
  - Sets the custom statistics C(gpu_summary), which AWX keeps as an artifact of the job.
  - The table is printed as it is, not as a value; with a callback that programs read (json, jsonl, junit) it is left
    out.
version_added: 0.1.0
author: baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  path:
    description:
      - Files on the controller that get all plans, such as V(plan.json), or V(plan.json,fleet.html) for both.
      - A name that ends in V(.html) becomes a page that needs no network and no other file, for people; V(.json), or a
        name without a suffix, is for programs.
      - A relative path is taken from the working directory.
    type: list
    elements: path
    default: []
  show:
    description: Whether the table is printed.
    type: bool
    default: true
  title:
    description: The line above the table.
    type: str
    default: Plan
  hosts:
    description: The hosts to report. Empty means all hosts of the play.
    type: list
    elements: str
    default: []
  failed:
    description: Names of hosts that failed, for the summary.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Can run in check mode. The files are written there too, since they lie on the controller and were
      asked for.
    support: full
  diff_mode:
    description: Says what would change, if there is something.
    support: none
  action:
    description: Runs on the controller.
    support: full
  bypass_host_loop:
    description: Runs once a play.
    support: full
seealso:
  - module: baremetal.nvidia.gpu_plan
"""

EXAMPLES = r"""
- name: Show the plans, and keep them
  baremetal.nvidia.gpu_report:
    path: plan.json

- name: For programs and for people
  baremetal.nvidia.gpu_report:
    path: [plan.json, fleet.html]
"""

RETURN = r"""
summary:
  description: Counts of verdicts, changes, pending changes and findings, and the hosts that need someone.
  returned: success
  type: dict
  sample:
    hosts: 2
    verdicts: {blocked: 0, change: 1, ok: 1, unread: 0}
    reports: [/home/me/plan.json, /home/me/fleet.html]
    matrix_rows_old: 0
"""
