# SPDX-License-Identifier: GPL-3.0-or-later
"""helm and kubernetes.core go to one cluster, whichever of their variables names it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOSTS = {"named": {"gpu_operator_kubeconfig": "~/prod", "gpu_operator_context": "blue"}, "unnamed": {}}


def told(place: pathlib.Path, **environment: str) -> dict[str, dict[str, str]]:
    """What helm and kubernetes.core get, by host."""
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": HOSTS, "vars": {
        "ansible_connection": "local", "ansible_python_interpreter": sys.executable}}}))
    (place / "play.yml").write_text(yaml.safe_dump([{
        "hosts": "all", "gather_facts": False, "vars_files": [str(ROOT / "roles/gpu_operator/vars/main.yml")],
        "tasks": [{"ansible.builtin.copy": {"dest": f"{place}/{{{{ inventory_hostname }}}}.json",
                                            "content": "{{ __gpu_operator_environment | to_json }}"}}]}]))
    (place / "ansible.cfg").write_text("")
    kept = {key: value for key, value in os.environ.items() if "KUBE" not in key and not key.startswith("K8S_")}
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"], cwd=place, check=False,
        capture_output=True, text=True, timeout=120,
        env={**kept, "ANSIBLE_CONFIG": str(place / "ansible.cfg"), "ANSIBLE_HOME": str(place / "home"),
             "HOME": "/home/me", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: json.loads((place / f"{name}.json").read_text()) for name in HOSTS}


NAMED = {"K8S_AUTH_KUBECONFIG": "/home/me/prod", "KUBECONFIG": "/home/me/prod", "K8S_AUTH_CONTEXT": "blue",
         "HELM_KUBECONTEXT": "blue"}


@pytest.mark.parametrize(("environment", "unnamed"), [
    ({}, {}),
    ({"K8S_AUTH_KUBECONFIG": "~/other", "K8S_AUTH_CONTEXT": "green"},
     {"K8S_AUTH_KUBECONFIG": "/home/me/other", "KUBECONFIG": "/home/me/other", "K8S_AUTH_CONTEXT": "green",
      "HELM_KUBECONTEXT": "green"}),
])
def test_both_are_told_the_same(tmp_path: pathlib.Path, environment: dict[str, str], unnamed: dict[str, str]) -> None:
    assert told(tmp_path, **environment) == {"named": NAMED, "unnamed": unnamed}
