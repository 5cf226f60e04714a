# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disks of the machines: the root of one of the lab's images as a file system, with GRUB in front of it.

A base is made once: its root by podman and mke2fs, and, where /boot is on RAID or LVM and under UEFI, one start that
lays it out and runs grub-install. Every machine is an overlay on it, which is there in a moment.
"""
from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import hosts, pci, podman, repository, shell, vm, vm_machine
from .settings import HOST_REPOSITORY, LabError

MIB = 1 << 20
# The parts of a disk in MiB: root, EFI's, and two for a /boot on RAID or in a volume group.
START, ROOT, EFI, BOOT = 1, 8192, 64, 320
SECTOR = 512
PROVISION_SECONDS = 1200
DIGITS = 10  # of the digest that names a base
DONE, FAILED = "LAB-VM: provision done", "LAB-VM: provision failed"
STORAGE = ("mdadm", "lvm2")


def _table(code: bytes) -> bytes:
    """The first sector: the boot loader's code and the partition table."""
    entries, at = b"", START
    for kind, size in ((0x83, ROOT), (0xEF, EFI), (0x83, BOOT), (0x83, BOOT)):
        entries += struct.pack("<B3sB3sII", 0, b"\xfe\xff\xff", kind, b"\xfe\xff\xff", at * 2048, size * 2048)
        at += size
    return code[:440].ljust(440, b"\0") + b"lab!" + bytes(2) + entries + b"\x55\xaa"


def packages(firmware: str, layout: str, more: list[str]) -> list[str]:
    """What is installed beside what the lab's image has."""
    return sorted({*(STORAGE if layout in ("mdraid", "lvm") else ()),
                   *(("dosfstools",) if firmware == "uefi" else ()), *more})


def _image(where: vm.VmSettings, host: hosts.Host, content: str) -> tuple[str, str]:
    """The image a disk is made from, and its digest."""
    image = hosts.image_for(host, where, None if content == vm.FRESH else content)
    return image, podman.podman("image", "inspect", "--format", "{{.Id}}", image).strip()


def _digest(parts: list[str]) -> str:
    recipe = [path.read_text() for path in sorted(vm.RECIPE.iterdir()) if path.is_file()]
    return hashlib.sha256("\0".join([*parts, *recipe, str((START, ROOT, EFI, BOOT))]).encode()).hexdigest()[:DIGITS]


@contextmanager
def _customised(where: vm.VmSettings, host: hosts.Host, image: str, firmware: str, extra: list[str], log: Path
                ) -> Iterator[Path]:
    """A container of the image with what a disk needs; yields where its root is mounted."""
    name = f"{where.checkout}-vm-build"
    bundle = where.state / "base" / "bundle"
    shutil.rmtree(bundle, ignore_errors=True)
    pci.write_tree(bundle / "pci", host.devices)
    (bundle / "keys").mkdir()
    for script in vm.RECIPE.glob("*.sh"):
        shutil.copy(script, bundle)
    for pair in ("id_ed25519", "host_ed25519"):
        for path in (vm.key(where, pair), vm.key(where, pair).with_suffix(".pub")):
            if path.name != "id_ed25519":  # the half that opens them stays here
                shutil.copy(path, bundle / "keys")
    limits = [option for option in podman.run_options() if option.startswith(("--ulimit", "--pids-limit"))]
    podman.podman("rm", "--force", "--ignore", "--time=0", name)
    try:
        # Not privileged, unlike the lab's hosts: nothing in here may see this machine's disks.
        shell.run_long(f"root of the machine ({host.suite}, {firmware})", [
            *podman.command(), "run", "--name", name, "--cgroups=disabled", "--network=host", "--pull=never", *limits,
            "--volume", f"{bundle}:/lab-vm:ro",
            "--volume", f"{where.cache / 'repository'}:{HOST_REPOSITORY}:ro",
            image, "sh", "/lab-vm/customize.sh", firmware, *extra], log)
        yield Path(podman.podman("mount", name).strip())
    finally:
        podman.podman("umount", "--force", name, check=False)
        podman.podman("rm", "--force", "--ignore", "--time=0", name)
        shutil.rmtree(bundle, ignore_errors=True)


