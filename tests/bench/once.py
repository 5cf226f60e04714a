#!/usr/bin/env python
# SPDX-License-Identifier: GPL-3.0-or-later
"""Built once: hosts of one shape get the driver from one build. Prints; fails where a kernel's module was built twice.

The same play, on hosts that never had a driver, with nothing stored: first one host alone, then all of them together.
In full a real module is built on eight Debian hosts; --quick takes three Ubuntu hosts whose headers are stand-ins, so
that a build takes no time: it shows the one build, and its times say nothing.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAY = ROOT / "tests" / "distros" / "moves" / "driver.yml"
#: Not the lab's cache, which all hosts see.
OWN_CACHE = "/var/lib/bench-modules"
BAR = 1.5


class Lab:
    """Several hosts of one kind."""

    def __init__(self, host: str, count: int, log: pathlib.Path | None = None) -> None:
        self.log = log
        self.names = [host, *(f"{host}-{number}" for number in range(2, count + 1))]
        self.environment = {**os.environ, "LAB_NAME": "bench-once", "LAB_TWINS": f"{host}={count}"}
        self.inventory = ROOT / ".cache" / "lab" / "bench-once" / "inventory"

    def __call__(self, *words: str) -> str:
        done = subprocess.run([str(ROOT / "scripts" / "lab"), *words], env=self.environment, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: scripts/lab {' '.join(words)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def driver(self, names: list[str], share: str, policy: dict[str, Any]) -> float:
        """Give hosts their driver; the wall time."""
        asked = {**policy, "host": ":".join(names), "gpu_driver_cache_dir": OWN_CACHE, "gpu_driver_share_dir": share}
        started = time.monotonic()
        done = subprocess.run([str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i",
                               str(self.inventory), str(PLAY), "-e", json.dumps(asked)], cwd=ROOT, capture_output=True,
                              text=True, check=False, env={**os.environ, "ANSIBLE_FORKS": str(len(names))})
        if self.log is not None:
            self.log.mkdir(parents=True, exist_ok=True)
            (self.log / f"{len(names)}.log").write_text(done.stdout)
        if done.returncode != 0:
            raise SystemExit(f"bench: the play ended with {done.returncode}:\n{done.stdout[-4000:]}")
        return time.monotonic() - started

    def proofs(self, name: str) -> list[dict[str, Any]]:
        """How each kernel of a host got its module."""
        state = json.loads(self("exec", name, "cat", "/var/lib/baremetal-nvidia/state.json"))
        return list(state["proved_kernels"].values())


def main() -> None:
    """One host alone, then all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", type=int)
    parser.add_argument("--host")
    parser.add_argument("--flavour", default="auto")
    parser.add_argument("--log", type=pathlib.Path, help="keep there what the plays said")
    chosen = parser.parse_args()
    host = chosen.host or ("gpu-ub2404" if chosen.quick else "gpu-deb12")
    count = chosen.count or (3 if chosen.quick else 8)
    policy = {"gpu_driver_method": "dkms", "gpu_driver_flavour": chosen.flavour}
    lab = Lab(host, count, chosen.log)
    with tempfile.TemporaryDirectory(prefix="gpu-bench-once-") as scratch:
        try:
            lab("down")
            lab("up", "--hosts", host)
            alone = lab.driver([host], f"{scratch}/alone", policy)
            builds = [one.get("seconds") or 0 for one in lab.proofs(host)]
            lab("down")
            lab("up", "--hosts", *lab.names)
            together = lab.driver(lab.names, f"{scratch}/together", policy)
            how = collections.Counter(str(one["how"]) for name in lab.names for one in lab.proofs(name))
        finally:
            lab("down")
    kinds = ", ".join(f"{number} {word}" for word, number in sorted(how.items()))
    build, each = sum(builds), len(builds)  # one build for each of its kernels
    print(f"one host: {alone:.0f} s, {build:.0f} s of it building for {each} kernel(s)")
    print(f"{count} hosts of one shape: {together:.0f} s ({kinds}); ratio to one host {together / alone:.2f}"
          + ("" if chosen.quick else f" (bar: {BAR})")
          + f"; {count} builds here would take {alone + (count - 1) * build:.0f} s and more")
    if how["built"] != each:
        raise SystemExit(f"bench: {how['built']} builds, and {each} should have been enough")


if __name__ == "__main__":
    main()
