#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_config
short_description: Give containerd the nvidia runtime, and change nothing else
version_added: 0.1.0
description:
  - Works out what is in force from containerd's main file and what that imports, by the rules of the containerd
    that is
    installed, and adds the runtime C(nvidia) to it.
  - From containerd 2.0 on it writes a drop-in of the main file's version and adds an import only where one is
    missing. On
    1.6 and 1.7, where a drop-in replaces the whole table of the CRI plugin, it edits the file that holds this table.
  - Comments, order and formatting stay. The runtime gets the options of the default runtime, such as
    C(SystemdCgroup).
  - Nothing is written if any other setting would move, or if containerd itself, asked on a copy, reads something
    else than
    was meant.
  - Files that somebody else writes (k3s, RKE2, k0s, MicroK8s, Kubespray, the GPU Operator) are left alone; the
    message says
    what to set there.
  - Does not restart containerd. See M(baremetal.nvidia.containerd_restart).
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
requirements:
  - tomlkit on the controller, for edits inside inline tables and lists
extends_documentation_fragment:
  - baremetal.nvidia.host
  - action_common_attributes.flow
attributes:
  action:
    support: full
  async:
    support: none
  bypass_host_loop:
    support: none
options:
  path:
    description: containerd's main file.
    type: path
    default: /etc/containerd/config.toml
  owner:
    description: Whose containerd it is, as RV(baremetal.nvidia.gpu_facts#module:ansible_facts.gpu_facts) says.
    type: str
    default: host
  default_runtime:
    description: The default runtime. Empty keeps the one in force.
    type: str
  runtime_path:
    description: The program of the runtime.
    type: path
    default: /usr/bin/nvidia-container-runtime
  program:
    description: containerd's program on the host.
    type: str
    default: containerd
  version:
    description: In check mode, the version to count with where containerd is not installed yet.
    type: str
  backup_keep:
    description: How many backups of each file are kept, in C(/var/lib/baremetal-nvidia/backups).
    type: int
    default: 5
seealso:
  - module: baremetal.nvidia.containerd_restart
"""

EXAMPLES = r"""
- name: Give containerd the nvidia runtime
  baremetal.nvidia.containerd_config:
  register: containerd_files

- name: Let it read its files
  baremetal.nvidia.containerd_restart:
    handlers: [nvidia]
    restore: "{{ containerd_files['backups'] }}"
  when: containerd_files is changed
"""

RETURN = r"""
strategy:
  description: V(drop_in), V(edit) or V(none).
  returned: success
  type: str
config_version:
  description: The version of the main file, which decides the names in it.
  returned: success
  type: int
plugin:
  description: The plugin that holds the runtimes.
  returned: success
  type: str
files:
  description: Files that were written, or in check mode would be.
  returned: success
  type: list
  elements: str
differences:
  description: Settings in force that change, and only those.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The setting.
      type: str
    before:
      description: What it was, null if it was not there.
      type: raw
    after:
      description: What it is.
      type: raw
backups:
  description: The files that were written and where what was there is kept (null where there was none).
  returned: success
  type: list
  elements: dict
notes:
  description: What a person should know, one sentence each.
  returned: success
  type: list
  elements: str
low_level_runtime:
  description: The program of the runtime whose options were copied, if it is not runc.
  returned: success
  type: str
"""
