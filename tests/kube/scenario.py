# SPDX-License-Identifier: GPL-3.0-or-later
"""What the molecule scenario gpu_operator stands on: a cluster, hosts as stored facts, a chart and an inventory.

    scenario.py up|down DIRECTORY

KUBECONFIG names a cluster of your own (its nodes are labelled and get their labels back); without it one is emulated.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import chart
import kubernetes
import yaml
from cluster import facts, helm, node

HERE = pathlib.Path(__file__).parent
NODES = ("gpu-node-1", "gpu-node-2")
_PRESENT = "nvidia.com/gpu.present"
SECONDS = 900    # nothing outlives it


def up(place: pathlib.Path) -> None:
    """Start or take a cluster, and write the rest."""
    down(place)
    (place / "inventory" / "group_vars").mkdir(parents=True)
    (place / "facts").mkdir()
    given, names = os.environ.get("KUBECONFIG"), list(NODES)
    if given:
        api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(given))
        names = [one.metadata.name for one in api.list_node().items]
        (place / "labelled.json").write_text(json.dumps({"kubeconfig": given, "nodes": names}))
        for name in names:    # so that they are taken for nodes with GPUs
            api.patch_node(name, {"metadata": {"labels": {_PRESENT: "true"}}})
        _start(place, [str(HERE / "play.py"), given, str(SECONDS)])
    else:
        given = str(place / "kubeconfig")
        (place / "state.yml").write_text(yaml.safe_dump({"objects": [node(name) for name in names]}))
        started = _start(place, ["-m", "emulator", "--kubeconfig", given, "--state", str(place / "state.yml"),
                                 "--seconds", str(SECONDS)])
        until = time.monotonic() + 120
        while not pathlib.Path(given).exists():
            if started.poll() is not None or time.monotonic() > until:
                sys.exit(f"the emulated cluster did not start: {(place / 'log').read_text()}")
            time.sleep(0.2)
    for name in names:
        (place / "facts" / f"{name}.json").write_text(json.dumps({**facts(), "host": name}))
    own = os.environ.get("GPU_OPERATOR_CHART")
    wanted = {
        "gpu_hosts": "gpu_hosts",
        "gpu_facts_file": str(place / "facts"), "gpu_operator_kubeconfig": given, "gpu_operator_helm": helm(),
        "gpu_operator_namespace": "gpu-operator", "gpu_operator_chart": own or str(chart.write(place)),
        "gpu_driver_owner": "operator",
        "gpu_driver_version": "580.178.04", "gpu_operator_values": {"driver": {"nvidiaDriverCRD": {"enabled": True}}},
        "gpu_kernel_policy": "off", "gpu_operator_interval": 1, "gpu_operator_timeout": 600 if own else 60,
        "gpu_tenants": [{"name": "gpu-tenant-a", "gpus": 4, "priority": 1000, "max_gpus_per_container": 2}]}
    (place / "inventory" / "group_vars" / "all.yml").write_text(yaml.safe_dump(wanted))
    hosts = {"hosts": {name: {"ansible_become": False} for name in names}}
    (place / "inventory" / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": {"gpu_hosts": hosts}}}))


def _start(place: pathlib.Path, command: list[str]) -> subprocess.Popen[bytes]:
    with (place / "log").open("w") as log:
        started = subprocess.Popen([sys.executable, *command], cwd=HERE, stdout=log, stderr=log,
                                   start_new_session=True)
    (place / "pid").write_text(f"{started.pid}\n")
    return started


def down(place: pathlib.Path) -> None:
    """Stop what was started, and remove what was written; a cluster of your own stays."""
    written = place / "pid"
    if written.exists():
        pid = int(written.read_text())
        command = pathlib.Path(f"/proc/{pid}/cmdline")
        if command.exists() and (b"emulator" in command.read_bytes() or b"play.py" in command.read_bytes()):
            os.kill(pid, signal.SIGTERM)
    labelled = place / "labelled.json"
    if labelled.exists():
        told = json.loads(labelled.read_text())
        api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(told["kubeconfig"]))
        for name in told["nodes"]:
            api.patch_node(name, {"metadata": {"labels": {_PRESENT: None}}})
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]](pathlib.Path(sys.argv[2]).resolve())
