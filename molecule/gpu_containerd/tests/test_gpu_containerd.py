# SPDX-License-Identifier: GPL-3.0-or-later
"""What containerd itself says, and that neither a broken file nor a broken change leaves the host without it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import tomllib

MAIN = "/etc/containerd/config.toml"
CRI = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")


@pytest.fixture(scope="module")
def dumped(host: Any) -> dict[str, Any]:
    with host.sudo():
        return tomllib.loads(host.check_output("containerd config dump"))


@pytest.fixture
def untouched(host: Any) -> Iterator[str]:
    """The main file as it is, put back after the test, with containerd on it."""
    with host.sudo():
        host.check_output(f"cp -a {MAIN} /root/kept.toml")
        yield "/root/kept.toml"
        host.check_output(f"cp -a /root/kept.toml {MAIN}")
        host.check_output("systemctl reset-failed containerd.service; systemctl restart containerd.service")


def module(host: Any, name: str, arguments: str = "", check: bool = False) -> dict[str, Any]:
    """Run a module of the collection on the host. A failure is one that has a message: ad-hoc results say no more."""
    from testinfra.modules.ansible import AnsibleException

    try:
        result = dict(host.ansible(f"baremetal.nvidia.{name}", arguments, check=check, become=True))
    except AnsibleException as error:
        result = dict(error.result)
    return {**result, "failed": "msg" in result}


def started(host: Any) -> str:
    return str(host.check_output("systemctl show --property ExecMainStartTimestampMonotonic containerd.service"))


def test_it_runs_and_is_enabled(host: Any) -> None:
    service = host.service("containerd")
    assert service.is_running and service.is_enabled


def test_it_knows_the_runtime(dumped: dict[str, Any]) -> None:
    plugin = next(dumped["plugins"][name] for name in CRI if name in dumped["plugins"])
    runtimes = plugin["containerd"]["runtimes"]
    assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert runtimes["nvidia"]["runtime_type"] == "io.containerd.runc.v2"
    assert "runc" in runtimes and plugin["containerd"]["default_runtime_name"] == "runc"


def test_cri_is_loaded(host: Any) -> None:
    with host.sudo():
        rows = host.check_output("ctr plugins ls")
    assert re.search(r"^\S+\s+cri\s+\S+\s+ok\s*$", rows, re.MULTILINE), rows


def test_what_the_package_had_is_still_there(host: Any) -> None:
    with host.sudo():
        text = host.file(MAIN).content_string
        backup = host.check_output("ls /var/lib/baremetal-nvidia/backups/etc/containerd").split()[0]
        former = host.file(f"/var/lib/baremetal-nvidia/backups/etc/containerd/{backup}").content_string
        mode = host.file(f"/var/lib/baremetal-nvidia/backups/etc/containerd/{backup}").mode
    missing = [line for line in former.splitlines() if line not in text.splitlines()]
    assert missing == [] and mode == 0o600


def test_it_is_held_and_nothing_is_left_open(host: Any) -> None:
    assert "containerd" in host.check_output("apt-mark showhold").split()
    with host.sudo():
        state = json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json"))
    assert state["open"] is None and state["lease"] is None


def test_a_second_look_restarts_nothing(host: Any) -> None:
    before = started(host)
    assert module(host, "containerd_config")["changed"] is False
    assert started(host) == before


def test_a_broken_file_is_refused_and_containerd_runs_on(host: Any, untouched: str) -> None:
    before = started(host)
    host.check_output(f"printf 'version = 2\\n[plugins.\"x\"\\n' > {MAIN}")
    result = module(host, "containerd_config")
    assert result["failed"] and MAIN in result["msg"]
    assert host.file(MAIN).content_string.startswith("version = 2\n[plugins")
    assert host.service("containerd").is_running and started(host) == before


def test_a_change_that_breaks_it_is_taken_back(host: Any, untouched: str) -> None:
    host.check_output(f"printf 'version = 2\\nroot = 5\\n[' > {MAIN}")
    restore = json.dumps({"restore": [{"path": MAIN, "backup": untouched}], "handlers": ["nvidia"], "timeout": 20})
    result = module(host, "containerd_restart", restore)
    assert result["failed"] and "were put back and it runs again" in result["msg"]
    assert host.service("containerd").is_running
    assert host.run(f"cmp {untouched} {MAIN}").rc == 0


def test_a_handler_that_does_not_come_is_a_failure(host: Any, untouched: str) -> None:
    restore = json.dumps({"restore": [{"path": MAIN, "backup": untouched}], "handlers": ["absent"], "timeout": 3})
    result = module(host, "containerd_restart", restore)
    assert result["failed"] and "absent is not known" in result["msg"]
    assert host.service("containerd").is_running
