# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a driver comes from, on hosts with real package managers: sources on their bad days, sources that contradict
each other, a proxy, a runfile that goes, and a directory of package files with the network cut.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
LAB = os.environ.get("LAB_NAME", "sources")
INVENTORY = ROOT / ".cache" / "lab" / LAB / "inventory"
UBUNTU = "gpu-ub2404"
ADDRESSES = {UBUNTU: "127.0.8.1", "gpu-el9": "127.0.8.2", "gpu-sles15": "127.0.8.3"}  # hosts of the lab share loopback
MIRROR = "http://mirror.lab:8081"
REPOS = f"{MIRROR}/compute/cuda/repos"
KERNEL = "6.8.0-147-generic"
RUNFILE = "580.159.03"
VERSION = "580.178.04"
# What a directory holds, as its files are called: the driver, and what building it needs.
NEEDED = {"gpu-el9": r"580\.178\.04|/kernel-devel-.*687\.5\.|/(dkms|gcc(-c\+\+)?|elfutils-libelf-devel|make|findutils|"
                     r"perl-interpreter|python3|kmod)-[0-9]",
          "gpu-sles15": r"580\.178\.04|/(dkms|gcc[0-9]*|make)-[0-9]"}
# Kills the uninstaller and the module above it, once it comes to that file.
HOOK = """#!/bin/sh
case $1 in
*/libcuda.so.1)
    rm -f /run/runfile-hook
    for pid in $(pgrep -f driver_runfile) "$PPID"; do kill -9 "$pid"; done
    ;;
esac
"""
# No source is left that could answer; what apt, dnf or zypper fetched before is gone too.
CUT = """
set -e
if [ -d /etc/apt ]; then
    rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
    echo 'deb http://192.0.2.1/ubuntu noble main' > /etc/apt/sources.list
else
    rm -rf /var/cache/dnf/* /var/cache/zypp/*
    for file in /etc/yum.repos.d/*.repo /etc/zypp/repos.d/*.repo; do
        [ ! -e "$file" ] || sed -i 's|file:///srv/archive|http://192.0.2.1|' "$file"
    done
fi
umount -l /srv/archive
"""


def lab(*words: str, data: str | None = None) -> bytes:
    done = subprocess.run([str(ROOT / "scripts" / "lab"), *words], capture_output=True, check=False, timeout=900,
                          input=data.encode() if data is not None else None, env={**os.environ, "LAB_NAME": LAB})
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout


def sh(host: str, script: str, *words: str) -> str:
    return lab("exec", host, "sh", "-c", script, "sh", *words).decode()


def put(host: str, path: str, text: str) -> None:
    sh(host, 'mkdir -p "${1%/*}" && printf "%s" "$2" > "$1" && chmod +x "$1"', path, text)


def play(host: str, asked: dict[str, Any], playbook: str = "driver.yml", fails: bool = False) -> tuple[Any, int, str]:
    """What the playbook said at its end, how many tasks changed something, and all of it."""
    program = ROOT / ".venv" / "bin" / "ansible-playbook"
    done = subprocess.run([str(program), "-i", str(INVENTORY), str(HERE / playbook), "-e",
                           json.dumps({"host": host, **asked})], capture_output=True, text=True, check=False,
                          timeout=1800, cwd=ROOT)
    assert (done.returncode != 0) == fails, done.stdout[-6000:] + done.stderr[-2000:]
    changed = re.search(r"changed=(\d+)", done.stdout.rpartition("PLAY RECAP")[2])
    found = re.search(r"RESULT ([A-Za-z0-9+/=]+)", done.stdout)
    return json.loads(base64.b64decode(found.group(1))) if found else {}, int(changed.group(1)) if changed else -1, (
        done.stdout)


def left(plan: dict[str, Any]) -> list[Any]:
    return [change for change in plan["changes"] + plan["pending"] if change["role"] == "gpu_driver"]


def driver_versions(host: str) -> set[str]:
    query = "dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n' | sed -n 's/^installed //p'"
    if host != UBUNTU:
        query = "rpm -qa --queryformat '%{NAME} %{VERSION}-%{RELEASE}\\n'"
    text = sh(host, query)
    rows = [line.split() for line in text.splitlines() if "nvidia" in line and len(line.split()) == 2]
    return {version for name, version in rows if version.startswith(("5", "6"))}


def fresh(host: str) -> None:
    if os.environ.get("SOURCES_STAND"):  # while these tests are worked on: the host as it stands
        return
    lab("up", "--hosts", host)
    lab("reset", host)


@pytest.fixture(scope="module", autouse=True)
def _down() -> Iterator[None]:
    yield
    lab("down")


