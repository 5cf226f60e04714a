# SPDX-License-Identifier: GPL-3.0-or-later
"""A release that is pending is another run's, or one that was cut off; an API server that is away tells neither."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: What helm_info answers, by the name of the release.
HELM_INFO = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={one: {"type": "raw"} for one in (
    "release_name", "release_namespace", "binary_path", "release_state")}, supports_check_mode=True)
name = module.params["release_name"]
if name == "away":
    module.fail_json(msg="Kubernetes cluster unreachable: connection refused")
module.exit_json(changed=False, **({"status": {"status": "pending-upgrade"}} if name == "cut-off" else {}))
"""
SAID = {
    "away": "Kubernetes cluster unreachable: connection refused",
    "gone": "Another run changed the release gone meanwhile (it is gone now)",
    "cut-off": "there is none before it, so it is taken out and installed anew",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run says of three releases, each on a host of its own."""
    place = tmp_path_factory.mktemp("pending")
    core = place / "ansible_collections/kubernetes/core"
    (core / "plugins/modules").mkdir(parents=True)
    (core / "plugins/modules/helm_info.py").write_text(HELM_INFO)
    about = {"namespace": "kubernetes", "name": "core", "version": "6.0.0"}
    (core / "MANIFEST.json").write_text(json.dumps({"collection_info": about}))
    helm = place / "helm"
    helm.write_text("#!/bin/sh\n[ \"$1\" != history ] || echo '[]'\n")
    helm.chmod(0o755)
    hosts = {name: {"gpu_operator_release": name} for name in SAID}
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {
        "ansible_connection": "local", "ansible_python_interpreter": sys.executable, "gpu_operator_helm": str(helm),
        "gpu_operator_namespace": "gpu-operator", "gpu_operator_pending_age": 1,
        "__gpu_operator_installed": {
            "status": "pending-upgrade", "revision": 2, "updated": "{{ now(utc=true).timestamp() }}"},
    }}}))
    (place / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [
        {"ansible.builtin.include_tasks": str(ROOT / "roles/gpu_operator/tasks/pending.yml")}]}]))
    (place / "ansible.cfg").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"], cwd=place, check=False,
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "ANSIBLE_CONFIG": str(place / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(place),
             "ANSIBLE_HOME": str(place / "home")})  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_is_what_is_so(told: str, name: str) -> None:
    assert SAID[name] in told, told
    assert "Another run changed the release away" not in told
