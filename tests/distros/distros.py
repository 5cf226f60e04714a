# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of the lab, and what commands do in copies of them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import yaml

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
ONLY = os.environ.get("DISTROS_HOSTS", "").split()  # for a run on some of them
HOSTS: dict[str, Any] = {name: host for name, host in yaml.safe_load((HERE / "hosts.yml").read_text()).items()
                         if name in ONLY or not ONLY}
LAB = os.environ.get("LAB_NAME", "distros")
INVENTORY = ROOT / ".cache" / "lab" / LAB / "inventory"
BESIDE = 3  # commands at a time: they wait for the disk more than they work
FREE, HELD, GATED, PRUNED = "distros-free", "distros-held", "distros-gated", "distros-pruned"

# what a command leaves behind: kernels, their packages, the boot default, the other package
_LOOK = r"""
{ "$@"; } 2>&1 </dev/null; echo "=rc $?"
for image in /boot/vmlinuz-*; do echo "=kernel ${image#/boot/vmlinuz-}"; done
if command -v dpkg-query >/dev/null; then
    dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' |
        sed -nE 's/^installed (linux-(image|headers|modules)-.*)/=package \1/p'
    dpkg-query -W -f '=other ${Version}\n' cloud-init
else
    rpm -qa 'kernel*' | grep -vE '^kernel-(firmware|tools)' | sort | sed 's/^/=package /'
    rpm -q --qf '=other %{VERSION}-%{RELEASE}\n' tzdata timezone | grep '^=other'
fi
grub-editenv - list | sed 's/^/=grubenv /'
"""


@dataclasses.dataclass
class State:
    """A copy of a host after a command."""

    output: str
    rc: int
    kernels: list[str]
    packages: list[str]
    other: str
    grubenv: list[str]

    def same_kernel(self, before: State) -> bool:
        """Say whether no kernel, no package of one and no boot default differs."""
        return (self.kernels, self.packages, self.grubenv) == (before.kernels, before.packages, before.grubenv)


def _run(*command: str, check: bool = True, timeout: float = 600) -> str:
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=timeout, cwd=ROOT, env={**os.environ, "LAB_NAME": LAB})
    if check and done.returncode != 0:
        raise AssertionError(f"rc {done.returncode}: {' '.join(command)[:200]}\n{done.stdout[-6000:]}")
    return done.stdout


def lab(*words: str, check: bool = True) -> str:
    """Call the lab."""
    return _run(str(ROOT / "scripts" / "lab"), *words, check=check)


def play(name: str, *words: str) -> str:
    """Run one of the playbooks here on all hosts; the tests look for each host in what it printed."""
    return _run("ansible-playbook", str(HERE / name), "-i", str(INVENTORY), *words, check=False)


def attempt(host: str, label: str, command: str) -> State:
    """Type a command in a copy of a host and look at what is there afterwards."""
    text = lab("try", host, label, "sh", "-c", _LOOK, "sh", "sh", "-c", command)

    def values(key: str) -> list[str]:
        return re.findall(rf"^={key} (.*)$", text, re.M)

    assert values("rc") and values("kernel"), text
    return State(text, int(values("rc")[0]), values("kernel"), values("package"), values("other")[0], values("grubenv"))


def _each(function: Any, rows: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(BESIDE) as pool:
        return list(pool.map(function, rows))


class World:
    """The hosts in their three states, and what every command did in each of them."""

    def __init__(self) -> None:
        began = time.monotonic()

        def said(what: str) -> None:
            print(f"distros: {what} ({time.monotonic() - began:.0f} s)", flush=True)

        lab("reset", *HOSTS)
        said("hosts stand")
        _each(lambda name: lab("exec", name, "sh", "-c", HOSTS[name]["prepare"]), list(HOSTS))
        _each(lambda name: lab("snapshot", name, FREE), list(HOSTS))
        said("drivers are installed")
        self.hold = play("hold.yml")
        _each(lambda name: lab("snapshot", name, HELD), list(HOSTS))
        said("kernels are held")
        rows = [(name, label, row["command"]) for label in (FREE, HELD) for name, host in HOSTS.items()
                for row in [{"command": "true"}, *host["commands"]]]
        self.done = dict(zip(rows, _each(lambda row: attempt(*row), rows), strict=True))
        said("commands were typed")
        self.hold_again = play("hold.yml")
        self.cut = play("cut.yml")
        said("a staging was cut off and taken back")
        self.stage = play("stage.yml")
        _each(lambda name: lab("snapshot", name, GATED), list(HOSTS))
        said("newer kernels are staged")
        rows = [(name, GATED, row["command"]) for name, host in HOSTS.items()
                for row in [{"command": "true"}, *host["commands"]]]
        with ThreadPoolExecutor(1) as beside:  # the hosts themselves are idle, as commands are typed in copies of them
            boot = beside.submit(play, "boot.yml")
            self.done.update(zip(rows, _each(lambda row: attempt(*row), rows), strict=True))
            self.boot = boot.result()
        said("kernels were started once, and made the default")
        self.modules = {name: lab("exec", name, "modinfo", "-F", "vermagic",
                                  f"/lib/modules/{HOSTS[name]['staged']}/{HOSTS[name]['module']}", check=False)
                        for name in HOSTS}
        self.prune = play("prune.yml")
        _each(lambda name: lab("snapshot", name, PRUNED), list(HOSTS))
        self.done.update({(name, PRUNED, "true"): attempt(name, PRUNED, "true") for name in HOSTS})
        said("old kernels are out")
        look = (HERE / "settings.sh").read_text()
        tried = {name: lab("try", name, FREE, "sh", "-c", look).splitlines() for name in HOSTS}
        self.settings = {name: [line for line in lines if line != "rc=0"] for name, lines in tried.items()}
        self.undo, self.undo_again = play("undo.yml"), play("undo.yml")
        self.settings_after = {name: lab("exec", name, "sh", "-c", look).splitlines() for name in HOSTS}
        said("the role was taken away")
