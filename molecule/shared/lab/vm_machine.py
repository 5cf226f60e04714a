# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a machine: QEMU, started, reached, reset, cut off and stopped. Always by its own process id."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import shell, vm, vm_power
from .settings import LabError

CODE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
VARS = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
SSH_SECONDS = 900  # software emulation on a busy machine; 30 s on an idle one


def accelerator() -> list[str]:
    """Software emulation, unless VM_ACCEL says kvm: a /dev/kvm that opens can still crash its guests."""
    wanted = os.environ.get("VM_ACCEL") or "tcg"
    if wanted == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    if wanted != "tcg":
        raise LabError(f"VM_ACCEL is {wanted!r}: tcg (default) or kvm is allowed")
    return ["-accel", "tcg,thread=multi"]


def _control(machine_folder: Path) -> Path:
    """The control socket: in a short path, since a socket's may have 107 characters."""
    digest = hashlib.sha256(str(machine_folder).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"lab-vm-{os.getuid()}-{digest}.qmp"


def niceness() -> int:
    """What VM_NICE says: below 0 the machines go before everything else here, which needs root."""
    wanted = os.environ.get("VM_NICE") or "5"
    try:
        value = int(wanted)
    except ValueError:
        value = 99
    if not -20 <= value <= 19:
        raise LabError(f"VM_NICE is {wanted!r}: a number from -20 to 19 is allowed")
    return value


def prefer(number: int) -> None:
    """Niceness for the session of a process: Linux shares processors out by session first."""
    with contextlib.suppress(OSError):    # no such groups in this kernel, or switched off
        Path(f"/proc/{number}/autogroup").write_text(str(niceness()))


def hardware(disk: Path, console: Path) -> list[str]:
    """What every machine has, the provisioning one too."""
    return [
        "nice", "-n", str(niceness()), "qemu-system-x86_64", *accelerator(),
        "-smp", os.environ.get("VM_CPUS") or "2",
        "-m", os.environ.get("VM_MEMORY") or "2048", "-nodefaults", "-display", "none", "-device", "virtio-rng-pci",
        # What the guest did not write is lost by a cut, and what it did not flush may be: a flush goes to the disk.
        "-drive", f"file={disk},if=virtio,format=qcow2,cache=writeback",
        "-chardev", f"file,id=console,path={console},append=on", "-serial", "chardev:console",
    ]


def _firmware(machine: vm.Machine) -> list[str]:
    if machine.firmware != "uefi":
        return []
    own = machine.folder / "efi-vars.fd"
    if not own.exists():
        if not VARS.exists():
            raise LabError(f"{VARS} is missing: install the package ovmf")
        shutil.copy(VARS, own)
    return ["-drive", f"if=pflash,format=raw,readonly=on,file={CODE}", "-drive", f"if=pflash,format=raw,file={own}"]


def _shares(where: vm.VmSettings) -> list[str]:
    options = []
    for tag, folder, mode in (("modules", where.cache / "modules", ""),
                              ("repository", where.cache / "repository", ",readonly=on")):
        folder.mkdir(parents=True, exist_ok=True)
        options += ["-virtfs", f"local,path={folder},mount_tag={tag},security_model=none{mode}"]
    return options


def pid(machine: vm.Machine) -> int | None:
    """The mains of a machine that is on, or None. A process id that another program has by now is not ours."""
    try:
        number = int((machine.folder / "pid").read_text())
        running = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return number if any(str(machine.disk).encode() in word for word in running) else None


def start(where: vm.VmSettings, machine: vm.Machine) -> None:
    """Switch a machine on."""
    if pid(machine) is not None:
        return
    with machine.console.open("a") as log:
        log.write(f"\n=== power on, {time.strftime('%H:%M:%S')}\n")
    _control(machine.folder).unlink(missing_ok=True)
    command = [
        *hardware(machine.disk, machine.console), *_firmware(machine), *_shares(where), "-name", machine.name,
        "-smbios", f"type=1,serial={machine.name}",
        "-nic", f"user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{machine.port}-:22",
        # A watchdog that resets the machine when nobody feeds it any more, as a server's does.
        "-device", "i6300esb", "-action", "watchdog=reset",
        "-qmp", f"unix:{_control(machine.folder)},server=on,wait=off"]
    errors = machine.folder / "qemu.log"
    with errors.open("w") as log:
        mains = subprocess.Popen([sys.executable, "-B", vm_power.__file__, *command], stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=log, start_new_session=True)
    (machine.folder / "pid").write_text(str(mains.pid))
    prefer(mains.pid)
    end = time.monotonic() + 60
    while not _control(machine.folder).exists():
        if mains.poll() is not None or time.monotonic() > end:
            raise LabError(f"{machine.name} cannot be switched on\n{errors.read_text(errors='replace')}")
        time.sleep(0.05)


def control(machine: vm.Machine, command: str) -> Any:
    """Say one command to QEMU and return its answer."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        try:
            link.connect(str(_control(machine.folder)))
        except OSError as error:
            raise LabError(f"{machine.name} is not running ({error})") from error
        with link.makefile("rw") as stream:
            stream.readline()
            for word in ("qmp_capabilities", command):
                stream.write(json.dumps({"execute": word}) + "\n")
                stream.flush()
                while "return" not in (answer := json.loads(stream.readline() or "{}")):
                    if not answer or "error" in answer:
                        raise LabError(f"{machine.name}: QEMU to {word}: {answer or 'went away'}")
    return answer["return"]


def cut(machine: vm.Machine) -> None:
    """Cut the power: what the guest had not written to its disk is lost."""
    number = pid(machine)
    if number is not None:
        os.killpg(number, signal.SIGKILL)    # the mains and QEMU at once
        end = time.monotonic() + 60
        while _lives(number) and time.monotonic() < end:  # until then it keeps its disk locked
            time.sleep(0.05)
    with machine.console.open("a") as log:
        log.write(f"\n=== power cut, {time.strftime('%H:%M:%S')}\n")


def _lives(group: int) -> bool:
    """Whether any thread of a process group is left: the first of a process can be gone before the others."""
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit():
                continue
            state, _parent, own = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(own) == group and (state not in ("Z", "X") or len(os.listdir(entry / "task")) > 1):
                return True
        except OSError:
            continue
    return False


def reset(machine: vm.Machine) -> None:
    """Press the reset button."""
    control(machine, "system_reset")


def stop(machine: vm.Machine, seconds: float = 60) -> None:
    """Switch a machine off as a person does, by its power button; cut it off when it does not react."""
    if pid(machine) is None:
        return
    with contextlib.suppress(LabError):
        control(machine, "system_powerdown")
        if _gone(machine, seconds):
            return
    cut(machine)


def _gone(machine: vm.Machine, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while pid(machine) is not None:
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def ssh(where: vm.VmSettings, machine: vm.Machine, user: str = "root") -> list[str]:
    """How a machine is reached; a command follows."""
    return ["ssh", "-i", str(vm.key(where, "id_ed25519")), "-p", str(machine.port), "-o", "BatchMode=yes",
            "-o", f"UserKnownHostsFile={where.state / 'keys' / 'known_hosts'}", "-o", "StrictHostKeyChecking=yes",
            "-o", "HostKeyAlias=lab-vm", "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR",
            f"{user}@127.0.0.1"]


def run(where: vm.VmSettings, machine: vm.Machine, command: str, timeout: float = 300) -> str:
    """Run a command on a machine as root; its standard output."""
    return shell.run([*ssh(where, machine), command], timeout=timeout)


def boot_id(where: vm.VmSettings, machine: vm.Machine) -> str | None:
    """What tells this start from the one before, or None while the machine does not answer."""
    try:
        done = subprocess.run([*ssh(where, machine), "cat /proc/sys/kernel/random/boot_id"], check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() or None


def wait(where: vm.VmSettings, machine: vm.Machine, other_than: str | None = None, seconds: float = SSH_SECONDS) -> str:
    """Wait until a machine answers ssh (in another start than the one named); the start it is in."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if pid(machine) is None:
            raise LabError(f"{machine.name} went off\n{tail(machine)}")
        found = boot_id(where, machine)
        if found and found != other_than:
            return found
        time.sleep(1)
    raise LabError(f"{machine.name} does not answer after {seconds:.0f} s\n{tail(machine)}")


def tail(machine: vm.Machine, lines: int = 25) -> str:
    """The end of what the console shows."""
    text = machine.console.read_text(errors="replace") if machine.console.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def settled(where: vm.VmSettings, machine: vm.Machine, seconds: Sequence[float] = (180,)) -> str:
    """Wait until systemd has started everything; what it says then."""
    done = subprocess.run([*ssh(where, machine), "systemctl is-system-running --wait"], check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds[0])
    return done.stdout.strip()
