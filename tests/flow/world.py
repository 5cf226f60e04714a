# SPDX-License-Identifier: GPL-3.0-or-later
"""A small world for the playbooks: the real playbooks, actions, gpu_preflight and gpu_verify; the rest is play-acting.

The planner hands back the plan that stands in the facts, gpu_facts reads a file of the host, and the changing roles
write down that they ran. So what is tested is the flow alone: who is read, who is changed, in which order, and what
stops it.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROLES = ("gpu_kernel", "gpu_driver", "gpu_toolkit", "gpu_containerd")
FORCED = (*ROLES[:2], "gpu_cuda", *ROLES[2:])  # CUDA's role is entered where it has something to do, or by force

_PLANNER = """
def plan(host, facts, policy, matrix, now):
    plan = {"verdict": "ok", "changes": [], "pending": [], "findings": [], "decisions": {}, **facts.get("plan", {})}
    if facts.get("packages", {}).get("refresh_error"):
        plan["findings"] = [{"rule": "PKG900", "severity": "warning", "subject": "package lists",
                             "summary": facts["packages"]["refresh_error"], "remedy": "mend the archive"}]
    return plan
"""
_MATRIX = """
import datetime
class MatrixError(ValueError):
    pass
class Matrix:
    digest = "0"
    def product(self, pci, subsystem=None):
        return None
    def unchecked_for(self, today, days):
        return {}
    def oldest_check(self):
        return datetime.date(2026, 1, 1)
def load(overlays=()):
    return Matrix()
"""
_MODULE_HEAD = """#!/usr/bin/python
from __future__ import annotations
import json, os, pathlib
from ansible.module_utils.basic import AnsibleModule
PLACE = pathlib.Path(os.environ["FAKE_HOST"])
"""
_FACTS = (
    _MODULE_HEAD
    + """
def main():
    module = AnsibleModule(argument_spec={"candidates": {}}, supports_check_mode=True)
    with open(PLACE / "log", "a") as log:
        log.write("facts\\\\n")
    module.exit_json(changed=False, ansible_facts={"gpu_facts": json.loads((PLACE / "facts.json").read_text())})
if __name__ == "__main__":
    main()
""".replace("\\\\n", "\\n")
)
_LEASE = (
    _MODULE_HEAD
    + """
def main():
    module = AnsibleModule(argument_spec={"state": {}, "run_id": {}}, supports_check_mode=True)
    lease = PLACE / "lease"
    holder = lease.read_text() if lease.exists() else None
    if module.params["state"] == "acquired":
        if holder not in (None, module.params["run_id"]):
            module.fail_json(msg=f"the lease is held by run {holder}")
        lease.write_text(module.params["run_id"])
    elif holder == module.params["run_id"]:
        lease.unlink()
    module.exit_json(changed=False, acquired_here=holder is None)
if __name__ == "__main__":
    main()
"""
)
_ROLE = """---
- name: Plan the host
  ansible.builtin.include_role: {{name: baremetal.nvidia.gpu_preflight, tasks_from: plan.yml}}
- name: Fail where the test wants it
  ansible.builtin.command: "false"
  when: fail_in | default('') == '{role}'
- name: Lose the connection where the test wants it
  ansible.builtin.set_fact: {{ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}}
  when: lost_in | default('') == '{role}'
- name: Write down that this ran
  ansible.builtin.shell: >-
    echo "{{{{ inventory_hostname }}}} {role}" >> {{{{ world }}}}/events;
    cd {{{{ world }}}}/{{{{ inventory_hostname }}}};
    if [ {role} = gpu_containerd ] && [ -e after.json ]; then cp after.json facts.json; fi
"""

_STEP = """---
- name: Fail where the test wants it
  ansible.builtin.command: "{{{{ item }}}}"
  loop: ["true", "false"]
  when: fail_in | default('') == '{step}'
- name: Lose the connection where the test wants it
  ansible.builtin.set_fact: {{ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}}
  when: lost_in | default('') == '{step}'
- name: Write down that this ran, and become what the step makes of the host
  ansible.builtin.shell: >-
    echo "{{{{ inventory_hostname }}}} {step}" >> {{{{ world }}}}/events;
    cd {{{{ world }}}}/{{{{ inventory_hostname }}}}; if [ -e {step}.json ]; then cp {step}.json facts.json; fi
- name: Read the host again
  baremetal.nvidia.gpu_plan: {{gather: always}}
