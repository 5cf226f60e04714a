#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; nothing here runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_ask
short_description: Answer a question about GPUs, drivers, kernels and CUDA without a host
description:
  - Asks the planner what it would do on a host of which only the question is known. The answer is the one that such a
    host would get from M(baremetal.nvidia.gpu_plan).
  - Policy variables of the play, such as C(gpu_cuda), count too; those in the question come first.
  - Runs once a play, on the controller; no host is asked. Prints the answer and returns it.
version_added: 0.1.0
author: baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  question:
    description:
      - C(gpu) is a name such as V(H100), a PCI id such as V(10de:2330), or a list of them; V(8 x H100) counts. Needed.
      - C(os) is the system, such as V(ubuntu 24.04). Needed.
      - C(arch) is V(x86_64) or V(aarch64).
      - C(kernel) is the kernel that runs, C(kernels) are kernels to be judged; without either, those are judged that
        the matrix knows of the system.
      - C(driver) is the version that is installed, C(flavour) that of its modules, C(secure_boot) whether it is on.
      - Any policy variable, with or without C(gpu_), such as C(cuda), C(frameworks) or C(driver_branch).
    type: dict
    required: true
  show:
    description: Whether the answer is printed.
    type: bool
    default: true
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
  bypass_host_loop:
    description: Runs once a play.
    support: full
seealso:
  - module: baremetal.nvidia.gpu_plan
  - plugin: baremetal.nvidia.gpu_ask
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Which driver
  baremetal.nvidia.gpu_ask:
    question:
      gpu: H100
      os: ubuntu 24.04
      frameworks: {pytorch: "2.7"}

- name: What must change for CUDA 13
  baremetal.nvidia.gpu_ask:
    question:
      gpu: T4
      os: debian 12
      kernel: 6.1.0-57-amd64
      driver: "535.309.01"
      cuda: "13"
"""

RETURN = r"""
answer:
  description:
    - C(possible), C(driver), C(cuda), C(toolkit), C(kernels), C(changes), C(pending), C(findings) and C(question).
  returned: success
  type: dict
lines:
  description: The answer as it is printed.
  returned: success
  type: list
  elements: str
"""
