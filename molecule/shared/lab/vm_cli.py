# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""scripts/vm: machines that boot by their own GRUB, in QEMU. The command line."""
from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from . import hosts, inventory, ports, repository, shell, vm, vm_disks, vm_machine
from .settings import ROOT, LabError


def _inventory(where: vm.VmSettings, machine: vm.Machine) -> Path:
    """Write a machine's inventory, as the lab's."""
    with hosts.locked(where, "build"):
        repositories = repository.ensure(where)
    keys = where.state / "keys"
    (keys / "known_hosts").write_text(
        f"lab-vm {' '.join(vm.key(where, 'host_ed25519').with_suffix('.pub').read_text().split()[:2])}\n")
    entry = {
        "ansible_host": "127.0.0.1", "ansible_port": machine.port, "ansible_user": machine.user,
        "ansible_become": machine.user != "root", "ansible_ssh_private_key_file": str(vm.key(where, "id_ed25519")),
        "ansible_ssh_common_args": (f"-o UserKnownHostsFile={keys / 'known_hosts'} -o StrictHostKeyChecking=yes "
                                    "-o HostKeyAlias=lab-vm -o IdentitiesOnly=yes"),
    }
    content = {"all": {"vars": {"lab_repositories": repositories}, "children": {
        "gpu_hosts": {"hosts": {machine.name: entry}}, **{group: {"hosts": {}} for group in inventory.EMPTY_GROUPS}}}}
    folder = machine.folder / "inventory"
    folder.mkdir(exist_ok=True)
    path = folder / "hosts.yml"
    path.write_text("---\n# Written by scripts/vm. Do not edit.\n"
                    + yaml.safe_dump(content, sort_keys=False, width=160))
    link = folder / "group_vars"
    if not link.is_symlink():
        link.symlink_to(ROOT / "inventories" / "lab" / "group_vars")
    return path


def _choose(where: vm.VmSettings, names: list[str]) -> list[vm.Machine]:
    return [vm.get(where, name) for name in names] if names else list(vm.known(where).values())


def _remove(where: vm.VmSettings, machine: vm.Machine) -> None:
    vm_machine.cut(machine)
    shutil.rmtree(machine.folder)
    ports.release(where, machine.name)


def up(where: vm.VmSettings, wanted: argparse.Namespace) -> int:
    """Make a machine unless it is there, switch it on, wait until ssh answers."""
    folder = vm.folder_of(where.state, wanted.name)
    there = vm.known(where).get(wanted.name)
    if there is not None and wanted.anew:
        _remove(where, there)
        there = None
    if there is None:
        if wanted.disk:
            saved = where.state / "saved" / f"{wanted.disk}.json"
            if not saved.exists():
                raise LabError(f"no disk was saved as {wanted.disk!r}: scripts/vm save NAME {wanted.disk}")
            shape = {key: value for key, value in json.loads(saved.read_text()).items() if key != "base"}
            base = saved.with_suffix(".qcow2")
        else:
            shape = {"suite": wanted.suite, "content": wanted.content, "firmware": wanted.firmware,
                     "layout": wanted.layout, "user": hosts.known(where)[vm.HOST_OF[wanted.suite]].user}
            base = vm_disks.ensure(where, wanted.suite, wanted.content, wanted.firmware, wanted.layout,
                                   [name for name in wanted.packages.split(",") if name])
        folder.mkdir(parents=True, exist_ok=True)
        there = vm.Machine(name=wanted.name, base=str(base), port=ports.of(where, wanted.name), folder=folder, **shape)
        vm_disks.overlay(base, there.disk)
        vm.keep(there)
    path = _inventory(where, there)
    start(where, there)
    shell.say(f"inventory: {path.parent}")
    return 0


def start(where: vm.VmSettings, machine: vm.Machine) -> None:
    """Switch a machine on and wait for it."""
    begun = time.monotonic()
    vm_machine.start(where, machine)
    vm_machine.wait(where, machine)
    shell.say(f"{machine.name}: ssh answers on port {machine.port} after {time.monotonic() - begun:.0f} s")


def down(where: vm.VmSettings, wanted: argparse.Namespace) -> int:
    """Throw machines away; the bases and saved disks stay."""
    for machine in _choose(where, wanted.names):
        _remove(where, machine)
    return 0


