# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of variables that the collection reads: policy, the roles' own options, and the playbooks' switches."""

from __future__ import annotations

import functools
import pathlib

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COLLECTION = pathlib.Path(__file__).resolve().parents[3]

#: Variables that the playbooks read beside policy and roles' options; docs/variables.md is made from this.
PLAYBOOK = {
    "gpu_hosts": "The hosts that a playbook works on, a pattern. Everything in the inventory where it is not set.",
    "gpu_serial": 'How many hosts are changed at a time. `[1, "10%"]` where it is not set: a canary, then batches.',
    "gpu_report": "Files on the controller that get the plans: `.json`, `.html` for people; several with commas, or "
                  "as a list (docs/report.md).",
    "gpu_ask": "A question that is answered without a host (docs/ask.md).",
    "gpu_facts_file": "Stored facts that are planned instead of asking hosts: a file, or a directory with one file a "
                      "host. For `preflight.yml` and `operator.yml`.",
}

#: Facts that the collection itself returns; they are no variables of a person.
RETURNED = ("gpu_facts", "gpu_plan", "gpu_reboot_required", "gpu_summary")


@functools.cache
def policy() -> frozenset[str]:
    """Return the names of all policy variables (plugin_utils/model/policy.yml)."""
    path = _COLLECTION / "plugins" / "plugin_utils" / "model" / "policy.yml"
    return frozenset(yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER))


@functools.cache
def role_options() -> frozenset[str]:
    """Return the names of the roles' own apply options (roles/*/meta/options.yml)."""
    found: set[str] = set()
    for path in sorted((_COLLECTION / "roles").glob("*/meta/options.yml")):
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER) or {}
        options = content.get("options") or {}
        found.update(str(name) for name in options)
    return frozenset(found)


@functools.cache
def known() -> frozenset[str]:
    """Return every variable name that begins with gpu_ and means something to the collection."""
    return policy() | role_options() | frozenset(PLAYBOOK) | frozenset(RETURNED)
