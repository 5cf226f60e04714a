# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that boot: what the parts of scripts/vm share (settings, the shape of a machine, keys)."""
from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

from . import shell
from .settings import SHARED, LabError, Settings, from_environment

RECIPE = SHARED / "vm"
FIRMWARES = ("bios", "uefi")
LAYOUTS = ("plain", "mdraid", "lvm")
# The lab's host of each suite: its packages, its devices and who logs in.
HOST_OF = {"bookworm": "gpu-deb12", "trixie": "gpu-deb13"}
FRESH = "fresh"


class VmSettings(Settings):
    """The lab's settings, with a folder and ports of the machines' own."""

    @property
    def state(self) -> Path:
        """Where the machines, their disks and keys are."""
        return self.cache / "vm"


def settings() -> VmSettings:
    """Read the environment, as scripts/lab does."""
    plain = from_environment()
    return VmSettings(**{field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)})


@dataclass(frozen=True)
class Machine:
    """One machine: what it was made from, where its files are, how it is reached."""

    name: str
    suite: str
    content: str
    firmware: str
    layout: str
    base: str
    user: str
    port: int
    folder: Path

    @property
    def disk(self) -> Path:
        """Its own disk: an overlay on the base."""
        return self.folder / "disk.qcow2"

    @property
    def console(self) -> Path:
        """What it wrote on its serial console, over all starts."""
        return self.folder / "console.log"


def folder_of(state: Path, name: str) -> Path:
    """Where a machine lives; the name is checked, since it becomes a path and a host name."""
    if not name.replace("-", "").isalnum() or not name.isascii() or name != name.lower() or name in ("base", "keys"):
        raise LabError(f"name {name!r}: small letters, digits and - are allowed, and not 'base' or 'keys'")
    return state / name


def known(where: VmSettings) -> dict[str, Machine]:
    """All machines that have a disk, running or not."""
    found = {}
    for path in sorted(where.state.glob("*/vm.json")):
        entry = json.loads(path.read_text())
        found[entry["name"]] = Machine(**entry, folder=path.parent)
    return found


def get(where: VmSettings, name: str) -> Machine:
    """The machine of that name."""
    there = known(where)
    if name not in there:
        raise LabError(f"there is no machine {name!r}; there is {', '.join(there) or 'none'}: scripts/vm up {name}")
    return there[name]


def keep(machine: Machine) -> None:
    """Write down what a machine is."""
    entry = {key: value for key, value in dataclasses.asdict(machine).items() if key != "folder"}
    fresh = machine.folder / "vm.json.new"
    fresh.write_text(json.dumps(entry, indent=1))
    os.replace(fresh, machine.folder / "vm.json")


def key(where: VmSettings, name: str) -> Path:
    """A key pair of the machines (id_ed25519: opens them; host_ed25519: is theirs), made once."""
    path = where.state / "keys" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shell.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"lab-vm {name}", "-f", str(path)])
    return path
