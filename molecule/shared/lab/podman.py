# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Podman on this machine, whatever its control groups look like."""
from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from . import shell
from .settings import LabError

NAMESPACE = Path("/run/baremetal-nvidia-lab")
LABEL = "baremetal-nvidia.lab"


def pure_cgroup_v2() -> bool:
    """Whether /sys/fs/cgroup is cgroup v2 alone, as on any ordinary machine of today."""
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def _namespace() -> Path:
    """A private mount namespace in which /sys/fs/cgroup is cgroup v2; kept by a bind mount, so no process holds it."""
    mark = NAMESPACE / "mnt"
    if shell.ok(["nsenter", f"--mount={mark}", "test", "-e", "/sys/fs/cgroup/cgroup.controllers"]):
        return mark
    NAMESPACE.mkdir(mode=0o700, exist_ok=True)
    if not os.path.ismount(NAMESPACE):
        shell.run(["mount", "--bind", str(NAMESPACE), str(NAMESPACE)])
        shell.run(["mount", "--make-private", str(NAMESPACE)])
    mark.touch()
    script = ("{ umount -R /sys/fs/cgroup || umount -lR /sys/fs/cgroup; } 2>/dev/null; "
              "mount -t cgroup2 cgroup2 /sys/fs/cgroup")
    shell.run(["unshare", f"--mount={mark}", "--propagation", "private", "sh", "-c", script])
    return mark


@functools.cache
def command() -> tuple[str, ...]:
    """How podman is called here."""
    if os.geteuid() != 0:
        raise LabError("the lab needs root on this machine: use sudo")
    podman: tuple[str, ...] = ("podman",)
    if not Path("/run/systemd/system").exists():
        podman = ("podman", "--cgroup-manager=cgroupfs")
    if pure_cgroup_v2():
        return podman
    return ("nsenter", f"--mount={_namespace()}", *podman)


@functools.cache
def run_options() -> tuple[str, ...]:
    """What 'podman create' needs so that systemd runs inside."""
    options = ["--privileged", "--systemd=always", "--network=host", "--tmpfs=/tmp:mode=1777"]
    if not pure_cgroup_v2():
        options.append("--pids-limit=0")  # the controllers belong to version 1
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:  # podman asks for more than this process may give
            options.append(f"--ulimit={name}={min(hard, 8192)}:{min(hard, 8192)}")
    return tuple(options)


def podman(*arguments: str, check: bool = True, timeout: float = 300) -> str:
    """Run podman; its standard output."""
    return shell.run([*command(), *arguments], check=check, timeout=timeout)


def feed(stream: IO[bytes], *arguments: str) -> None:
    """Run podman with a file as its standard input."""
    done = subprocess.run([*command(), *arguments], check=False, stdin=stream, capture_output=True, timeout=120)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise LabError(f"rc {done.returncode}: podman {' '.join(arguments)}\n{said}")


def image_exists(name: str) -> bool:
    """Whether an image is here."""
    return shell.ok([*command(), "image", "exists", name])


def containers(prefix: str) -> dict[str, str]:
    """The containers whose names begin with prefix, and their states."""
    listed = json.loads(podman("ps", "-a", "--format=json", "--filter", f"label={LABEL}") or "[]")
    return {entry["Names"][0]: entry["State"] for entry in listed if entry["Names"][0].startswith(prefix)}


def execute(container: str, arguments: Sequence[str], check: bool = True, timeout: float = 300) -> str:
    """Run a command in a container."""
    return podman("exec", container, *arguments, check=check, timeout=timeout)
