# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot on a host of Ubuntu 22.04: from a blocked plan by the console step to signed modules, by DKMS, openssl.

The firmware and mokutil are stand-ins (molecule/shared/secure_boot), which keep the keys over a start of the machine.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
HOST = "gpu-ub2204"
PASSWORD = "Once-only-7"
KEY = "/var/lib/shim-signed/mok/MOK.priv"
# mokutil as a package, which keeps how it was called; and the variables of the firmware over this machine's own.
PREPARE = r"""set -e
printf %s "$1" | base64 -d > /usr/local/sbin/firmware && chmod +x /usr/local/sbin/firmware
mkdir -p /root/mokutil/DEBIAN /root/mokutil/usr/bin && cd /root/mokutil
printf '%s\n' 'Package: mokutil' 'Version: 0.6.0-2~lab' 'Architecture: all' 'Maintainer: lab <lab@localhost>' \
    'Description: simulated' > DEBIAN/control
printf '%s\n' '#!/bin/sh' 'echo "$@" >> /run/mokutil.called' \
    'exec /usr/local/sbin/firmware mokutil "$@"' > usr/bin/mokutil
chmod 755 usr/bin/mokutil && dpkg-deb --build . /root/mokutil.deb >/dev/null && dpkg -i /root/mokutil.deb >/dev/null
mkdir -p /root/simulated-firmware && mount --bind /root/simulated-firmware /sys/firmware
firmware on
"""
UNSIGN = r"""set -e
for path in $(find /lib/modules /var/lib/dkms/nvidia -name 'nvidia.ko'); do
    python3 - "$path" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
mark = b"~Module signature appended~\n"
assert data.endswith(mark), sys.argv[1]
(length,) = struct.unpack(">I", data[-len(mark) - 4:-len(mark)])
open(sys.argv[1], "wb").write(data[:len(data) - len(mark) - 12 - length])
END
    echo "$path"
done
"""


class Lab:
    """One host in a lab of its own."""

    name = os.environ.get("LAB_NAME", "secure-boot")
    inventory = ROOT / ".cache" / "lab" / name / "inventory"

    def __call__(self, *words: str) -> str:
        done = subprocess.run([str(ROOT / "scripts" / "lab"), *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "LAB_NAME": self.name}, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sh(self, script: str, *words: str) -> str:
        return self("exec", HOST, "sh", "-c", script, "sh", *words)

    def driver(self, password: str | None = None, fails: bool = False) -> tuple[dict[str, Any], int, str]:
        """Run the role, as talkative as -vvv; what the host is like then, the changed tasks, and the output."""
        program = pathlib.Path(sys.executable).with_name("ansible-playbook")
        asked = {"host": HOST, **({"gpu_mok_password": password} if password else {})}
        done = subprocess.run([str(program), "-vvv", "-i", str(self.inventory), str(HERE / "driver.yml"), "-e",
                               json.dumps(asked)], capture_output=True, text=True, check=False, timeout=900, cwd=ROOT)
        output = done.stdout + done.stderr
        assert PASSWORD not in output, "the password is in the output"
        assert (done.returncode != 0) == fails, output[-6000:]
        changed = re.search(r"changed=(\d+)", done.stdout.rpartition("PLAY RECAP")[2])
        found = re.search(r"RESULT ([A-Za-z0-9+/=]+)", done.stdout)
        result = json.loads(base64.b64decode(found.group(1))) if found else {}
        return result, int(changed.group(1)) if changed else -1, output


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    made = Lab()
    made("up", "--hosts", HOST)
    firmware = b"#!/usr/bin/env python3\n" + (ROOT / "molecule/shared/secure_boot/firmware.py").read_bytes()
    made.sh(PREPARE, base64.b64encode(firmware).decode())
    yield made
    if not request.session.testsfailed:  # else it stays, to be looked at
        made("down")


def modules(lab: Lab) -> list[str]:
    return lab.sh("find /lib/modules -name 'nvidia*.ko*'").split()


def test_without_a_password_the_plan_is_blocked_and_says_what_to_give(lab: Lab) -> None:
    _result, _changed, output = lab.driver(fails=True)
    assert "KRN008" in output and "gpu_mok_password" in output and "no machine owner key is enrolled" in output
    assert not modules(lab) and lab.sh(f"ls {KEY} 2>/dev/null || echo none").split() == ["none"]


def test_with_one_the_enrolment_is_asked_for_and_nothing_else_is_done(lab: Lab) -> None:
    result, changed, output = lab.driver(PASSWORD)
    assert changed > 0 and result["mok"] == "requested" and "SYS006" in result["rules"]
    assert result["needs"] == ["the console step of Secure Boot (MokManager)"]
    assert "MokManager (a blue screen) waits ten seconds" in output
    assert not modules(lab) and "600" in lab.sh(f"stat -c %a {KEY}")
    assert lab.sh("cat /run/mokutil.called").split("\n")[-2].startswith("--import /var/lib/shim-signed/mok/MOK.der")
    kept = lab.sh("cat /run/mokutil.called; grep -r . /var/lib/baremetal-nvidia /var/log /tmp 2>/dev/null; true")
    assert "--import" in kept and PASSWORD not in kept


def test_while_it_waits_another_run_changes_nothing_and_needs_no_password(lab: Lab) -> None:
    result, changed, _output = lab.driver()
    assert (changed, result["mok"]) == (0, "requested") and "SYS006" in result["rules"]


def test_a_request_that_nobody_confirmed_is_told_and_made_again(lab: Lab) -> None:
    assert "nobody confirmed" in lab.sh("firmware restart")
    _result, _changed, output = lab.driver(fails=True)
    assert "A request that was not confirmed at the console is gone" in output
    result, changed, _output = lab.driver(PASSWORD)
    assert changed > 0 and result["mok"] == "requested"


def test_after_the_console_step_the_driver_comes_in_signed(lab: Lab) -> None:
    assert "enrolled" in lab.sh("firmware restart \"$1\"", PASSWORD)
    result, changed, _output = lab.driver()
    assert changed > 0 and result["mok"] == "enrolled" and "SYS006" not in result["rules"] and not result["changes"]
    assert modules(lab)
    assert lab.driver()[:2] == (result, 0)


def test_a_module_that_lost_its_signature_is_seen_and_signed_again(lab: Lab) -> None:
    assert lab.sh(UNSIGN).count("nvidia.ko") > 1
    lab.sh(f"mv {KEY} {KEY}.away")
    _result, _changed, output = lab.driver(fails=True)    # nothing can sign it: a new key is to be enrolled first
    assert "KRN008" in output and "gpu_mok_password" in output
    lab.sh(f"mv {KEY}.away {KEY}")
    result, changed, _output = lab.driver()
    assert changed > 0 and not result["changes"]
