# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of the lab: made from an image, started, waited for, snapshotted, thrown away."""
from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import socket
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from . import archives, distros, images, pci, podman, ports, shell
from .settings import HOST_ARCHIVE, HOST_ARCHIVES, HOST_MODULES, HOST_REPOSITORY, LabError, Settings

BOOT_SECONDS = 90


@dataclass(frozen=True)
class Host:
    """A host as hosts.yml describes it, with its place in this lab."""

    name: str
    suite: str
    user: str
    devices: list[Any]
    system: str | None  # another distribution on top of the Debian suite
    container: str
    folder: Path


def known(settings: Settings) -> dict[str, Host]:
    """All hosts that can be had."""
    described = yaml.safe_load(Path(__file__).with_name("hosts.yml").read_text())
    names = {name: name for name in described} | {f"{name}-{number}": name for name, count in settings.twins.items()
                                                  if name in described for number in range(2, count + 1)}
    return {name: Host(name, entry["suite"], entry["user"], entry["devices"], entry.get("system"),
                       settings.prefix + name, settings.state / "hosts" / name)
            for name, entry in ((name, described[model]) for name, model in names.items())}


def usual(settings: Settings) -> list[str]:
    """The names of the hosts that a lab has when none is named: those that are Debian."""
    return [name for name, host in known(settings).items() if host.system is None]


def pick(settings: Settings, names: list[str] | None) -> list[Host]:
    """The named hosts, or all."""
    there = known(settings)
    for name in names or []:
        if name not in there:
            raise LabError(f"host {name!r} is unknown; the lab has {', '.join(there)}")
    return [there[name] for name in names or there]


def port(settings: Settings, host: Host) -> int:
    """The ssh port of a host: chosen once, kept while the lab stands."""
    return ports.of(settings, host.name)


def _keypair(path: Path, comment: str) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shell.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])


def client_key(settings: Settings) -> Path:
    """The key that opens the hosts; made once."""
    key = settings.state / "keys" / "id_ed25519"
    _keypair(key, "lab")
    return key


def host_key(settings: Settings, host: Host) -> Path:
    """The host's own ssh key; kept over a reset, as a reinstalled host with a backed-up key."""
    key = settings.state / "keys" / f"{host.name}_ed25519"
    _keypair(key, host.name)
    return key


def _copy_in(host: Host, settings: Settings) -> None:
    """Put keys and port into a container that is not started yet."""
    home = "root" if host.user == "root" else f"home/{host.user}"
    key = host_key(settings, host)
    files = [
        (f"{home}/.ssh/authorized_keys", client_key(settings).with_suffix(".pub").read_bytes(), 0o600),
        ("etc/ssh/sshd_config.d/port.conf", f"Port {port(settings, host)}\nListenAddress 127.0.0.1\n".encode(), 0o644),
        ("etc/ssh/ssh_host_ed25519_key", key.read_bytes(), 0o600),
        ("etc/ssh/ssh_host_ed25519_key.pub", key.with_suffix(".pub").read_bytes(), 0o644),
    ]
    host.folder.mkdir(parents=True, exist_ok=True)
    bundle = host.folder / "files.tar"
    with tarfile.open(bundle, "w") as tar:  # folders that are there already keep their owners: they are not in it
        folder = tarfile.TarInfo(f"{home}/.ssh")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        tar.addfile(folder)
        for name, data, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, int(time.time())
            tar.addfile(entry, io.BytesIO(data))
    with bundle.open("rb") as stream:
        podman.feed(stream, "cp", "-", f"{host.container}:/")
    bundle.unlink()


def create(host: Host, settings: Settings, image: str) -> None:
    """Make and start a host from an image; an old one of the name is thrown away."""
    remove(host, settings)
    count = pci.write_tree(host.folder / "pci", host.devices)
    modules = settings.cache / "modules"
    modules.mkdir(parents=True, exist_ok=True)
    mounts = {host.folder / "pci": "/sys/bus/pci/devices:ro", modules: HOST_MODULES}
    if host.system is None:
        mounts[archives.fill(host.folder / "archives", settings.cache / "apt" / host.suite)] = HOST_ARCHIVES
    else:
        mounts[distros.archive(host.system, host.suite, settings)] = f"{HOST_ARCHIVE}:ro"
    if not settings.upstream:
        mounts[settings.cache / "repository"] = f"{HOST_REPOSITORY}:ro"
    volumes = [f"--volume={source}:{target}" for source, target in mounts.items()]
    podman.podman("create", "--name", host.container, "--label", f"{podman.LABEL}={settings.prefix}",
                  "--hostname", host.name, "--pull=never", *podman.run_options(), *volumes, image, "/sbin/init")
    _copy_in(host, settings)
    podman.podman("start", host.container)
    if host.user != "root":  # podman gives everything it copies to root
        podman.execute(host.container, ["chown", "-R", f"{host.user}:", f"/home/{host.user}/.ssh"])
    kind = host.system or host.suite
    shell.say(f"{host.name}: started ({kind}, {count} PCI devices, ssh port {port(settings, host)})")


