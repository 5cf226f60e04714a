# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker, CRI-O, the toolkit's settings, and which containers a reload of systemd's units would hurt."""

from __future__ import annotations

import json

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import containers, engines
from facts_helpers import Programs
from test_facts_driver import holder

ID = "a" * 64
BUNDLE = f"/run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"
HOOK = {"hooks": {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook"}]}, "linux": {"devices": []}}
NAMED = {"linux": {"devices": [{"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}]}}
PRIVILEGED = {"linux": {"resources": {"devices": [{"allow": True, "access": "rwm"}]}}}
DENIES = {"linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}]}}}


@pytest.mark.parametrize(("spec", "detachable"), [
    (NAMED, 0), (HOOK, 1), (PRIVILEGED, 0), (DENIES, 1), (None, 1), ("not JSON", 1), ([], 1), ({"linux": None}, 1),
])
def test_who_loses_gpus_at_a_reload(host, spec, detachable):
    holder(host, 101, "python3", "/dev/nvidia0", cgroup=f"0::/kubepods.slice/cri-containerd-{ID}.scope\n")
    host.put("/proc/1/comm", "init\n")
    if spec is not None:
        host.put(BUNDLE, spec if isinstance(spec, str) else json.dumps(spec))
    assert host.read(containers.read).facts["containers"]["gpu"] == {"running": 1, "detachable": detachable}


def test_crio_keeps_its_specifications_elsewhere(host):
    holder(host, 101, "python3", "/dev/nvidia0", cgroup=f"0::/kubepods.slice/crio-{ID}.scope\n")
    host.put(f"/run/containers/storage/overlay-containers/{ID}/userdata/config.json", json.dumps(NAMED))
    assert engines.gpu(host.tree) == {"running": 1, "detachable": 0}


def test_docker(host, as_host):
    host.put("/usr/bin/dockerd")
    host.put("/etc/docker/daemon.json", json.dumps({
        "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "args": []}, "odd": 3},
        "default-runtime": "nvidia", "features": {"cdi": True}, "proxies": {"http-proxy": "http://u:secret@proxy"}}))
    programs = Programs(dockerd=children.Result(rc=0, out="Docker version 26.1.5+dfsg1, build a72d7cd\n"))
    told = as_host(containers.read, programs, known={"services": {"docker.service": {"active": True}}})
    docker = told.facts["containers"]["docker"]
    assert docker == {"version": "26.1.5", "active": True, "config": {
        "path": "/etc/docker/daemon.json", "runtimes": {"nvidia": "/usr/bin/nvidia-container-runtime"},
        "default_runtime": "nvidia", "cdi": True}}
    assert "secret" not in json.dumps(told.facts)


@pytest.mark.parametrize("text", ["[1]", "{", "\"x\""])
def test_a_daemon_json_that_is_none_is_unknown(host, text):
    host.put("/usr/bin/dockerd")
    host.put("/etc/docker/daemon.json", text)
    context = host.read(containers.read)
    assert "config" not in context.facts["containers"].get("docker", {})
    assert "containers.docker.config" in context.unknown


def test_crio(host):
    host.put("/usr/bin/crio")
    host.put("/etc/crio/crio.conf", '[crio.runtime]\ndefault_runtime = "runc"\n')
    host.put("/etc/crio/crio.conf.d/10-crun.conf", '[crio.runtime.runtimes.crun]\nruntime_path = "/usr/bin/crun"\n'
                                                   '[crio.runtime]\ndefault_runtime = "crun"\n')
    assert host.read(containers.read).facts["containers"]["crio"]["config"] == {
        "runtimes": {"crun": "/usr/bin/crun"}, "default_runtime": "crun"}


def test_links_of_dev_char(host):
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"):
        host.put(f"/dev/{name}")
    host.link("/dev/char/195:0", "../nvidia0")
    assert engines.dev_char(host.tree) == {"devices": 3, "missing": 2}
