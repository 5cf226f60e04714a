# SPDX-License-Identifier: GPL-3.0-or-later
"""One emulated cluster with its nodes, and the playbook run against it."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from typing import Any

import chart
import yaml
from emulator.__main__ import fill, kubeconfig
from emulator.controllers import Controllers
from emulator.server import Server
from emulator.store import Store

ROOT = pathlib.Path(__file__).resolve().parents[2]
_PATIENCE = float(os.environ.get("KUBE_PATIENCE", "600"))    # seconds a run may take; more on a busy machine
_PLAYBOOK = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
_L40S = {"address": "0000:17:00.0", "id": "10de:26b9", "class": "0302", "driver": "nvidia", "numa_node": 0}
_FACTS: dict[str, Any] = {
    "os": {"id": "ubuntu", "version": "22.04", "codename": "jammy", "family": "debian", "arch": "x86_64", "virt": None},
    "kernel": {"running": "5.15.0-117-generic", "default_boot": "5.15.0-117-generic", "cmdline": "", "modules": [],
               "installed": [{"release": "5.15.0-117-generic", "image": True, "initrd": True, "headers": True,
                              "compiler": "gcc-11", "nvidia": None, "extra_modules": []}]},
    "gpus": [_L40S], "nvswitches": [], "secure_boot": {"enabled": False, "mok": []},
    "driver": {"loaded": None, "library": None, "smi": {"status": "missing"}, "origin": "none", "dkms": [],
               "hung_tasks": [], "processes": 0, "nouveau": {"loaded": False, "blocked": True, "in_initramfs": False},
               "fabricmanager": {"version": None, "active": False}, "persistenced": {"active": False}},
    "packages": {"manager": "apt", "installed": {}, "available": {}, "origins": {}, "held": [], "pins": [],
                 "repositories": [], "broken": [], "auto_upgrades": {"enabled": False, "excluded": []},
                 "locked_by": None, "cache_age": 60},
    "containers": {"containerd": None, "toolkit": None, "runc": None, "cdi": []},
    "services": {}, "files": {}, "state": None, "unknown": {},
}


def facts(**driver: Any) -> dict[str, Any]:
    """Facts of an Ubuntu host with one L40S and no driver of its own, but for what is given."""
    made = copy.deepcopy(_FACTS)
    made["driver"].update(driver)
    return made


def node(name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """A node with a GPU."""
    marks = {"kubernetes.io/hostname": name, "nvidia.com/gpu.present": "true", **(labels or {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": marks},
            "status": {"nodeInfo": {"osImage": "Ubuntu 22.04.5 LTS", "kernelVersion": "5.15.0-117-generic",
                                    "containerRuntimeVersion": "containerd://1.7.30", "architecture": "amd64"}}}


class Run:
    """How a run of the playbook ended."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = output

    @property
    def changed(self) -> int:
        """Changes that the recap counts, over all hosts."""
        return sum(map(int, re.findall(r"changed=(\d+)", self.output)))

    def __repr__(self) -> str:
        return f"rc {self.code}\n{self.output}"


class Cluster:
    """An emulated cluster. ``add`` makes a host and its node, ``run`` runs the playbook."""

    def __init__(self, place: pathlib.Path) -> None:
        self.place = place
        self.store = Store()
        self.controllers = Controllers(self.store)
        fill(self.store, {})
        self.server = Server(self.store)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.kubeconfig = place / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(kubeconfig(self.server.url, None)))
        self.chart = chart.write(place)
        self.hosts: list[str] = []
        self.variables: dict[str, dict[str, Any]] = {}    # of single hosts
        (place / "facts").mkdir()

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    @property
    def uid(self) -> str:
        """What tells this cluster from others."""
        return str(self.store.objects["", "namespaces", "", "kube-system"]["metadata"]["uid"])

    def add(self, name: str, labels: dict[str, str] | None = None, **driver: Any) -> None:
        """Add a host (stored facts) and, of the same name, a node."""
        self.hosts.append(name)
        (self.place / "facts" / f"{name}.json").write_text(json.dumps({**facts(**driver), "host": name}))
        self.create(node(name, labels))

    def create(self, given: dict[str, Any]) -> None:
        """Create an object past the API."""
        group, _slash, version = given["apiVersion"].rpartition("/")
        kind = next(one for one in self.store.kinds()
                    if (one.group, one.version, one.kind) == (group, version, given["kind"]))
        self.store.create(kind, given["metadata"].get("namespace", "") if kind.namespaced else "", given)

    def one(self, plural: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """An object by its plural and name, None if it is not there."""
        for key, found in self.store.objects.items():
            if key[1:] == (plural, namespace, name):
                return found
        return None

    def run(self, *arguments: str, **variables: Any) -> Run:
        """Run playbooks/operator.yml and return how it ended."""
        done = subprocess.run(self._command(*arguments, **variables), **self._how, timeout=_PATIENCE, check=False)
        return Run(done.returncode, done.stdout)

    def killed_at(self, request: str, **variables: Any) -> None:
        """Run it, and kill it with all its children (kill -9) while the server holds a request that matches."""
        self.server.reached.clear()
        self.server.stopped.add(request)
        play = subprocess.Popen(self._command(**variables), **self._how)
        try:
            assert self.server.reached.wait(_PATIENCE), "the play never came to the request"
        finally:
            for pid in [play.pid, *_below(play.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            play.communicate()
            self.server.stopped.discard(request)

    @property
    def _how(self) -> dict[str, Any]:
        return {"cwd": ROOT, "env": {**os.environ, "HOME": str(self.place), "ANSIBLE_NOCOLOR": "1"},
                "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}

    def play(self, name: str, **variables: Any) -> Run:
        """Run a playbook that stands beside this file, with the cluster's kubeconfig."""
        how = {**self._how, "env": {**self._how["env"], "K8S_AUTH_KUBECONFIG": str(self.kubeconfig)}}
        given = {"gpu_operator_interval": 1, "ansible_python_interpreter": sys.executable, **variables}
        command = [_PLAYBOOK, str(pathlib.Path(__file__).parent / name), "-i", "localhost,", "-e", json.dumps(given)]
        done = subprocess.run(command, **how, timeout=_PATIENCE, check=False)
        return Run(done.returncode, done.stdout)

    def _command(self, *arguments: str, **variables: Any) -> list[str]:
        inventory = self.place / "hosts.yml"
        hosts = {name: {"ansible_become": False, **self.variables.get(name, {})} for name in self.hosts}
        inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        given = {"gpu_facts_file": str(self.place / "facts"), "gpu_operator_kubeconfig": str(self.kubeconfig),
                 "gpu_operator_chart": str(self.chart), "gpu_driver_owner": "operator", "gpu_kernel_policy": "off",
                 "gpu_operator_interval": 1, "gpu_operator_timeout": 5, "gpu_operator_pending_age": 1,
                 "gpu_operator_helm": helm(), **variables}
        return [_PLAYBOOK, str(ROOT / "playbooks" / "operator.yml"),
                "-i", str(inventory), "-e", json.dumps(given), *arguments]


def _below(pid: int) -> list[int]:
    """The processes that came from one, however deep."""
    parents: dict[int, list[int]] = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def helm() -> str:
    """Where helm is: on this machine, or out of a package (scripts/helm.sh)."""
    return subprocess.run([ROOT / "scripts" / "helm.sh"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
