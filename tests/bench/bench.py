#!/usr/bin/env python
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection costs, as ratios to a bare ping play. Prints; never fails by the clock.

    tests/bench/bench.py plan                    milliseconds to plan one host from facts
    tests/bench/bench.py shapes                  10,000 hosts of 40 shapes on one and two cores (plan_fleet.py)
    tests/bench/bench.py fleet [--hosts 200,1000] controller CPU of preflight.yml and site.yml with nothing to do
    tests/bench/bench.py lab [--inventory PATH]  remote calls and wall time of a second site.yml on the lab's hosts
    tests/bench/bench.py once                    eight hosts of one shape: one build, against one host and eight builds

For ``fleet`` the hosts are answered from a file by a connection plugin that runs nothing, so that only the controller's
own work is measured; the bare ping play goes through the same connection with the same forks.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FACTS = ROOT / "plugins" / "plugin_utils" / "controller" / "rehearsal.json"
PING = HERE / "playbooks" / "ping.yml"
#: Where the recorded host has its toolkit from: the lab's stand-in for NVIDIA's repository.
TOOLKIT = {
    "url": "file:/srv/baremetal-nvidia-lab/toolkit",
    "suite": "/",
    "components": [],
    "key_url": "file:///srv/baremetal-nvidia-lab/toolkit/key.asc",
    "fingerprint": "70D611226262FE7F868E5DE9FEF8AA56C8A2655E",
}
PARTS = ("plan", "shapes", "fleet", "lab", "once")
GROUPS = ("gpu_ok", "gpu_change", "gpu_blocked", "gpu_pending", "gpu_refresh", "gpu_planned")