"""

CHANGE = {
    "verdict": "change",
    "changes": [
        {
            "role": "gpu_driver",
            "action": "install",
            "target": "nvidia-kernel-dkms",
            "before": None,
            "after": "535.309.01-1",
            "disruption": "none",
        }
    ],
}
BLOCKED = {
    "verdict": "blocked",
    "findings": [
        {
            "rule": "DRV003",
            "severity": "error",
            "subject": "Tesla V100",
            "summary": "R595 does not know Volta",
            "remedy": "take 580",
        }
    ],
}
PENDING = {
    "pending": [
        {
            "role": "gpu_driver",
            "action": "reboot",
            "target": "host",
            "before": "nouveau",
            "after": "nvidia",
            "disruption": "reboot",
            "needs": "gpu_reboot_allowed",
        }
    ],
}
_GROUPS = ("ok", "change", "blocked", "pending", "refresh", "planned", "kernel_moves")


class World:
    """Hosts with facts and what they become, and a way to run a playbook over them."""

    def __init__(self, place: pathlib.Path) -> None:
        self.place = place
        self.hosts: dict[str, dict[str, Any]] = {}
        self._collection()

    def add(
        self, name: str, plan: dict[str, Any] | None = None, after: dict[str, Any] | None = None, **variables: Any
    ) -> None:
        """Add a host whose plan is ``plan`` now and ``after`` once the roles ran (by default as planned)."""
        directory = self.place / name
        directory.mkdir()
        facts = {"os": {"id": "debian", "version": "12"}, "gpus": [], "packages": {"manager": "none", "cache_age": 1}}
        facts.update(variables.pop("facts", {}))
        (directory / "facts.json").write_text(json.dumps({**facts, "plan": plan or {}}))
        (directory / "after.json").write_text(json.dumps({**facts, "plan": after or {}}))
        python = directory / "python"
        python.write_text(f'#!/bin/sh\nFAKE_HOST={directory} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        self.hosts[name] = {
            "ansible_connection": "local",
            "ansible_python_interpreter": str(python),
            "ansible_become": False,
            **variables,
        }

    def becomes(self, name: str, step: str, plan: dict[str, Any]) -> None:
        """Say which plan a host has once a step of kernel_upgrade.yml (stage, trial, …) was made."""
        facts = json.loads((self.place / name / "facts.json").read_text())
        (self.place / name / f"{step}.json").write_text(json.dumps({**facts, "plan": plan}))

    def run(self, playbook: str, *arguments: str, **variables: Any) -> Result:
        """Run a playbook of the collection by its FQCN, as a user does who installed it."""
        return self._run(f"baremetal.nvidia.{playbook}", arguments, variables)

    def run_file(self, playbook: pathlib.Path, *arguments: str, **variables: Any) -> Result:
        """Run a playbook of somebody's own."""
        return self._run(str(playbook), arguments, variables)

    def _run(self, playbook: str, arguments: Sequence[str], variables: dict[str, Any]) -> Result:
        groups = {f"gpu_{name}": {} for name in _GROUPS}
        inventory = self.place / "hosts.yml"
        inventory.write_text(json.dumps({"all": {"hosts": self.hosts, "children": groups}}))
        count = self.place / "count.json"
        extra = {"world": str(self.place), **variables}
        command = [
            str(pathlib.Path(sys.executable).with_name("ansible-playbook")),
            playbook,
            "-i",
            str(inventory),
            "-e",
            json.dumps(extra),
            *arguments,
        ]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            "ANSIBLE_COLLECTIONS_PATH": str(self.place / "collections"),
            "ANSIBLE_CONFIG": str(self.place / "ansible.cfg"),
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests" / "bench" / "callback_plugins"),
            "ANSIBLE_CALLBACKS_ENABLED": "gpu_count",
            "GPU_BENCH_COUNT": str(count),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INJECT_FACT_VARS": "False",
            "HOME": str(self.place),
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.place / "cache"),
        }
        done = subprocess.run(
            command,
            env=environment,
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        counts = json.loads(count.read_text()) if count.exists() else {}
        return Result(done.returncode, done.stdout + done.stderr, counts)

    def events(self) -> list[str]:
        """Return what the changing roles wrote down, in order: "host role"."""
        path = self.place / "events"
        return path.read_text().splitlines() if path.exists() else []

    def _collection(self) -> None:
        ours = self.place / "collections" / "ansible_collections" / "baremetal" / "nvidia"
        ours.mkdir(parents=True)
        (self.place / "ansible.cfg").write_text("[defaults]\n")
        _link(ROOT, ours, ("galaxy.yml", "meta", "playbooks"))
        plugins = {item.name for item in (ROOT / "plugins").iterdir()} - {"action", "modules", "plugin_utils"}
        _link(ROOT / "plugins", ours / "plugins", plugins)
        actions = ("gpu_plan.py", "gpu_report.py", "gpu_compare.py")
        _link(ROOT / "plugins" / "action", ours / "plugins" / "action", actions)
        utils = {item.name for item in (ROOT / "plugins/plugin_utils").iterdir()} - {"planner", "matrix"}
        _link(ROOT / "plugins" / "plugin_utils", ours / "plugins" / "plugin_utils", utils)
        _write(ours / "plugins" / "plugin_utils" / "planner" / "__init__.py", _PLANNER)
        _write(ours / "plugins" / "plugin_utils" / "matrix" / "__init__.py", _MATRIX)
        _link(ROOT / "plugins" / "modules", ours / "plugins" / "modules", (*actions, "package_set.py"))
        _write(ours / "plugins" / "modules" / "gpu_facts.py", _FACTS)
        _write(ours / "plugins" / "modules" / "host_lease.py", _LEASE)
        _link(ROOT / "roles", ours / "roles", ("gpu_preflight", "gpu_verify"))
        for role in FORCED:
            _write(ours / "roles" / role / "tasks" / "main.yml", _ROLE.format(role=role))
        for step in ("stage", "trial", "commit", "prune"):
            _write(ours / "roles" / "gpu_kernel" / "tasks" / f"{step}.yml", _STEP.format(step=step))


class Result:
    """Exit status, output, and what the counting callback saw."""

    def __init__(self, rc: int, output: str, counts: dict[str, Any]) -> None:
        self.rc = rc
        self.output = output
        self.counts = counts

    def __repr__(self) -> str:
        return f"rc {self.rc}\n{self.output}"


def _link(source: pathlib.Path, target: pathlib.Path, names: Any) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (source / name).exists():
            (target / name).symlink_to(source / name)


def _write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
