# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mains of one machine: starts QEMU, and starts it anew when the machine restarts. usage: vm_power.py QEMU …

A restart within one QEMU takes minutes under software emulation: the next kernel is written over pages whose code
is translated already, and every such write is a slow one. A new QEMU starts with none. Its disk stays as it is, since
what the guest wrote is in this computer's cache.
"""
from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence

OPTIONS = ("-action", "reboot=shutdown", "-qmp", "stdio")
_RESTARTS = ("guest-reset", "host-qmp-system-reset", "subsystem-reset")


def _once(command: Sequence[str]) -> bool:
    """Run QEMU to its end; whether the machine wants to start again."""
    again = False
    with subprocess.Popen([*command, *OPTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None and child.stdout is not None
        with contextlib.suppress(BrokenPipeError):    # it went at once: its exit code says why
            child.stdin.write(b'{"execute": "qmp_capabilities"}\n')
        for line in child.stdout:
            said = json.loads(line)
            if said.get("event") == "SHUTDOWN":
                again = said["data"]["reason"] in _RESTARTS
        code = child.wait()
    if code != 0:
        raise SystemExit(code if code > 0 else 1)
    return again


if __name__ == "__main__":
    while _once(sys.argv[1:]):
        pass