class Run:
    """One ansible-playbook: its wall time, the CPU time of it and its workers, and what the callback counted."""

    def __init__(self, playbook: pathlib.Path, inventory: pathlib.Path, *arguments: str, **environment: str) -> None:
        with tempfile.TemporaryDirectory(prefix="gpu-bench-") as scratch:
            count = pathlib.Path(scratch, "count.json")
            counting = environment.pop("counting", "yes") == "yes"
            env = {
                **os.environ,
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_CONNECTION_PLUGINS": str(HERE / "connection_plugins"),
                "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callback_plugins"),
                **({"ANSIBLE_CALLBACKS_ENABLED": "gpu_count"} if counting else {}),
                "GPU_BENCH_COUNT": str(count),
                "ANSIBLE_NOCOLOR": "1",
                **environment,
            }
            command = [
                str(pathlib.Path(sys.executable).with_name("ansible-playbook")),
                str(playbook),
                "-i",
                str(inventory),
            ]
            with open(pathlib.Path(scratch, "output"), "w+", encoding="utf-8") as output:
                started = time.monotonic()
                child = subprocess.Popen(
                    [*command, *arguments],
                    env=env,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
                _pid, status, usage = os.wait4(child.pid, 0)
                self.wall = time.monotonic() - started
                child.returncode = os.waitstatus_to_exitcode(status)
                self.cpu = usage.ru_utime + usage.ru_stime
                self.memory = usage.ru_maxrss / 1024
                output.seek(0)
                self.output = output.read()
            self.rc = child.returncode
            self.counts: dict[str, Any] = json.loads(count.read_text()) if count.exists() else {}

    def need(self, *codes: int) -> Run:
        """Stop the bench when the playbook did not do what is measured."""
        if self.rc not in (codes or (0,)):
            raise SystemExit(f"bench: the playbook ended with {self.rc}:\n{self.output[-4000:]}")
        return self

    def largest(self, key: str) -> int:
        """Return the largest count of a host."""
        return max((int(counts[key]) for counts in self.counts.values()), default=0)


def facts() -> dict[str, Any]:
    """Return full-size facts of a host as planned (recorded from the lab after site.yml)."""
    content: dict[str, Any] = json.loads(FACTS.read_text(encoding="utf-8"))
    content["packages"]["cache_age"] = 60
    return content


def bench_plan() -> None:
    """Plan one host many times."""
    sys.path.insert(0, str(ROOT / "tests"))
    import _bootstrap  # noqa: F401
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan

    started = time.process_time()
    matrix = load()
    print(f"matrix: loaded in {1000 * (time.process_time() - started):.0f} ms")
    defaults, one, today = policy.load_defaults(), facts(), datetime.date(2026, 11, 30)
    plan("warm", one, defaults, matrix, today)
    times = []
    for number in range(200):
        started = time.process_time()
        plan(f"g{number}", one, defaults, matrix, today)
        times.append(1000 * (time.process_time() - started))
    print(f"plan: {statistics.median(times):.2f} ms a host (median of {len(times)}; bar: 5 ms)")


def bench_fleet(sizes: list[int], forks: int) -> None:
    """Preflight (from hosts and from stored facts) and site.yml with nothing to do, against a bare ping play."""
    with tempfile.TemporaryDirectory(prefix="gpu-bench-") as scratch:
        canned, stored = pathlib.Path(scratch, "canned"), pathlib.Path(scratch, "stored")
        canned.mkdir()
        stored.mkdir()
        content = facts()
        for number in range(max(sizes)):
            own = {**content, "host": f"gpu-{number:04}", "read_at": int(time.time())}
            (stored / f"gpu-{number:04}.json").write_text(json.dumps(own))
            (canned / f"gpu-{number:04}.json").write_text(
                json.dumps({"changed": False, "ansible_facts": {"gpu_facts": own}})
            )
        print(f"facts: {len(json.dumps(content)) / 1024:.1f} KiB a host; forks {forks}")
        for size in sizes:
            inventory = pathlib.Path(scratch, f"hosts-{size}.json")
            inventory.write_text(json.dumps(_inventory(size)))
            environment = {"GPU_BENCH_CANNED": str(canned), "ANSIBLE_FORKS": str(forks), "counting": "no"}
            ping = Run(PING, inventory, **environment).need()
            print(f"{size} hosts: {'ping':<24} CPU {ping.cpu:6.1f} s  wall {ping.wall:6.1f} s  {ping.memory:.0f} MiB")
            runs = {
                "preflight": ("preflight.yml", ()),
                "preflight, stored facts": ("preflight.yml", ("-e", f"gpu_facts_file={stored}")),
                "site, nothing to do": ("site.yml", ()),
            }
            for name, (playbook, arguments) in runs.items():
                run = Run(ROOT / "playbooks" / playbook, inventory, *arguments, **environment).need()
                print(
                    f"{size} hosts: {name:<24} CPU {run.cpu:6.1f} s  wall {run.wall:6.1f} s  {run.memory:.0f} MiB  "
                    f"ratio to ping: CPU {run.cpu / ping.cpu:.2f}, wall {run.wall / ping.wall:.2f} (bar: 1.5)"
                )
        counted = Run(
            ROOT / "playbooks" / "site.yml", inventory, GPU_BENCH_CANNED=str(canned), ANSIBLE_FORKS=str(forks)
        ).need()
        evaluations = sum(item["evaluations"] for item in counted.counts.values()) / len(counted.counts)
        print(
            f"site, nothing to do: {counted.largest('remote_calls')} remote call(s) a host (bar: 3), "
            f"{evaluations:.2f} task evaluations a host (bar: 6), {counted.largest('changed')} changed"
        )


def _inventory(size: int) -> dict[str, Any]:
    common = {"ansible_connection": "canned", "ansible_python_interpreter": "/usr/bin/python3", "ansible_become": False}
    common["gpu_toolkit_repository"] = TOOLKIT
    hosts = {f"gpu-{number:04}": {} for number in range(size)}
    return {"all": {"hosts": hosts, "vars": {**common}, "children": {name: {} for name in GROUPS}}}


def bench_lab(inventory: pathlib.Path, times: int) -> None:
    """A second run of site.yml on real hosts; the first one brings them to their plan."""
    if not (inventory / "hosts.yml").exists():
        raise SystemExit(f"bench: no lab at {inventory} (make lab)")
    site = ROOT / "playbooks" / "site.yml"
    Run(site, inventory).need()
    pings = [Run(PING, inventory, counting="no").need().wall for _round in range(times)]
    second = [Run(site, inventory).need() for _round in range(times)]
    ping, wall = statistics.median(pings), statistics.median(run.wall for run in second)
    for host, counts in sorted(second[-1].counts.items()):
        print(
            f"second run, {host}: {counts['remote_calls']} remote call(s) (bar: 3) [{', '.join(counts['modules'])}], "
            f"{counts['evaluations']} task evaluations (bar: 6), {counts['changed']} changed"
        )
    print(f"second run: {wall:.2f} s against {ping:.2f} s of a bare ping play: ratio {wall / ping:.2f} (bar: 3)")


def main() -> None:
    """Parse the command line and run the wanted parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--hosts", default="200,1000", help="sizes of the fleet")
    parser.add_argument("--forks", type=int, default=20)
    parser.add_argument(
        "--inventory", type=pathlib.Path, default=_lab(), help="the lab's (LAB_NAME chooses another lab)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small fleet, each run once: enough to see that all works"
    )
    chosen = parser.parse_args()
    sizes = [60] if chosen.quick else [int(size) for size in chosen.hosts.split(",")]
    for part in chosen.parts:
        print(f"== {part}", flush=True)
        if part == "plan":
            bench_plan()
        elif part == "shapes":
            hosts = "1000" if chosen.quick else "10000"
            subprocess.run([sys.executable, str(HERE / "plan_fleet.py"), "--hosts", hosts], check=True)
        elif part == "fleet":
            bench_fleet(sizes, chosen.forks)
        elif part == "lab":
            bench_lab(chosen.inventory, 1 if chosen.quick else 3)
        elif part == "once":
            subprocess.run([sys.executable, str(HERE / "once.py"), *(["--quick"] if chosen.quick else [])], check=True)
        else:
            parser.error(f"unknown part {part}: choose from {', '.join(PARTS)}")


def _lab() -> pathlib.Path:
    name = os.environ.get("LAB_NAME")
    return ROOT / ".cache" / "lab" / name / "inventory" if name else ROOT / "inventories" / "lab"


if __name__ == "__main__":
    main()
