# SPDX-License-Identifier: GPL-3.0-or-later
"""Without its uid a cluster is told by its nodes: each host has to be one. gpu-1 of one site is not that of another."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
FEW, FULL = ["gpu-1", "gpu-2"], ["gpu-1.site-a.example", "gpu-2.site-a.example"]
MANY = [f"gpu-{number}" for number in range(3, 15)]
#: Names of nodes and of hosts, and what is refused; None where nothing is.
ASKED: dict[str, tuple[list[str], list[str], str | None]] = {
    "short": (FEW, ["gpu-1", "localhost"], None),
    "host-in-full": (FEW, ["gpu-1.site-a.example"], None),
    "node-in-full": (FULL, ["gpu-2"], None),
    "both-in-full": (FULL, FULL, None),
    "another-site": (FULL, ["gpu-1.site-b.example"], "gpu-1.site-b.example is no node of this cluster"),
    "begins-alike": (FEW, ["gpu-11.site-a.example"], "gpu-11.site-a.example is no node of this cluster"),
    "no-node": ([], ["a.example"], "a.example is no node of this cluster (uid u, 0 nodes: none)"),
    "one-letter": (FULL, ["a.example"], "a.example is no node of this cluster"),
    "many": (FEW, MANY, "gpu-12 and 2 more are no node of this cluster (uid u, 2 nodes: gpu-1, gpu-2)"),
    "uid": (FEW, MANY, None),
    "other-uid": (FEW, FEW, "it is another cluster"),
}


@pytest.fixture(name="said", scope="module")
def fixture_said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a run says to each; each is a host of one play."""
    place = tmp_path_factory.mktemp("identity")
    hosts = {name: {"__gpu_operator_cluster": {"uid": "u", "nodes": [{"name": one} for one in nodes]},
                    "__gpu_operator_hosts": asked, "gpu_operator_cluster_uid": {"uid": "u", "other-uid": "v"}.get(name)}
             for name, (nodes, asked, _refused) in ASKED.items()}
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {
        "ansible_connection": "local", "ansible_python_interpreter": sys.executable}}}))
    (place / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [{"block": [
        {"ansible.builtin.include_tasks": str(ROOT / "roles/gpu_operator/tasks/identity.yml")}], "rescue": [
        {"ansible.builtin.set_fact": {"refused": "{{ ansible_failed_result.msg }}"}}]},
        {"ansible.builtin.copy": {"dest": f"{place}/{{{{ inventory_hostname }}}}.json",
                                  "content": "{{ refused | default('') | to_json }}"}}]}]))
    (place / "ansible.cfg").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"], cwd=place, check=False,
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "ANSIBLE_CONFIG": str(place / "ansible.cfg"), "ANSIBLE_HOME": str(place / "home")})
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: json.loads((place / f"{name}.json").read_text()) for name in ASKED}


@pytest.mark.parametrize("name", ASKED)
def test_a_cluster_is_taken_where_its_nodes_are_the_hosts(said: dict[str, str], name: str) -> None:
    refused = ASKED[name][2]
    assert (refused in said[name]) if refused else said[name] == "", said[name]
