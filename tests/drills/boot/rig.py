# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine of a drill: started, driven by Ansible, cut off, looked at."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "molecule" / "shared"))

from lab import vm, vm_cli, vm_machine
from lab.settings import LabError

HERE = ROOT / "tests" / "drills"
LOGS = ROOT / ".cache" / "drills"
# What a move of a kernel may not touch unless it ends well: to the byte where that is cheap, else by size and time.
_STATE = r"""
set -e
dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n'
apt-mark showhold
cd /boot
find . -type f -not -path './grub/[fil]*/*' | sort | xargs -d '\n' sha256sum
ls /lib/modules
find /lib/modules /var/lib/dkms /usr/src -printf '%p %s %T@ %m\n' | sort
cat /etc/default/grub /etc/default/grub.d/*
"""


class DrillError(Exception):
    """What the drill wants to see is not so; the message says what is."""


def expect(what: str, holds: bool, seen: object = "") -> None:
    """Fail the drill unless something holds."""
    if not holds:
        raise DrillError(f"{what}: it is not so. {str(seen)[-3000:]}")


class Rig:
    """A machine and the ways to it."""

    labels: ClassVar[dict[str, str]] = {}   # disks that drills of this run keep for each other: what is on them

    def __init__(self, name: str) -> None:
        self.name = name
        self.where = vm.settings()
        self.log = LOGS / f"{name}.log"
        LOGS.mkdir(parents=True, exist_ok=True)

    @property
    def machine(self) -> vm.Machine:
        """The machine as it stands."""
        return vm.get(self.where, self.name)

    @property
    def inventory(self) -> Path:
        """Its inventory."""
        return self.machine.folder / "inventory"

    def up(self, *options: str) -> None:
        """Make it anew and switch it on."""
        expect("the machine starts", vm_cli.main(["up", self.name, "--anew", *options]) == 0)

    error = LabError

    def there(self) -> bool:
        """Whether it has been made."""
        return self.name in vm.known(self.where)

    def down(self) -> None:
        """Throw it away."""
        if self.there():
            vm_cli.main(["down", self.name])

    def save(self, label: str, what: str) -> None:
        """Keep its disk, switched off, for other drills of this run."""
        expect("the disk is kept", vm_cli.main(["save", self.name, label]) == 0)
        self.labels[label] = what

    @classmethod
    def forget(cls) -> None:
        """Throw the kept disks away."""
        for label in cls.labels:
            for suffix in (".qcow2", ".json"):
                (vm.settings().state / "saved" / f"{label}{suffix}").unlink(missing_ok=True)
        cls.labels.clear()

    def start(self) -> str:
        """Switch it on (again); the start it is in."""
        vm_machine.start(self.where, self.machine)
        return vm_machine.wait(self.where, self.machine)

    def cut(self) -> None:
        """Cut the power."""
        vm_machine.cut(self.machine)

    def run(self, command: str, timeout: float = 600) -> str:
        """Run a command as root; its standard output."""
        return vm_machine.run(self.where, self.machine, command, timeout)

    def copy(self, source: Path, target: str) -> None:
        """Put a file on the machine."""
        with source.open("rb") as stream:
            subprocess.run([*self.ssh(), f"cat >'{target}'"], stdin=stream, check=True, timeout=120)

    def ssh(self) -> list[str]:
        """How it is reached."""
        return vm_machine.ssh(self.where, self.machine)

    def boot_id(self) -> str:
        """Which start it is in."""
        return vm_machine.boot_id(self.where, self.machine) or ""

    def back(self, other_than: str, seconds: float = vm_machine.SSH_SECONDS) -> str:
        """Wait for it in another start."""
        return vm_machine.wait(self.where, self.machine, other_than, seconds)

    def console(self) -> str:
        """All that its console showed."""
        return self.machine.console.read_text(errors="replace")

    # Ansible

    def _environment(self) -> dict[str, str]:
        return os.environ | {"ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "60",
                             "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
                             "ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks",
                             "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}

    def playing(self, playbook: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a playbook; its output goes to the log."""
        with self.log.open("a") as log:
            log.write(f"\n=== {playbook} {' '.join(options)} ({time.strftime('%H:%M:%S')})\n")
            log.flush()
            child = subprocess.Popen(
                ["ansible-playbook", "-i", str(self.inventory), playbook, *options], cwd=ROOT, env=self._environment(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        vm_machine.prefer(child.pid)
        return child

    def play(self, playbook: str, *options: str, timeout: float = 5400) -> tuple[int, str]:
        """Run a playbook to its end: how it ended, what it said."""
        begun = self.said()
        child = self.playing(playbook, *options)
        try:
            code = child.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            raise DrillError(f"{playbook}: no end after {timeout:.0f} s, see {self.log}") from None
        return code, self.said(begun)

    def said(self, since: str = "") -> str:
        """What playbooks said, all of it or what came since."""
        return (self.log.read_text(errors="replace") if self.log.exists() else "")[len(since):]

    def module(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run one module on the machine; what it returns (a failed one has 'failed')."""
        done = subprocess.run(
            ["ansible", "-i", str(self.inventory), self.name, "--become", "-m", f"baremetal.nvidia.{name}",
             "-a", json.dumps(arguments)],
            cwd=ROOT, env=self._environment() | {"ANSIBLE_STDOUT_CALLBACK": "minimal"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=1200)
        head, mark, tail = done.stdout.partition("=> ")
        expect(f"{name} answers", bool(mark), done.stdout + done.stderr)
        return {"failed": "FAILED" in head, **json.loads(tail)}

    # What the host is

    def proved(self) -> str:
        """The kernel that runs, after a look that its module is the driver's and loads as far as it can here."""
        said = self.run(
            "uname -r; modinfo -F vermagic nvidia-current | cut -d' ' -f1; modinfo -F version nvidia-current; "
            "dpkg-query -W -f '${Version}\\n' nvidia-kernel-dkms | sed 's/-[^-]*$//'; "
            # busy: the system is loading it just now
            "for try in 1 2 3 4 5 6; do said=$(modprobe nvidia-current 2>&1) || true; "
            "case $said in *busy*) sleep 10 ;; *) break ;; esac; done; echo \"$said\"").splitlines()
        running, magic, version, driver, loads = (said + [""] * 5)[:5]
        expect(f"{running} has a module of its own", magic == running, said)
        expect(f"the module of {running} is the driver's", version == driver, said)
        expect(f"the module of {running} loads as far as it can without a device", "No such device" in loads, said)
        return running

    def state(self) -> list[str]:
        """What may not change, line by line."""
        return self.run(_STATE).splitlines()


def differ(before: list[str], after: list[str]) -> list[str]:
    """What was lost and what came, at most thirty lines."""
    old, new = set(before), set(after)
    return [*(f"- {line}" for line in before if line not in new),
            *(f"+ {line}" for line in after if line not in old)][:30]


def said(text: str, words: Sequence[str]) -> bool:
    """Whether a text has all the words, however it is wrapped."""
    flat = " ".join(text.split())
    return all(word in flat for word in words)