@pytest.fixture(scope="module")
def ubuntu() -> str:
    fresh(UBUNTU)
    for name in ("serve.sh", "mirror.sh"):
        put(UBUNTU, f"/root/{name}", (HERE / name).read_text())
    sh(UBUNTU, f"/root/mirror.sh {ADDRESSES[UBUNTU]}")
    return UBUNTU


def test_sources_on_their_bad_days(ubuntu: str) -> None:
    fingerprint = sh(ubuntu, "cat /srv/www/mirror.fingerprint").strip()
    said, _changed, _text = play(ubuntu, {"mirror_fingerprint": fingerprint}, "messages.yml")
    assert fingerprint in said["wrong key"] and "0" * 40 in said["wrong key"]
    assert "The package lists cannot be fetched" in said["other key"]
    assert "http://mirror.lab:8081/other" in said["other key"] and "Missing key" in said["other key"]
    assert "expired" in said["expired"] and "http://mirror.lab:8081/expired" in said["expired"]
    lines = said["proxy"].splitlines()
    assert "http://mirror.lab:8081/mirror.asc" in lines and any(line.endswith("x86_64/InRelease") for line in lines)
    assert "403" in said["refused"] and "mirror.lab" in said["refused"]
    assert "through the proxy http://proxy.lab:8082" in said["refused key"]
    assert "nothing was written" in said["refused key"]
    assert "without a proxy any more" in said["without"]


def test_sources_that_contradict_each_other(ubuntu: str) -> None:
    """NVIDIA's repository twice, with two keys, so that apt reads nothing; and that of another release.

    Both archives have R580: module and libraries come from one. On the way the disk is full: dpkg stops while it
    unpacks, that is said, and the next run finishes it.
    """
    folder = "/etc/apt/sources.list.d"
    sh(ubuntu, f"rm -f {folder}/baremetal-nvidia-* /srv/proxy.refuses")
    sh(ubuntu, "cp /srv/www/mirror.asc /etc/apt/keyrings/hand.asc; cp /srv/www/other.asc /etc/apt/keyrings/old.asc")
    put(ubuntu, f"{folder}/cuda.list", f"deb [signed-by=/etc/apt/keyrings/old.asc] {REPOS}/ubuntu2404/x86_64/ /\n")
    put(ubuntu, f"{folder}/cuda.sources", f"Types: deb\nURIs: {REPOS}/ubuntu2404/x86_64/\nSuites: /\n"
                                          "Signed-By: /etc/apt/keyrings/hand.asc\n")
    put(ubuntu, f"{folder}/old.list", f"deb [signed-by=/etc/apt/keyrings/hand.asc] {REPOS}/ubuntu2204/x86_64/ /\n")
    assert "Signed-By" in sh(ubuntu, "apt-get update 2>&1 || true")
    asked = {"gpu_driver_source": "nvidia", "gpu_driver_branch": "580"}
    full = "/usr/share/doc/nvidia-firmware-580"
    sh(ubuntu, f"mkdir -p {full} && mount -t tmpfs -o nr_inodes=1 tmpfs {full}")
    _nothing, _changed, text = play(ubuntu, {**asked, "refresh": True}, fails=True)
    assert "No space left on device" in text and "nvidia-firmware-580" in text, text[-3000:]
    sh(ubuntu, f"umount {full}")
    plan, _changed, text = play(ubuntu, asked)
    assert left(plan) == [], text[-3000:]
    assert plan["decisions"]["driver"]["version"] == VERSION
    assert sh(ubuntu, f"ls {folder}").split() == ["cuda.sources"]
    kept = sh(ubuntu, "find /var/lib/baremetal-nvidia/backups -type f -name '*.list.*' -exec cat {} +")
    assert f"{REPOS}/ubuntu2204" in kept and f"{REPOS}/ubuntu2404" in kept
    assert driver_versions(ubuntu) <= {f"{VERSION}-1ubuntu1"}
    policy = sh(ubuntu, "apt-cache policy libnvidia-compute-580")
    assert f"Candidate: {VERSION}-1ubuntu1" in policy and "580.173.02-0ubuntu0.24.04.1" in policy, policy
    again, changed, _text = play(ubuntu, asked)
    assert (left(again), changed) == ([], 0)
    codes = {finding["rule"] for finding in again["findings"]}
    assert not codes & {"PKG006", "PKG009", "PKG010", "PKG014"}, again["findings"]