def _banner(number: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", number), timeout=2) as link:
            link.settimeout(3)
            return link.recv(4) == b"SSH-"
    except OSError:
        return False


def wait(host: Host, settings: Settings) -> None:
    """Wait until systemd is up and ssh answers."""
    end = time.monotonic() + BOOT_SECONDS
    state = "unknown"
    while time.monotonic() < end:
        state = podman.execute(host.container, ["systemctl", "is-system-running"], check=False).strip() or "offline"
        if state in ("running", "degraded") and _banner(port(settings, host)):
            break
        time.sleep(0.3)
    else:
        raise LabError(f"{host.name}: not up after {BOOT_SECONDS} s (systemd: {state}); podman logs {host.container}")
    if state == "degraded":
        failed = podman.execute(host.container, ["systemctl", "--failed", "--no-legend", "--plain"], check=False)
        names = [line.split()[0] for line in failed.splitlines() if line.split()]
        shell.say(f"{host.name}: some units failed: {', '.join(names)}")


def remove(host: Host, settings: Settings) -> None:
    """Throw a host away; what it downloaded is kept for the next one."""
    podman.podman("rm", "--force", "--ignore", "--time=0", host.container)
    if (host.folder / "archives").exists():
        archives.harvest(host.folder / "archives", settings.cache / "apt" / host.suite)
        shutil.rmtree(host.folder / "archives", ignore_errors=True)


def snapshot_name(host: Host, settings: Settings, label: str) -> str:
    """The image that a snapshot is; every lab of this checkout can start from it."""
    return f"localhost/{settings.checkout}/{host.name}:{label}"


def snapshot(host: Host, settings: Settings, label: str) -> str:
    """Keep the state of a host as an image."""
    image = snapshot_name(host, settings, label)
    podman.execute(host.container, ["sync"], check=False)
    podman.podman("commit", "--quiet", "--pause", host.container, image, timeout=900)
    return image


def attempt(host: Host, settings: Settings, label: str, command: list[str], timeout: float = 300) -> str:
    """Run a command in a copy of a snapshot that is thrown away, without an init; what it printed, errors too."""
    volumes = [] if host.system is None else [
        f"--volume={distros.archive(host.system, host.suite, settings)}:{HOST_ARCHIVE}:ro"]
    script = 'exec 2>&1; "$@"; echo "rc=$?"'
    return podman.podman("run", "--rm", "--pull=never", *podman.run_options(), *volumes,
                         image_for(host, settings, label), "/bin/sh", "-c", script, "sh", *command, timeout=timeout)


def image_for(host: Host, settings: Settings, label: str | None) -> str:
    """The image a host starts from: a snapshot, or the freshly installed system."""
    if label is None:
        if host.system is not None:
            return distros.ensure(host.system, host.suite, settings)
        return images.ensure(host.suite, settings)
    image = snapshot_name(host, settings, label)
    if not podman.image_exists(image):
        raise LabError(f"{host.name} has no snapshot {label!r}; make one: scripts/lab snapshot {host.name} {label}")
    return image


@contextlib.contextmanager
def locked(settings: Settings, name: str) -> Iterator[None]:
    """One at a time, over all labs that share the cache."""
    settings.cache.mkdir(parents=True, exist_ok=True)
    (settings.cache / "lab").mkdir(exist_ok=True)
    with (settings.cache / "lab" / f"{name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            shell.say(f"waiting for another run of the lab ({name})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def hand_over(settings: Settings) -> None:
    """Under sudo: what was written belongs to the person, not to root."""
    user, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if user and group:
        for folder in (settings.inventory, settings.state):
            for path in (folder, *folder.rglob("*")):
                if "archives" not in path.parts and "pci" not in path.parts:
                    os.lchown(path, int(user), int(group))
