# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver moves between branches, flavours and variants, on Ubuntu, RHEL and SLES, with their real package managers.

A host makes its moves one after the other. Each is cut off first, in the scripts of one package: the next run finishes
it, nothing is left to do, and a further run changes nothing. MOVES=whole: none is cut off.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
HOSTS: list[dict[str, Any]] = yaml.safe_load((HERE / "moves.yml").read_text())
CUT = os.environ.get("MOVES", "cut") != "whole"
# Kills the package manager above the script: its parent, and where that is a helper of dpkg or rpm, all up to it.
HOOK = r"""#!/bin/sh
[ "$1" = '%s' ] || exit 0
rm -f /run/standin-hook
pid=$PPID
while [ "$pid" -gt 1 ]; do
    case $(cat "/proc/$pid/comm") in apt-get | dpkg | dnf* | zypper | rpm) kill -9 "$pid" ;; esac
    read -r _ _ _ parent _ < "/proc/$pid/stat"
    pid=$parent
done
"""


class Lab:
    """One host in a lab of its own, so that several move at a time."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.name = f"{os.environ.get('LAB_NAME', 'moves')}-{host}"
        self.inventory = ROOT / ".cache" / "lab" / self.name / "inventory"
        self.spent: list[str] = []

    def __call__(self, *words: str) -> str:
        done = subprocess.run([str(ROOT / "scripts" / "lab"), *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "LAB_NAME": self.name}, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sh(self, script: str, *words: str) -> str:
        return self("exec", self.host, "sh", "-c", f"export DEBIAN_FRONTEND=noninteractive\n{script}", "sh", *words)

    def play(self, asked: dict[str, Any], fails: bool = False) -> tuple[dict[str, Any], int]:
        """Run the role with a policy; what the host has then, and how many tasks changed something."""
        program = ROOT / ".venv" / "bin" / "ansible-playbook"
        started = time.monotonic()
        done = subprocess.run([str(program), "-i", str(self.inventory), str(HERE / "driver.yml"), "-e",
                               f"host={self.host}", "-e", json.dumps(asked)], capture_output=True, text=True,
                              check=False, timeout=900, cwd=ROOT)
        self.spent.append(f"{time.monotonic() - started:.0f}")
        assert (done.returncode != 0) == fails, done.stdout[-6000:] + done.stderr[-2000:]
        changed = re.search(r"changed=(\d+)", done.stdout.rpartition("PLAY RECAP")[2])
        found = re.search(r"RESULT ([A-Za-z0-9+/=]+)", done.stdout)
        result = json.loads(base64.b64decode(found.group(1))) if found else {}
        return result, int(changed.group(1)) if changed else -1

    def packages(self) -> dict[str, str]:
        query = "dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n' | sed -n 's/^installed //p'"
        if self.host.startswith(("gpu-el", "gpu-sles")):
            query = "rpm -qa --queryformat '%{NAME} %{VERSION}\\n'"
        return dict(line.split() for line in self.sh(query).splitlines())

    def installed(self) -> set[str]:
        return set(self.packages())

    def drivers(self) -> set[str]:
        """The versions that packages of the driver have: one, or userspace and module do not belong together."""
        found = (re.match(r"(\d{3}\.\d+\.\d+)", version) for name, version in self.packages().items()
                 if "nvidia" in name)
        return {match.group(1) for match in found if match}


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    made = Lab(request.param)
    made("up", "--hosts", made.host)
    yield made
    if not request.session.testsfailed:  # else it stays, to be looked at
        made("down")


@pytest.mark.parametrize(("lab", "steps"), [(one["host"], one["steps"]) for one in HOSTS],
                         ids=[one["host"] for one in HOSTS], indirect=["lab"])
def test_moves(lab: Lab, steps: list[dict[str, Any]]) -> None:
    for step in steps:
        lab.spent.clear()
        if step.get("fresh"):
            lab("reset", lab.host)
        if "before" in step:
            lab.sh(step["before"])
        if CUT and "cut" in step:
            lab.sh('printf "%s" "$1" > /run/standin-hook && chmod +x /run/standin-hook', HOOK % step["cut"])
            lab.play(step["ask"], fails=True)
            assert "cut" in lab.sh("[ -e /run/standin-hook ] || echo cut"), f"{step['id']}: it was not cut off"
        result, changed = lab.play(step["ask"])
        assert {key: result.get(key) for key in step["result"]} == step["result"], step["id"]
        assert changed > 0, f"{step['id']}: there was nothing to do"
        assert lab.drivers() == {result["version"]}, f"{step['id']}: {lab.packages()}"
        left = lab.installed()
        assert not left & set(step.get("gone", ())), (step["id"], sorted(left & set(step["gone"])))
        if step.get("gone"):  # there is a way back, also after a move that was cut off
            kept = lab.sh("cd /var/lib/baremetal-nvidia/former/driver && sha256sum --quiet --check SHA256SUMS && ls")
            assert all(re.search(rf"^{re.escape(name)}[_-]", kept, re.M) for name in step["gone"]), (step["id"], kept)
        if "stream" in step:
            assert f"stream={step['stream']}" in lab.sh("cat /etc/dnf/modules.d/nvidia-driver.module"), step["id"]
        assert lab.play(step["ask"]) == (result, 0), f"{step['id']}: a further run changed something"
        print(f"{lab.host} {step['id']}: {' + '.join(lab.spent)} s")
