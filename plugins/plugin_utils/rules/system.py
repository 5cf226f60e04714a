# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the system as a whole: support, waivers, and runs that were cut off."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from ..model.facts import UNKNOWN, Reader, or_none
from ..model.version import try_loose
from .context import Context
from .registry import Hit, plan_rule

_PYTHON = (3, 9)
_NEWER = {"redhat": ("dnf install python3.11", "/usr/bin/python3.11"), "suse": ("zypper install python311",
          "/usr/bin/python3.11"), "debian": ("apt-get install python3.9", "/usr/bin/python3.9")}  # fmt: skip


@plan_rule(
    "SYS001", "error", "The operating system is not supported",
    why="Without rows for its packages nothing can be decided that would not be a guess.",
    remedy="see the table of supported systems in the README, or add rows with gpu_matrix_overlay",
    sources=["docs/design.md, section 2"],
)
def unsupported(context: Context) -> Iterator[Hit]:
    """Fires when a host with GPUs runs a system that the matrix does not have."""
    if context.wants_driver and context.packaging is None:
        if context.host.os.id is UNKNOWN or context.host.os.version is UNKNOWN:
            yield Hit(context.name, f"which system this host runs is not known: {context.host.why_unknown('os')}")
        else:
            yield Hit(context.host.os.name, f"{context.host.os.name} on "
                                            f"{or_none(context.host.os.arch) or 'this architecture'} "
                                            "is not among the supported systems")


@plan_rule(
    "SYS002", "error", "A waiver has expired",
    why="A waiver is for a time; when that is over the finding is to be settled, or waived again with a reason.",
    remedy="settle the finding, or set a new date with a reason",
    sources=["docs/design.md, section 5"],
)
def expired_waiver(context: Context) -> Iterator[Hit]:
    """Fires for a waiver of this host whose date lies behind."""
    for waiver in context.wishes.findings_waived:
        if waiver["until"] < context.now and fnmatch.fnmatchcase(context.name, waiver["host"]):
            yield Hit(waiver["rule"], f"the waiver for {waiver['rule']} ended on {waiver['until']} "
                                      f"({waiver['reason']})")


@plan_rule(
    "SYS003", "warning", "A run was cut off",
    why="What it left open has to be finished or taken back before anything else is changed.",
    remedy="the next run finishes what is open; it says which",
    sources=["docs/design.md, section 8"],
)
def open_transaction(context: Context) -> Iterator[Hit]:
    """Fires when the state file of the host has an open transaction, or files of one lie there without it."""
    opened = context.host.open_transaction
    if opened:
        here = Reader(opened)
        role = or_none(here.text("role")) or "a role"
        steps = ", ".join(_step(one) for one in _steps(here) if _step(one)) or "no step named"
        yield Hit(role, f"a run of {role} was cut off; open since "
                        f"{or_none(here.text('started')) or 'an unknown time'}: {steps}")
    for path in context.host.stage_left:
        yield Hit(path, f"{path} was left by a run that was cut off while it brought a kernel in or took one out")


def _steps(opened: Reader) -> list[object]:
    steps = opened.get("steps")
    return list(steps) if isinstance(steps, (list, tuple)) else []


def _step(step: object) -> str:
    """Return the name of a step, which is a word or a mapping with a name."""
    return step if isinstance(step, str) else or_none(Reader(step).text("name")) or ""


@plan_rule(
    "SYS004", "error", "It cannot be told whether the host is as planned",
    why="Unknown is never taken for fine: a host whose packages or driver could not be read is not ok.",
    remedy="gather facts again as root and see the reason in facts.unknown",
    sources=["docs/design.md, section 3"],
)
def unread(context: Context) -> Iterator[Hit]:
    """Fires when nothing seems to be missing, but facts that would show it were not read.

    A node whose driver is another's and whose kernel is left alone is only warned about: its plan is the cluster's.
    """
    if not context.has_gpus or any(one.role != "gpu_operator" for one in (*context.changes, *context.pending)):
        return
    host, wishes = context.host, context.wishes
    read = {"packages.installed": host.packages.installed, "kernel.installed": host.kernels,
            "driver.loaded": host.driver.loaded, "nvswitches": host.nvswitches, "os.version": host.os.version}
    blind = [path for path, value in read.items() if value is UNKNOWN]
    if blind and not context.borrowed_kernel:
        others = context.operator is not None and wishes.driver_owner != "host" and wishes.kernel_policy == "off"
        yield Hit(context.name, f"not known: {', '.join(f'{path} ({host.why_unknown(path)})' for path in blind)}",
                  severity="warning" if others else None)


@plan_rule(
    "SYS005", "error", "The host's own Python is too old",
    why="Modules need Python 3.9. EL 8 and SLES 15 have 3.6, Ubuntu 20.04 has 3.8; a newer one is in their own "
        "repositories, and packages are handled by the managers' programs, not by bindings of one Python.",
    remedy="install a newer Python beside it and name it in ansible_python_interpreter",
    sources=["https://docs.ansible.com/ansible/latest/reference_appendices/release_and_maintenance.html"],
)
def python_too_old(context: Context) -> Iterator[Hit]:
    """Fires where something is to be changed on such a system; a warning where nobody said which Python is used."""
    system, row = context.host.os, context.packaging.system if context.packaging is not None else None
    own = try_loose(row.python) if row is not None and row.python else None
    used = try_loose(system.python) if isinstance(system.python, str) else None
    if own is None or own >= _PYTHON or (used is not None and used >= _PYTHON):
        return
    if not (context.changes or context.pending):
        return
    package, path = _NEWER.get(str(system.family), _NEWER["debian"])
    yield Hit(system.name, f"{system.name} has Python {row.python if row is not None else ''}, and modules need 3.9",
              f"{package} on the host, and ansible_python_interpreter: {path} in the inventory",
              severity="warning" if used is None else None)
