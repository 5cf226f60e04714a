#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; nothing here runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_compare
short_description: Prove that a GPU host is as its plan says
description:
  - Compares the facts that were read in this run with the plan that was made from them, and fails with what differs.
  - Changes that wait for leave are no difference. A version that moved since an earlier plan of this run was applied
    is one.
  - Runs on the controller; no host is asked.
version_added: 0.1.0
author: baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  level:
    description:
      - V(static) checks what is installed - modules of every kernel that the plan counts on, their version and
        flavour, initrds.
      - V(device) also asks that the planned driver is loaded and every GPU answers.
      - V(auto) is V(device) where nvidia-smi answers, else V(static).
    type: str
    choices: [auto, static, device]
    default: auto
  drift:
    description:
      - What to do about kernels, holds, boot defaults and modules that moved behind our back. V(tell) names them and,
        where the package log says so, the command that did it; V(fail) fails for them too.
    type: str
    choices: [tell, fail]
    default: tell
    version_added: 0.2.0
attributes:
  check_mode:
    description: Can run in check mode.
    support: full
  diff_mode:
    description: Says what would change, if there is something.
    support: none
  action:
    description: Runs on the controller.
    support: full
seealso:
  - module: baremetal.nvidia.gpu_plan
"""

EXAMPLES = r"""
- name: Read the host again
  baremetal.nvidia.gpu_plan:
    gather: always

- name: Prove that it is as planned
  baremetal.nvidia.gpu_compare:
    level: static
"""

RETURN = r"""
level:
  description: What was proved, V(static) or V(device).
  returned: always
  type: str
differences:
  description: What keeps the host from being as planned.
  returned: always
  type: list
  elements: str
drift:
  description: What moved behind our back, with the command that did it where that is known.
  returned: always
  type: list
  elements: str
"""
