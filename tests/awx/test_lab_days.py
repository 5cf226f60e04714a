# SPDX-License-Identifier: GPL-3.0-or-later
"""Days that only real hosts can have: old lists, an archive that is gone, drift, two runs at once.

Needs lab hosts that site.yml converted (LAB_NAME names the lab; without it inventories/lab). Each test leaves the
host as it found it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = os.environ.get("LAB_NAME")
INVENTORY = ROOT / ".cache" / "lab" / LAB / "inventory" if LAB else ROOT / "inventories" / "lab"
HOST = "gpu-deb12"
BIN = pathlib.Path(sys.executable).parent

pytestmark = pytest.mark.skipif(not (INVENTORY / "hosts.yml").exists(), reason=f"no lab at {INVENTORY}: make lab")


def environment(**more: str) -> dict[str, str]:
    bench = ROOT / "tests" / "bench"
    return {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_CALLBACK_PLUGINS": str(bench / "callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "gpu_count",
        **more,
    }


def site(
    place: pathlib.Path, *arguments: str, **variables: Any
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run site.yml on the one host; return the process and the counts of that host."""
    count = place / "count.json"
    command = [str(BIN / "ansible-playbook"), "playbooks/site.yml", "-i", str(INVENTORY), "--limit", HOST, *arguments]
    done = subprocess.run(
        [*command, "-e", json.dumps(variables)],
        cwd=ROOT,
        env=environment(GPU_BENCH_COUNT=str(count)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done, json.loads(count.read_text()).get(HOST, {}) if count.exists() else {}


def on_host(command: str) -> str:
    """Run a shell command on the host by ssh, as Ansible does."""
    done = subprocess.run(
        [str(BIN / "ansible"), HOST, "-i", str(INVENTORY), "-b", "-m", "ansible.builtin.shell", "-a", command],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(name="drifted")
def _drifted() -> Iterator[None]:
    on_host("apt-mark unhold nvidia-kernel-dkms")
    yield
    on_host("apt-mark hold nvidia-kernel-dkms")


def test_old_lists_are_refreshed_in_three_calls_and_nothing_is_changed(tmp_path: pathlib.Path) -> None:
    time.sleep(2)  # lists fetched by a test before are older than the second that is allowed here
    done, counts = site(tmp_path, gpu_cache_max_age=1)
    assert done.returncode == 0, done.stdout
    assert counts["remote_calls"] == 3, counts["modules"]
    assert counts["changed"] == 0


def test_an_archive_that_is_gone_is_said_and_does_not_stop_a_host_as_planned(tmp_path: pathlib.Path) -> None:
    on_host("echo 'Acquire::http::Proxy \"http://127.0.0.1:9\";' > /etc/apt/apt.conf.d/99-test-no-archive")
    try:
        done, counts = site(tmp_path, gpu_cache_max_age=1)
    finally:
        on_host("rm /etc/apt/apt.conf.d/99-test-no-archive")
    assert done.returncode == 0, done.stdout
    assert counts["changed"] == 0 and counts["failures"] == 0
    assert "warn" in done.stdout and "lists" in done.stdout, done.stdout


@pytest.mark.usefixtures("drifted")
def test_check_mode_shows_drift_and_leaves_it(tmp_path: pathlib.Path) -> None:
    done, counts = site(tmp_path, "--check", "--diff")
    assert done.returncode == 0, done.stdout
    assert counts["changed"] == 1 and "nvidia-kernel-dkms" in done.stdout
    assert "nvidia-kernel-dkms" not in on_host("apt-mark showhold").split(), "check mode mended it"


@pytest.mark.usefixtures("drifted")
def test_drift_is_mended_and_proved(tmp_path: pathlib.Path) -> None:
    done, counts = site(tmp_path)
    assert done.returncode == 0, done.stdout
    assert counts["changed"] > 0
    assert "nvidia-kernel-dkms" in on_host("apt-mark showhold").split()
    again, counts = site(tmp_path)
    assert again.returncode == 0 and counts["changed"] == 0 and counts["remote_calls"] == 1


@pytest.mark.usefixtures("drifted")
def test_a_second_run_while_the_first_one_runs_is_kept_out(tmp_path: pathlib.Path) -> None:
    holder = tmp_path / "holder.yml"
    holder.write_text(
        f"- hosts: {HOST}\n  gather_facts: false\n  become: true\n  tasks:\n"
        "    - baremetal.nvidia.host_lease: {state: acquired, run_id: the-first-run}\n"
        "    - ansible.builtin.command: sleep 600\n"
    )
    command = [str(BIN / "ansible-playbook"), str(holder), "-i", str(INVENTORY)]
    first = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _attempt in range(30):
            if "the-first-run" in on_host("cat /var/lib/baremetal-nvidia/state.json"):
                break
            time.sleep(1)
        done, counts = site(tmp_path)
    finally:
        first.terminate()
        first.wait()
        with contextlib.suppress(AssertionError):
            on_host("pkill -x -f 'sleep 600'")
    assert done.returncode == 2, done.stdout
    assert "the-first-run" in done.stdout and counts["changed"] == 0
    assert "nvidia-kernel-dkms" not in on_host("apt-mark showhold").split(), "the second run changed something"
    later, counts = site(tmp_path)
    assert later.returncode == 0 and counts["changed"] > 0, "the first run is gone: its lease does not block for ever"
