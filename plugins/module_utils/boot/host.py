# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a trial boot has to know about the host: its kernel arguments, its watchdog, its network, this boot."""
from __future__ import annotations

import re
from collections.abc import Mapping

from ..facts.tree import Tree

_PANICS = "oops=panic softlockup_panic=1 nmi_watchdog=panic watchdog_thresh=30"
_DRACUT = "rd.shell=0 rd.emergency=reboot"
_SYSTEM_CONF = ("/etc/systemd/system.conf", "/usr/lib/systemd/system.conf")
_SYSTEM_CONF_D = ("/usr/lib/systemd/system.conf.d", "/etc/systemd/system.conf.d")
_OURS = "zz-baremetal-nvidia-trial.conf"


def arguments(panic: int, dracut: bool) -> str:
    """What the kernel on trial gets beside its usual arguments.

    A panic restarts the host, and so does what would hang it: an oops, a lock-up, an initramfs that finds no root
    (Debian's reads panic= itself, dracut has words of its own).
    """
    return f"panic={panic} {_PANICS}" + (f" {_DRACUT}" if dracut else "")


def arguments_in(cmdline: str) -> str | None:
    """What of a kernel's command line a trial gave it; None where it was not started for one."""
    found = re.search(rf"(?:^|\s)(panic=\d+ {re.escape(_PANICS)}(?: {re.escape(_DRACUT)})?)(?=\s|$)", cmdline)
    return found.group(1) if found else None


def has_dracut(tree: Tree) -> bool:
    """Whether the initramfs is dracut's."""
    return any(tree.exists(path) for path in ("/usr/bin/dracut", "/usr/sbin/dracut", "/sbin/dracut"))


def feeds_watchdog(tree: Tree) -> bool:
    """Whether systemd is set to feed a watchdog already, so that no setting of ours is needed. Raises OSError."""
    texts = [tree.text(path) or "" for path in reversed(_SYSTEM_CONF)]
    for directory in _SYSTEM_CONF_D:
        texts += [tree.text(path) or "" for path in tree.glob(directory, "*.conf") if not path.endswith(_OURS)]
    values = re.findall(r"^\s*RuntimeWatchdogSec\s*=\s*(\S*)", "\n".join(texts), re.MULTILINE)
    return bool(values) and values[-1] not in ("", "0", "off", "infinity")


def boot_id(tree: Tree) -> str:
    """What names this boot; empty where it cannot be read."""
    return tree.text("/proc/sys/kernel/random/boot_id", 128) or ""


def has_route(tree: Tree) -> bool:
    """Whether there is a default route now, as the kernel on trial has to have one then. Raises OSError."""
    for line in (tree.text("/proc/net/route") or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == "00000000" and fields[7] == "00000000":
            return True
    for line in (tree.text("/proc/net/ipv6_route") or "").splitlines():
        fields = line.split()
        if len(fields) > 9 and fields[0] == "0" * 32 and fields[1] == "00" and fields[9] != "lo":
            return True
    return False


def not_covered(dog: Mapping[str, str] | None, fallback_reboot: bool) -> list[str]:
    """After what the host does not come back by itself, as sentences for the plan."""
    found = []
    if dog is None:
        found.append("there is no watchdog: a kernel that hangs without a panic needs a power cycle")
    else:
        found.append("the watchdog is armed by systemd: a kernel that hangs before that needs a power cycle")
        if "software" in dog["identity"].lower():
            found.append(f"{dog['device']} ({dog['identity']}) is in the kernel: it does not fire when that hangs")
    if not fallback_reboot:
        found.append("a kernel that comes up without its module stays until the host is restarted")
    return found
