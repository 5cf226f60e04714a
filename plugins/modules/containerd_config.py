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
  - Where containerd belongs to another program, that program's own way in is taken. k3s and RKE2 find the toolkit at
    their start and import a folder; k0s merges a folder; MicroK8s has a template. A file that such a program writes is
    never edited. Kubespray's and the GPU Operator's are left; the message says what to set there.
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
  state:
    description:
      - V(absent) takes out what this module set, the runtime C(nvidia) with it, and brings back what stood there
        before. What somebody changed since is left.
    type: str
    choices: [present, absent]
    default: present
  default_runtime:
    description: The default runtime. Empty keeps the one in force.
    type: str
  sandbox_image:
    description: The image of the pause container. Empty keeps the one in force.
    type: str
  registry_config_path:
    description: The folder of registry hosts. Empty keeps the one in force.
    type: str
  systemd_cgroup:
    description: Whether runc and the default runtime leave cgroups to systemd. Without it what is in force is kept.
    type: bool
  nri:
    description: Whether containerd 1.7 loads NRI plugins. Later ones do by themselves.
    type: bool
  cri:
    description: V(true) takes the CRI plugin out of C(disabled_plugins), where Docker's package has it.
    type: bool
  allowed:
    description:
      - Whether containerd may restart under running GPU containers. Counts where its owner restarts it by itself as
        soon as a file appears (k0s).
    type: bool
    default: false
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
- name: Take the nvidia runtime out again
  baremetal.nvidia.containerd_config:
    state: absent

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
  description:
    - V(drop_in), V(edit), V(remove), V(detect) (its owner writes the runtime at its next start) or V(none).
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
restart:
  description: Whether containerd has to read its files again.
  returned: success
  type: bool
skipped_reason:
  description: Why nothing was written, or null.
  returned: success
  type: str
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
