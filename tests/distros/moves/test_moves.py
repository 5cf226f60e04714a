# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver moves between branches, flavours and variants, on Ubuntu, RHEL and SLES, with their real package managers.

Each move is made once to the end and, on a fresh copy of the same host, once cut off in the scripts of one package: the
next run finishes it. Every one ends with nothing left to do, and a further run changes nothing.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import subprocess
from typing import Any

import pytest
import yaml

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
MOVES: list[dict[str, Any]] = yaml.safe_load((HERE / "moves.yml").read_text())
LAB = os.environ.get("LAB_NAME", "moves")
INVENTORY = ROOT / ".cache" / "lab" / LAB / "inventory"
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


def lab(*words: str, check: bool = True) -> str:
    done = subprocess.run([str(ROOT / "scripts" / "lab"), *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "LAB_NAME": LAB}, timeout=900)
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done.stdout


def driver(host: str, asked: dict[str, Any], fails: bool = False) -> tuple[dict[str, Any], int]:
    """Run the role with a policy; what the host has then, and how many tasks changed something."""
    program = ROOT / ".venv" / "bin" / "ansible-playbook"
    done = subprocess.run([str(program), "-i", str(INVENTORY), str(HERE / "driver.yml"), "-e", f"host={host}", "-e",
                           json.dumps(asked)], capture_output=True, text=True, check=False, timeout=1800, cwd=ROOT)
    assert (done.returncode != 0) == fails, done.stdout[-6000:] + done.stderr[-2000:]
    changed = re.search(r"changed=(\d+)", done.stdout.rpartition("PLAY RECAP")[2])
    found = re.search(r"RESULT ([A-Za-z0-9+/=]+)", done.stdout)
    result = json.loads(base64.b64decode(found.group(1))) if found else {}
    return result, int(changed.group(1)) if changed else -1


_SNAPSHOTS: set[str] = set()


def start(move: dict[str, Any], label: str) -> None:
    """The host with the driver that is there before, taken from a snapshot at the second time."""
    host = move["host"]
    if label in _SNAPSHOTS:
        lab("reset", host, "--snapshot", label)
        return
    lab("up", "--hosts", host)
    lab("reset", host)
    if "before" in move:
        lab("exec", host, "sh", "-c", f"export DEBIAN_FRONTEND=noninteractive\n{move['before']}")
    else:
        driver(host, move["first"])
    lab("snapshot", host, label)
    _SNAPSHOTS.add(label)


def installed(host: str) -> set[str]:
    query = "dpkg-query -W -f '${db:Status-Status} ${Package}\\n' 2>/dev/null | sed -n 's/^installed //p'"
    if host.startswith(("gpu-el", "gpu-sles")):
        query = "rpm -qa --queryformat '%{NAME}\\n'"
    return set(lab("exec", host, "sh", "-c", query).split())


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("move", MOVES, ids=[move["id"] for move in MOVES])
def test_move(move: dict[str, Any], cut: bool) -> None:
    host = move["host"]
    start(move, f"before-{move['id']}")
    if cut:
        lab("exec", host, "sh", "-c", 'printf "%s" "$1" > /run/standin-hook && chmod +x /run/standin-hook', "sh",
            HOOK % move["cut"])
        driver(host, move["then"], fails=True)
        assert lab("exec", host, "sh", "-c", "ls /run/standin-hook 2>&1 || true").count("cannot access"), "it was cut"
    result, _changed = driver(host, move["then"])
    assert {key: result[key] for key in move["result"]} == move["result"]
    left = installed(host)
    assert not left & set(move.get("gone", ())), sorted(left & set(move["gone"]))
    if "stream" in move:
        modules = lab("exec", host, "cat", "/etc/dnf/modules.d/nvidia-driver.module")
        assert f"stream={move['stream']}" in modules
    again, changed = driver(host, move["then"])
    assert (again, changed) == (result, 0)
