#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: python_env
short_description: Make a Python environment with a framework in it
version_added: 0.1.0
description:
  - Makes an environment by the interpreter's own C(venv) and installs requirements into it by its own C(pip).
  - What was finished is remembered in the state file of the host. An environment that a run was cut off in is made
    anew, since pip takes half an install for a whole one.
  - A folder that was not made by this module is left alone, and the task fails.
requirements:
  - a Python 3 with venv on the host
extends_documentation_fragment:
  - baremetal.nvidia.host
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  path:
    description: Where the environment is.
    type: path
    required: true
  dist:
    description: The distribution whose version says that the environment is there, such as V(torch).
    type: str
    required: true
  requirements:
    description: What pip installs, such as V(torch==2.7.*).
    type: list
    elements: str
    required: true
  index_url:
    description: The package index. Without it pip's own settings count.
    type: str
  python:
    description: The interpreter that the environment is made with.
    type: str
    default: python3
  min_free_mb:
    description: Free space in MB that there has to be before anything is begun.
    type: int
    default: 0
  timeout:
    description: Seconds that pip may take.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: PyTorch 2.7 for CUDA 12.8
  baremetal.nvidia.python_env:
    path: /opt/torch
    dist: torch
    requirements: [torch==2.7.*]
    index_url: https://download.pytorch.org/whl/cu128
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
  sample: [make /opt/torch with python3, "install torch==2.7.* from https://download.pytorch.org/whl/cu128"]
version:
  description: The version of the distribution that is there now; null when it is not, in check mode.
  returned: success
  type: str
  sample: 2.7.1+cu128
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils import python_env
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "dist": {"type": "str", "required": True},
            "requirements": {"type": "list", "elements": "str", "required": True},
            "index_url": {"type": "str"},
            "python": {"type": "str", "default": "python3"},
            "min_free_mb": {"type": "int", "default": 0},
            "timeout": {"type": "int", "default": 3600},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    wish = python_env.Wish(**{key: value for key, value in module.params.items() if key != "lease"})
    store = Store()
    before = python_env.version_in(wish.path, wish.dist)
    try:
        if not module.check_mode:
            store.renew(module.params["lease"], doing="python_env")
        outcome = python_env.ensure(wish, store, check=module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    diff = {}
    if outcome.changed:
        diff = {"before_header": wish.path, "after_header": wish.path, "before": f"{wish.dist} {before or 'none'}\n",
                "after": "\n".join(outcome.actions) + "\n"}
    module.exit_json(changed=outcome.changed, actions=outcome.actions, version=outcome.version, diff=diff)


if __name__ == "__main__":
    main()
