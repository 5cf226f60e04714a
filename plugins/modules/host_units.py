#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_units
short_description: Write, enable and start units of systemd without taking GPUs from containers
version_added: 0.2.0
description:
  - Writes files of units, then enables and starts them. systemd finds a unit that it did not know by itself, so nothing
    is reloaded for it.
  - A reload of all units takes GPUs from containers that got them by the legacy hook. It is done only when a unit that
    is loaded has changed, and not while such containers run, unless O(reload_allowed). Then the result says what waits,
    and the next call tries again.
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.host
options:
  files:
    description: Content by path, of units and drop-ins. An empty one takes the file away.
    type: dict
    default: {}
  enabled:
    description: Units that are to start with the host.
    type: list
    elements: str
    default: []
  started:
    description: Units that are to be running.
    type: list
    elements: str
    default: []
  restarted:
    description: Units that are restarted, if they run, when a file or O(changed) says that something differs.
    type: list
    elements: str
    default: []
  changed:
    description: Whether something else that O(restarted) units read has changed.
    type: bool
    default: false
  absent:
    description: Units that are stopped and disabled before any file goes.
    type: list
    elements: str
    default: []
  reload_allowed:
    description: Whether systemd may reload its units under containers that lose their GPUs by it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run the collector by a timer
  baremetal.nvidia.host_units:
    files:
      /etc/systemd/system/baremetal-nvidia-metrics.timer: "{{ lookup('ansible.builtin.template', 'metrics.timer.j2') }}"
    enabled: [baremetal-nvidia-metrics.timer]
    started: [baremetal-nvidia-metrics.timer]
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be.
  returned: success
  type: list
  elements: str
waiting:
  description: Why systemd still works with a former unit, or null.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
from ansible_collections.baremetal.nvidia.plugins.module_utils.units import Units, Wish

NAMES: dict[str, Any] = {"type": "list", "elements": "str", "default": []}


def diff(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, str]]:
    """The changed files as a diff."""
    return [{"before_header": path, "after_header": path, "before": before[path] or "", "after": after[path] or ""}
            for path in before]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "default": {}}, "enabled": NAMES, "started": NAMES, "restarted": NAMES,
            "absent": NAMES, "changed": {"type": "bool", "default": False},
            "reload_allowed": {"type": "bool", "default": False}, "lease": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    bad = [path for path in asked["files"] if not path.startswith("/")]
    if bad:
        module.fail_json(msg=f"files: {bad[0]!r} is not allowed; allowed is an absolute path")
    wish = Wish(files={path: str(text) if text else None for path, text in asked["files"].items()},
                enabled=tuple(asked["enabled"]), started=tuple(asked["started"]), absent=tuple(asked["absent"]),
                restarted=tuple(asked["restarted"]), changed=asked["changed"], reload_allowed=asked["reload_allowed"])
    try:
        if not module.check_mode:
            Store().renew(asked["lease"])
        outcome = Units(run)(wish, check=module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=outcome.changed, actions=outcome.actions, waiting=outcome.waiting,
                     diff=diff(outcome.before, outcome.after))


if __name__ == "__main__":
    main()
