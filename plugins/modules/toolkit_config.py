#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: toolkit_config
short_description: Set what the NVIDIA Container Toolkit's config.toml says
version_added: 0.1.0
description:
  - Changes settings in C(/etc/nvidia-container-runtime/config.toml), line by line. Comments, order, and settings
    that are not named stay as they are.
  - The result is read again before it is written. Where it would not say what is wanted, or anything else would
    change, the task fails and nothing is written.
  - What was there is kept as a backup. The file is read anew whenever a container starts, so nothing is restarted.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  settings:
    description: Settings by dotted key, such as C(nvidia-container-cli.no-cgroups). Booleans, texts, lists of texts.
    type: dict
    default: {}
  state:
    description: V(absent) takes back what this module set, unless somebody changed it since.
    type: str
    choices: [present, absent]
    default: present
  path:
    description: The file.
    type: path
    default: /etc/nvidia-container-runtime/config.toml
  backup_keep:
    description: How many backups of the file are kept, in C(/var/lib/baremetal-nvidia/backups).
    type: int
    default: 5
"""

EXAMPLES = r"""
- name: Refuse GPUs that unprivileged containers ask for by environment variable
  baremetal.nvidia.toolkit_config:
    settings:
      accept-nvidia-visible-devices-envvar-when-unprivileged: false
      accept-nvidia-visible-devices-as-volume-mounts: true
"""

RETURN = r"""
actions:
  description: What was set, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
  sample: ["nvidia-container-runtime.mode: auto -> cdi"]
backup:
  description: The backup that was made; null without one.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import (
    keepers,
    own_settings,
    toolkit_toml,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path", "default": toolkit_toml.PATH},
            "backup_keep": {"type": "int", "default": 5},
            "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    path, wanted = module.params["path"], module.params["settings"]
    backup = None
    store = Store()
    gone = module.params["state"] == "absent"
    try:
        content = keepers.read(path)
        text = (content or b"").decode("utf-8", "surrogateescape")
        there = toolkit_toml.read(text)
        if gone:
            wanted = own_settings.taken_back(store, path, there) if content is not None else {}
        new = toolkit_toml.edit(text, wanted)
        actions = [f"{name}: {there.get(name, 'not set')} -> {'not set' if value is None else value}"
                   for name, value in wanted.items() if there.get(name) != value]
        if not module.check_mode:
            store.renew(module.params["lease"], doing="toolkit_config")
            if new != text:
                own_settings.note(store, path, there, {} if gone else wanted)
                backup = keepers.backup(path, module.params["backup_keep"])
                keepers.replace(path, new.encode("utf-8", "surrogateescape"), 0o644)
            if gone:
                own_settings.forget(store, path)
    except (HostError, OSError) as exc:
        module.fail_json(msg=f"{path}: {exc}. Nothing was written")
    diff = {"before_header": path, "after_header": path, "before": text, "after": new} if new != text else {}
    module.exit_json(changed=new != text, actions=actions, backup=backup, diff=diff)


if __name__ == "__main__":
    main()