def _write_root(root: Path, raw: Path, firmware: str, log: Path) -> None:
    """Write a folder as the first partition of a new disk; kernel and initrd of the first start beside it."""
    within = podman.command()[:podman.command().index("podman")]  # where podman's mounts can be seen
    newest = shell.run([*within, "sh", "-c", f"ls -v '{root}'/boot/vmlinuz-* | tail -n 1"]).strip()
    release = newest.rpartition("/vmlinuz-")[2]
    for what, suffix in (("vmlinuz", ".vmlinuz"), ("initrd.img", ".initrd")):
        shell.run([*within, "cp", f"{root}/boot/{what}-{release}", str(raw.with_suffix(suffix))])
    # podman lays files of its own over these two while a container runs
    shell.run([*within, "sh", "-c", f"cd '{root}/etc'; rm -f resolv.conf; echo nameserver 10.0.2.3 >resolv.conf; "
                                    "echo 127.0.0.1 localhost >hosts"])
    uuid = shell.run([*within, "sed", "-n", "s/^UUID=\\([^ ]*\\) .*/\\1/p", f"{root}/etc/fstab"]).strip()
    with raw.open("wb") as disk:
        if firmware == "bios":
            first, second = (subprocess.run([*within, "cat", f"{root}/boot/grub/i386-pc/{name}.img"], check=True,
                                            capture_output=True).stdout for name in ("boot", "core"))
            if len(second) > START * MIB - SECTOR:
                raise LabError(f"GRUB's core.img has {len(second)} bytes: too many before the first partition")
            disk.write(_table(first) + second)  # where boot.img expects it: right behind
        else:
            disk.write(_table(b""))
        disk.truncate((START + ROOT + EFI + 2 * BOOT + 1) * MIB)
    shell.run_long("file system of the machine", [
        *within, "mke2fs", "-q", "-F", "-t", "ext4", "-L", "root", "-U", uuid, "-d", str(root),
        "-E", f"offset={START * MIB},lazy_itable_init=1", str(raw), f"{ROOT}M"], log)


def _provision(raw: Path, fresh: Path, firmware: str, layout: str, log: Path) -> None:
    """Start the disk once with a kernel from outside; it lays out /boot, installs GRUB and goes off."""
    log.unlink(missing_ok=True)
    log.touch()
    with shell.Beat(f"GRUB installs itself ({firmware}, {layout})", log):
        shell.run([*vm_machine.hardware(fresh, log), "-no-reboot",
                   "-kernel", str(raw.with_suffix(".vmlinuz")), "-initrd", str(raw.with_suffix(".initrd")),
                   "-append", f"root=/dev/vda1 ro console=ttyS0,115200 lab.firmware={firmware} lab.layout={layout} "
                              "init=/usr/local/lib/lab-vm/provision"], timeout=PROVISION_SECONDS)
    said = log.read_text(errors="replace")
    if DONE not in said or FAILED in said:
        raise LabError(f"the first start did not end well, see {log}\n" + "\n".join(said.splitlines()[-25:]))


def _older(where: vm.VmSettings, folder: Path, stem: str, digest: str) -> Iterator[Path]:
    """Disks of an older recipe that neither a machine nor a saved disk stands on."""
    used = " ".join([machine.base for machine in vm.known(where).values()]
                    + [path.read_text() for path in where.state.glob("saved/*.json")])
    for path in folder.glob(f"{stem}-*"):
        other = path.name[len(stem) + 1:][:DIGITS]
        if len(other) == DIGITS and other.isalnum() and other != digest and other not in used:
            yield path


def ensure(where: vm.VmSettings, suite: str, content: str, firmware: str, layout: str, more: list[str]) -> Path:
    """The base for machines of this kind; made unless it is here."""
    host = hosts.known(where)[vm.HOST_OF[suite]]
    extra = packages(firmware, layout, more)
    folder = where.state / "base"
    folder.mkdir(parents=True, exist_ok=True)
    with hosts.locked(where, "vm-base"):
        with hosts.locked(where, "build"):
            repository.ensure(where)
            image, image_id = _image(where, host, content)
        digest = _digest([image_id, firmware, json.dumps(extra), vm.key(where, "host_ed25519").read_text()])
        stem = "-".join([suite, content, firmware, *(("storage",) if layout != "plain" else ())])
        raw = folder / f"{stem}-{digest}.raw"
        by_itself = firmware == "uefi" or layout != "plain"
        base = folder / f"{stem}-{digest}-{layout}.qcow2" if by_itself else raw
        if base.exists() and raw.exists():
            return base
        if not raw.exists():
            fresh = raw.with_name(raw.name + ".new")
            with _customised(where, host, image, firmware, extra, folder / f"{stem}.log") as root:
                _write_root(root, fresh, firmware, folder / f"{stem}-mke2fs.log")
            for suffix in (".vmlinuz", ".initrd"):
                fresh.with_suffix(suffix).rename(raw.with_suffix(suffix))
            fresh.rename(raw)
        if by_itself:
            fresh = base.with_name(base.name + ".new")
            overlay(raw, fresh)
            _provision(raw, fresh, firmware, layout, folder / f"{stem}-{layout}-console.log")
            fresh.rename(base)
        for path in _older(where, folder, stem, digest):
            path.unlink()
    return base


def overlay(below: Path, disk: Path) -> None:
    """A new disk that shows what is below and keeps what is written."""
    kind = "raw" if below.suffix == ".raw" else "qcow2"
    disk.unlink(missing_ok=True)
    shell.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(below), "-F", kind, str(disk)])
