# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes: those that hang in the driver, those that hold its devices, and the containers with GPUs.

Only files of /proc are read that a process stuck in the kernel cannot block: stat, comm, wchan, stack, fd, cgroup,
environ last and never of a stuck one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Any

from .context import Context
from .tree import Tree

_DRIVER = re.compile(r"(?i)nvidia|\bnv_|\bnvkms|\buvm_|\brm_(?:ioctl|init|shutdown)|\bos_acquire|\[nvswitch")
_DRIVER_COMM = re.compile(r"^(?:nvidia|nv-|nvlsm|nv_queue|UVM )")
# daemons of the driver itself: they hold the devices and are no reason to wait
_NAMED = 5  # holders that are told by name
_OWN_DAEMONS = frozenset({"nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nvlsm", "nvidia-powerd"})
_CONTAINER_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_SAMPLES = 3
_SAMPLE_GAP = 0.3
_MOST = 10


def read_hung(ctx: Context) -> None:
    """``driver.hung_tasks``: ``[{pid, command, where}]`` of tasks in state D in the driver, three looks in a row."""
    tree = ctx.tree
    with ctx.attempt("driver.hung_tasks"):
        if not tree.isdir("/proc/1") and not _pids(tree):
            ctx.cannot("driver.hung_tasks", "/proc shows no processes")
            return
        stuck = in_driver(tree)
        for _look in range(_SAMPLES - 1):
            if not stuck:
                break
            if tree.is_host:
                time.sleep(_SAMPLE_GAP)
            again = in_driver(tree)
            stuck = {task: row for task, row in stuck.items() if task in again}
        ctx.set("driver.hung_tasks", list(stuck.values())[:_MOST])


def in_driver(tree: Tree) -> dict[tuple[str, str], dict[str, Any]]:
    """Tasks that are in state D inside the NVIDIA driver right now, by (pid, tid)."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for pid in _pids(tree):
        base = f"/proc/{pid}/task"
        tasks = _quiet_names(tree, base) or [pid]
        for tid in tasks:
            where = f"{base}/{tid}" if len(tasks) > 1 or tree.isdir(f"{base}/{tid}") else f"/proc/{pid}"
            stat = _quiet(tree, f"{where}/stat")
            comm, state = _comm_state(stat)
            if state != "D":
                continue
            wchan = _quiet(tree, f"{where}/wchan").strip()
            stack = _quiet(tree, f"{where}/stack")
            if _DRIVER_COMM.match(comm) or _DRIVER.search(wchan) or _DRIVER.search(stack):
                found[(pid, tid)] = {"pid": int(pid), "command": comm, "where": _place(wchan, stack)}
    return found


def _place(wchan: str, stack: str) -> str | None:
    for line in stack.splitlines():
        if _DRIVER.search(line):
            return re.sub(r"^\[<[^>]*>\]\s*", "", line.strip())[:100]
    return wchan if wchan not in ("", "0") else None


def _comm_state(stat: str) -> tuple[str, str]:
    start, end = stat.find("("), stat.rfind(")")
    return (stat[start + 1 : end], stat[end + 2 : end + 3]) if 0 <= start < end else ("", "")


def _pids(tree: Tree) -> list[str]:
    return [name for name in _quiet_names(tree, "/proc") if name.isdigit()]


def _quiet(tree: Tree, path: str) -> str:
    """The text of a file of a process, empty when it is gone or not ours to read."""
    try:
        return tree.text(path, 16384) or ""
    except OSError:
        return ""


def _quiet_names(tree: Tree, path: str) -> list[str]:
    try:
        return tree.names(path)
    except OSError:
        return []


def read_holders(ctx: Context) -> None:
    """``driver.processes``, ``.holders``: how many processes hold /dev/nvidia*, and which; no daemons of the driver."""
    tree = ctx.tree
    with ctx.attempt("driver.processes"):
        if tree.is_host and not has_devices(tree):
            ctx.set("driver.processes", 0)
            ctx.set("driver.holders", [])
            return
        if not _pids(tree):
            ctx.cannot("driver.processes", "/proc shows no processes")
            return
        held, denied = holders(tree)
        if denied:
            ctx.cannot("driver.processes", f"needs root: the open files of {denied} processes cannot be read")
        else:
            work = [f"{comm or '?'} ({pid})" for pid, comm in held if comm not in _OWN_DAEMONS]
            ctx.set("driver.processes", len(work))
            ctx.set("driver.holders", work[:_NAMED])


def has_devices(tree: Tree) -> bool:
    """Whether device nodes of the driver are there. Raises OSError."""
    return any(re.match(r"nvidia(?:\d|ctl$|-uvm)", name) for name in tree.names("/dev"))


def holders(tree: Tree) -> tuple[list[tuple[str, str]], int]:
    """(pid, command) of the processes with an open /dev/nvidia*, and how many processes could not be looked at."""
    found: list[tuple[str, str]] = []
    denied = 0
    for pid in _pids(tree):
        try:
            names = os.listdir(tree.real(f"/proc/{pid}/fd"))
        except PermissionError:
            denied += 1
            continue
        except OSError:
            continue
        if any(_is_gpu(tree, f"/proc/{pid}/fd/{name}") for name in names):
            found.append((pid, _quiet(tree, f"/proc/{pid}/comm")))
    return found, denied


def _is_gpu(tree: Tree, path: str) -> bool:
    try:
        head, tail = os.path.split(path)
        return os.readlink(os.path.join(tree.real(head), tail)).startswith("/dev/nvidia")
    except OSError:
        return False


def gpu_containers(tree: Tree) -> int:
    """How many containers have GPUs; see :func:`gpu_container_ids`."""
    return len(gpu_container_ids(tree))


def gpu_container_ids(tree: Tree) -> list[str]:
    """The ids of the containers that have GPUs.

    Counted are containers of which a process holds /dev/nvidia*, and those that were given the devices. A privileged
    container sees every device and counts only when it holds one. Raises PermissionError without root when there are
    containers at all.
    """
    if tree.is_host and not has_devices(tree):
        return []
    ids: dict[str, list[str]] = {}
    for pid, container in _contained(tree):
        ids.setdefault(container, []).append(pid)
    return [container for container, pids in ids.items()
            if any(_holds(tree, pid) for pid in pids) or _was_given(tree, pids[0])]


def _contained(tree: Tree) -> Iterator[tuple[str, str]]:
    """(pid, container id) of processes whose cgroup names a container; not the one that we may be in ourselves."""
    own = set(_CONTAINER_ID.findall(_quiet(tree, "/proc/self/cgroup")))
    for pid in _pids(tree):
        found = _CONTAINER_ID.findall(_quiet(tree, f"/proc/{pid}/cgroup"))
        if found and found[-1] not in own:
            yield pid, found[-1]


def _holds(tree: Tree, pid: str) -> bool:
    try:
        names = os.listdir(tree.real(f"/proc/{pid}/fd"))
    except PermissionError as error:
        raise PermissionError(error.errno, "needs root", f"/proc/{pid}/fd") from error
    except OSError:
        return False
    return any(_is_gpu(tree, f"/proc/{pid}/fd/{name}") for name in names)


def _was_given(tree: Tree, pid: str) -> bool:
    if not tree.is_host:
        dev = f"/proc/{pid}/root/dev"
        return tree.lexists(f"{dev}/nvidiactl") and not tree.lexists(f"{dev}/kmsg")
    dev = f"/proc/{pid}/root/dev"
    return os.path.lexists(f"{dev}/nvidiactl") and not os.path.lexists(f"{dev}/kmsg")
