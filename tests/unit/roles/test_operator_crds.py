# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the chart's CRDs are applied: those of a feature discovery that is somebody else's are not."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: The module that would send them. Which these are stands in the label of the loop.
K8S = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
AnsibleModule(argument_spec={one: {"type": "raw"} for one in (
    "state", "resource_definition", "apply", "server_side_apply")}).exit_json(changed=False)
"""
MANIFEST = {"collection_info": {"namespace": "kubernetes", "name": "core", "version": "6.2.0"}}
VALUES: dict[str, dict[str, Any]] = {
    "unsaid": {}, "empty": {"nfd": None}, "on": {"nfd": {"enabled": True}}, "off": {"nfd": {"enabled": False}}}


@pytest.fixture(name="sent", scope="module")
def fixture_sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The names that are sent, by the values of the chart."""
    place = tmp_path_factory.mktemp("crds")
    core = place / "ansible_collections/kubernetes/core"
    (core / "plugins/modules").mkdir(parents=True)
    (core / "plugins/modules/k8s.py").write_text(K8S)
    (core / "MANIFEST.json").write_text(json.dumps(MANIFEST))
    files = []
    for name, folder in (("clusterpolicies", "crds"), ("nodefeatures", "charts/node-feature-discovery/crds")):
        path = place / "gpu-operator" / folder / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(yaml.safe_dump({"kind": "CustomResourceDefinition", "metadata": {"name": name}}))
        files.append(str(path))
    hosts = {name: {"__gpu_operator_fleet": {"values": values}} for name, values in VALUES.items()}
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {
        "ansible_connection": "local", "ansible_python_interpreter": sys.executable, "__gpu_operator_at_once": 100,
        "__gpu_operator_crd_files": files}}}))
    (place / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [
        {"ansible.builtin.include_tasks": str(ROOT / "roles/gpu_operator/tasks/crds.yml")}]}]))
    (place / "ansible.cfg").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"], cwd=place, check=False,
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "ANSIBLE_CONFIG": str(place / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(place),
             "ANSIBLE_HOME": str(place / "home"), "ANSIBLE_NOCOLOR": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: sorted(told.split(", ")) for name, told in re.findall(r"ok: \[(\w+)\] => \(item=(.*)\)", done.stdout)}


@pytest.mark.parametrize("name", VALUES)
def test_feature_discovery_of_somebody_else_keeps_its_crds(sent: dict[str, list[str]], name: str) -> None:
    assert sent[name] == (["clusterpolicies"] if name == "off" else ["clusterpolicies", "nodefeatures"])