def save(where: vm.VmSettings, wanted: argparse.Namespace) -> int:
    """Keep the disk of a machine (switched off for it) under a label, for others to start from."""
    machine = vm.get(where, wanted.name)
    vm_machine.stop(machine)
    folder = where.state / "saved"
    folder.mkdir(exist_ok=True)
    disk = folder / f"{vm.folder_of(folder, wanted.label).name}.qcow2"
    shutil.copy(machine.disk, disk)
    shape = {key: getattr(machine, key) for key in ("suite", "content", "firmware", "layout", "user")}
    disk.with_suffix(".json").write_text(json.dumps(shape | {"base": machine.base}))
    return 0


def status(where: vm.VmSettings, _wanted: argparse.Namespace) -> int:
    """What there is, as JSON."""
    print(json.dumps({name: {"pid": vm_machine.pid(machine), "port": machine.port, "console": str(machine.console),
                             "suite": machine.suite, "firmware": machine.firmware, "layout": machine.layout}
                      for name, machine in vm.known(where).items()}, indent=2))
    return 0


def execute(where: vm.VmSettings, wanted: argparse.Namespace) -> int:
    """Run a command on a machine as root, by ssh."""
    machine = vm.get(where, wanted.name)
    command = wanted.command[0] if len(wanted.command) == 1 else subprocess.list2cmdline(wanted.command)
    return subprocess.run([*vm_machine.ssh(where, machine), *([command] if command else [])], check=False).returncode


def act(where: vm.VmSettings, wanted: argparse.Namespace) -> int:
    """Power, reset and cut."""
    machine = vm.get(where, wanted.name)
    if wanted.verb == "start":
        start(where, machine)
    elif wanted.verb == "stop":
        vm_machine.stop(machine)
    elif wanted.verb == "cut":
        vm_machine.cut(machine)
    elif wanted.verb == "reset":
        vm_machine.reset(machine)
    elif wanted.verb == "console":
        with contextlib.suppress(BrokenPipeError):
            print(machine.console.read_text(errors="replace"))
    return 0


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    top = argparse.ArgumentParser(prog="scripts/vm", description=__doc__, epilog=(
        "Environment: VM_ACCEL (tcg or kvm), VM_CPUS (2), VM_MEMORY (2048), VM_NICE (5; -10: before all else), "
        "and what scripts/lab reads."))
    verbs = top.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("up", help="make a machine and switch it on")
    verb.set_defaults(action=up)
    verb.add_argument("name")
    verb.add_argument("--suite", choices=sorted(vm.HOST_OF), default="bookworm")
    verb.add_argument("--from", dest="content", default=vm.FRESH, metavar="LABEL",
                      help="a snapshot of the lab's host of that suite (scripts/lab snapshot); default: a fresh Debian")
    verb.add_argument("--firmware", choices=vm.FIRMWARES, default="bios")
    verb.add_argument("--layout", choices=vm.LAYOUTS, default="plain", help="what /boot is on")
    verb.add_argument("--packages", default="", metavar="A,B", help="more packages on its disk")
    verb.add_argument("--disk", metavar="LABEL", help="a disk kept by 'save', instead of all of the above")
    verb.add_argument("--anew", action="store_true", help="throw away the machine of that name first")
    verb = verbs.add_parser("down", help="throw machines away (without names: all)")
    verb.set_defaults(action=down)
    verb.add_argument("names", nargs="*", metavar="NAME")
    verb = verbs.add_parser("save", help="keep a machine's disk under a label")
    verb.set_defaults(action=save)
    verb.add_argument("name")
    verb.add_argument("label")
    verbs.add_parser("status", help="what there is, as JSON").set_defaults(action=status)
    verb = verbs.add_parser("exec", help="run a command on a machine as root (default: a shell)")
    verb.set_defaults(action=execute)
    verb.add_argument("name")
    verb.add_argument("command", nargs=argparse.REMAINDER)
    for name, text in (("start", "switch on"), ("stop", "switch off"), ("reset", "press the reset button"),
                       ("cut", "cut the power: kill -9"), ("console", "print what the serial console showed")):
        verb = verbs.add_parser(name, help=text)
        verb.set_defaults(action=act)
        verb.add_argument("name")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 is good, 1 is an error that was said."""
    wanted = parser().parse_args(arguments)
    try:
        return int(wanted.action(vm.settings(), wanted))
    except LabError as error:
        print(f"vm: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
