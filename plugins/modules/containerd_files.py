#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_files
short_description: Read, try and place containerd's configuration files
version_added: 0.1.0
description:
  - The part of M(baremetal.nvidia.containerd_config) that runs on the host. It does not know what the files mean.
  - Use M(baremetal.nvidia.containerd_config), which hides what this one returns. Configuration can hold passwords of
    registries.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
attributes:
  diff_mode:
    support: none
    description: M(baremetal.nvidia.containerd_config) shows which settings change.
options:
  mode:
    description:
      - V(read) returns the files.
      - V(trial) lets containerd read other files in a folder of their own.
      - V(place) writes files, all or none.
    type: str
    choices: [read, trial, place]
    required: true
  path:
    description: containerd's main file.
    type: path
    default: /etc/containerd/config.toml
  program:
    description: containerd's program.
    type: str
    default: containerd
  extra:
    description: For V(read), more files or patterns.
    type: list
    elements: str
    default: []
  trees:
    description:
      - For V(trial), by name of the trial, its files (name and content as base64). The main one is config.toml.
    type: dict
    default: {}
  files:
    description: For V(place), the files in the order in which they are written.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file.
        type: path
        required: true
      content:
        description: Its new content, as base64. Without one the file is taken away.
        type: str
      sha256:
        description: Checksum of the file as it was read. Empty means that there was none.
        type: str
  records:
    description: For V(place), what the state of the host keeps of each file, so that it can be taken back.
    type: dict
    default: {}
  dump:
    description: For V(place), whether containerd itself has to be able to read the outcome.
    type: bool
    default: true
  disturbs:
    description:
      - For V(place), whether containerd is restarted by its owner as soon as the files are there. Then nothing is
        written under running GPU containers unless O(allowed).
    type: bool
    default: false
  allowed:
    description: Whether containerd may restart under running GPU containers.
    type: bool
    default: false
  backup_keep:
    description: How many backups of a file are kept, in C(/var/lib/baremetal-nvidia/backups).
    type: int
    default: 5
"""

EXAMPLES = r"""
- name: Read the files
  baremetal.nvidia.containerd_files:
    mode: read
  no_log: true
"""

RETURN = r"""
files:
  description: For V(read), by path, the content as base64.
  returned: success
  type: dict
looked:
  description: For V(read), the paths and patterns that were looked for.
  returned: success
  type: list
  elements: str
record:
  description: For V(read), what was set on this host before, by file.
  returned: success
  type: dict
skipped_reason:
  description: For V(place), why nothing was written.
  returned: success
  type: str
version:
  description: For V(read), the version of containerd. Null without one.
  returned: success
  type: str
dumps:
  description:
    - For V(trial), by name, what containerd printed (C(out), as base64), its status and the reason of a failure.
  returned: success
  type: dict
backups:
  description: For V(place), the files that were written and their backups (null where there was no file).
  returned: success
  type: list
  elements: dict
"""

import base64
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import config_files, restart
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import processes
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def _record() -> dict[str, Any]:
    """What was set on this host before; empty where the state cannot be read, which is not this call's business."""
    try:
        return dict(Store().read()["configured"])
    except (HostError, OSError):
        return {}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "choices": ["read", "trial", "place"], "required": True},
            "path": {"type": "path", "default": "/etc/containerd/config.toml"},
            "program": {"type": "str", "default": "containerd"},
            "extra": {"type": "list", "elements": "str", "default": []},
            "trees": {"type": "dict", "default": {}, "no_log": True},
            "files": {"type": "list", "elements": "dict", "default": [], "options": {
                "path": {"type": "path", "required": True},
                "content": {"type": "str", "no_log": True},
                "sha256": {"type": "str"}}},
            "backup_keep": {"type": "int", "default": 5},
            "records": {"type": "dict", "default": {}},
            "dump": {"type": "bool", "default": True},
            "disturbs": {"type": "bool", "default": False},
            "allowed": {"type": "bool", "default": False},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        if params["mode"] == "read":
            found = config_files.read(params["path"], params["extra"], params["program"], run)
            module.exit_json(changed=False, version=found.version, looked=found.looked, record=_record(), files={
                path: base64.b64encode(content).decode() for path, content in found.files.items()})
        if params["mode"] == "trial":
            trees = {name: {file: base64.b64decode(text) for file, text in files.items()}
                     for name, files in params["trees"].items()}
            dumps = config_files.trial(trees, params["program"], run)
            for dump in dumps.values():  # it has registry passwords, and -vvv prints what a module returns
                dump["out"] = base64.b64encode(dump["out"].encode()).decode()
            module.exit_json(changed=False, dumps=dumps)
        if module.check_mode:
            module.exit_json(changed=bool(params["files"]), backups=[])
        store = Store()
        store.renew(params["lease"])
        if params["disturbs"] and not params["allowed"]:
            why = restart.not_now(lambda: processes.gpu_containers(Tree("/")))
            if why:
                module.exit_json(changed=False, backups=[], skipped_reason=why)
        placed = config_files.place(
            [(item["path"], None if item["content"] is None else base64.b64decode(item["content"]),
              item["sha256"] or None) for item in params["files"]],
            params["path"], params["program"], run, store, run_id=params["lease"], keep=params["backup_keep"],
            records=params["records"], dump=params["dump"])
    except (HostError, OSError, ValueError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=bool(placed), backups=[{"path": item.path, "backup": item.backup} for item in placed])


if __name__ == "__main__":
    main()