def files_of(host: str, into: pathlib.Path, wanted: str) -> str:
    """Bring package files of the lab's archive here; what sha256sum says of them."""
    names = sh(host, f"cd /srv/archive && find . -name '*.deb' -o -name '*.rpm' | grep -E -e '{wanted}'").split()
    packed = lab("exec", host, "tar", "-C", "/srv/archive", "-c", *names)
    lines = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                name = pathlib.PurePath(member.name).name
                (into / name).write_bytes(data := content.read())
                lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}")
    return "\n".join(lines) + "\n"


def test_a_runfile_goes_and_a_directory_takes_its_place_with_the_network_cut(tmp_path: pathlib.Path) -> None:
    """Cut off in the middle of the uninstaller (a stand-in of the same names and places); the next run finishes it."""
    host = UBUNTU
    fresh(host)
    sums = files_of(host, tmp_path, rf"-580_{VERSION}-1ubuntu1_|/gcc-13_|/libelf-dev_")
    put(host, "/root/runfile.sh", (HERE / "runfile.sh").read_text())
    sh(host, f"/root/runfile.sh {RUNFILE} {KERNEL}")
    sh(host, CUT)
    asked: dict[str, Any] = {"gpu_driver_offline": {"path": str(tmp_path), "on": "controller", "sha256": sums}}
    put(host, "/run/runfile-hook", HOOK)
    play(host, {**asked, "gpu_driver_runfile": "replace"}, fails=True)
    state = json.loads(sh(host, "cat /var/lib/baremetal-nvidia/state.json"))
    assert state["open"]["what"] == f"move away from the runfile {RUNFILE}"
    assert KERNEL in state["proved_kernels"], "it was proved before the first file went"
    assert "there" in sh(host, f"[ -e /lib/modules/{KERNEL}/kernel/drivers/video/nvidia.ko ] && echo there")
    # the run that was killed can give nothing back: its lease is taken over, since its process is gone
    plan, _changed, text = play(host, {**asked, "gpu_driver_runfile": "replace"})
    assert left(plan) == [] and plan["decisions"]["driver"]["version"] == VERSION, text[-3000:]
    assert driver_versions(host) <= {f"{VERSION}-1ubuntu1"}
    kept = sh(host, f"cd /var/lib/baremetal-nvidia/backups/runfile-{RUNFILE} && find . -type f")
    assert f"./lib/modules/{KERNEL}/kernel/drivers/video/nvidia.ko" in kept and f"libnvidia-older.so.{RUNFILE}" in kept
    assert json.loads(sh(host, "cat /var/lib/baremetal-nvidia/state.json"))["open"] is None
    assert f"nvidia/{RUNFILE}" not in sh(host, "dkms status")
    again, changed, _text = play(host, asked)
    assert (left(again), changed, again["decisions"]["driver"]["version"]) == ([], 0, VERSION)


@pytest.fixture(scope="module", params=["gpu-el9", "gpu-sles15"])
def rpms(request: pytest.FixtureRequest) -> str:
    host = str(request.param)
    fresh(host)
    return host


def test_a_mirror_behind_a_proxy(rpms: str) -> None:
    put(rpms, "/root/serve.sh", (HERE / "serve.sh").read_text())
    sh(rpms, f"/root/serve.sh {ADDRESSES[rpms]} /srv/archive key.asc")
    said, _changed, _text = play(rpms, {}, "proxy.yml")
    assert "0" * 40 in said["wrong key"]
    lines = said["proxy"].splitlines()
    assert f"{MIRROR}/key.asc" in lines and f"{MIRROR}/cuda/repodata/repomd.xml" in lines
    assert "The package lists cannot be fetched" in said["refused"] and "mirror.lab:8081/cuda" in said["refused"]
    assert "403" in said["refused"] or "denied" in said["refused"], "dnf names the status, libzypp what it means"
    assert "through the proxy http://proxy.lab:8082" in said["refused key"]
    assert "nothing was written" in said["refused key"]


def test_a_directory_on_the_host(rpms: str, tmp_path: pathlib.Path) -> None:
    """Nothing else answers: no repository is there any more."""
    sums = files_of(rpms, tmp_path, NEEDED[rpms])
    sh(rpms, "mkdir -p /srv/driver && cd /srv/archive && find . -name '*.rpm' -exec cp {} /srv/driver/ \\;")
    sh(rpms, CUT)
    wish = {"gpu_driver_branch": "580", "gpu_driver_offline": {"path": "/srv/driver", "sha256": sums}}
    plan, _changed, text = play(rpms, wish)
    assert left(plan) == [] and plan["decisions"]["driver"]["version"] == VERSION, text[-3000:]
    assert driver_versions(rpms) and all(VERSION in one for one in driver_versions(rpms))
    again, changed, _text = play(rpms, wish)
    assert (left(again), changed) == ([], 0)
