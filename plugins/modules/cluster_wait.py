#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name; nothing here runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_wait
short_description: Wait until objects of a cluster are as wanted, with a line for each look
description:
  - Reads objects with M(baremetal.nvidia.cluster_read), says in one line what is missing, and looks again until nothing
    is, or time runs out.
  - C(helm --wait) does not wait for what the GPU Operator starts; this does.
  - Reads only.
version_added: 0.2.0
author: baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.cluster
  - baremetal.nvidia.cluster.objects
  - baremetal.nvidia.cluster.wait
options:
  until:
    description:
      - V(operator) waits until the ClusterPolicy and the NVIDIADriver objects are ready, every DaemonSet has its pods
        in the generation that was asked for, and no driver is being exchanged on a node.
      - V(pods) waits until every pod has ended, well or not.
      - V(gone) waits until none of the objects is left.
    type: str
    required: true
    choices: [gone, operator, pods]
  drivers:
    description: Names of NVIDIADriver objects that have to be ready.
    type: list
    elements: str
    default: []
  policy:
    description: Whether there has to be a ClusterPolicy.
    type: bool
    default: true
  steady:
    description: How many looks in a row have to be good.
    type: int
    default: 1
  fail:
    description: Whether giving up is a failure.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Wait until the operator is ready
  baremetal.nvidia.cluster_wait:
    until: operator
    objects:
      - {kind: ClusterPolicy, api_version: nvidia.com/v1}
      - {kind: DaemonSet, api_version: apps/v1, namespace: gpu-operator}
    timeout: 900
"""

RETURN = r"""
done:
  description: Whether it came to be.
  returned: always
  type: bool
waited:
  description: Seconds that were waited.
  returned: always
  type: int
words:
  description: What was seen last.
  returned: always
  type: str
  sample: ClusterPolicy notReady; nvidia-device-plugin-daemonset 0 of 3
moving:
  description: Nodes whose driver is being exchanged.
  returned: always
  type: int
resources:
  description: The objects that were seen last, by kind.
  returned: always
  type: dict
"""
