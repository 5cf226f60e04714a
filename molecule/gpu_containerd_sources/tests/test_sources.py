# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd 1.7.24 from Docker's repository, and 2.1.9 from release files: they run, with what was asked for."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
import tomllib

MAIN = "/etc/containerd/config.toml"
CRI = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")


@pytest.fixture(scope="module")
def docker(host: Any) -> bool:
    return bool(host.backend.host == "gpu-deb12")


@pytest.fixture(scope="module")
def dumped(host: Any) -> dict[str, Any]:
    with host.sudo():
        return tomllib.loads(host.check_output("containerd config dump"))


def module(host: Any, name: str, arguments: str = "") -> dict[str, Any]:
    from testinfra.modules.ansible import AnsibleException

    try:
        result = dict(host.ansible(f"baremetal.nvidia.{name}", arguments, check=False, become=True))
    except AnsibleException as error:
        result = dict(error.result)
    return {**result, "failed": "msg" in result}


def test_it_runs_in_its_version_and_is_enabled(host: Any, docker: bool) -> None:
    with host.sudo():
        assert host.service("containerd").is_running and host.service("containerd").is_enabled
        program = "/usr/bin/containerd" if docker else "/usr/local/bin/containerd"
        assert ("1.7.24" if docker else "2.1.9") in host.check_output(f"{program} --version")
        main = host.check_output("systemctl show --property MainPID --value containerd.service")
        assert host.check_output(f"readlink /proc/{main}/exe") == program
        rows = host.check_output("ctr plugins ls")
        assert [row.split()[-1] for row in rows.splitlines() if row.split()[1:2] == ["cri"]] == ["ok"], rows


def test_docker_s_package_is_from_its_repository_and_held(host: Any, docker: bool) -> None:
    if not docker:
        pytest.skip("release files")
    assert host.package("containerd.io").version == "1.7.24-1"
    assert "containerd.io" in host.check_output("apt-mark showhold").split()
    with host.sudo():
        source = host.file("/etc/apt/sources.list.d/baremetal-nvidia-docker.sources").content_string
    assert "Signed-By: /etc/apt/keyrings/baremetal-nvidia-docker.asc" in source
    assert host.check_output("cat " + MAIN).startswith("#   Copyright 2018-2022 Docker Inc.\n")
    assert 'disabled_plugins = ["cri"]' not in host.check_output("cat " + MAIN)


def test_release_files_are_kept_in_mind(host: Any, docker: bool) -> None:
    if docker:
        pytest.skip("Docker's package")
    with host.sudo():
        known = json.loads(host.check_output("cat /var/lib/baremetal-nvidia/archives.json"))
        assert known["containerd"]["version"] == "2.1.9"
        assert known["runc"]["version"] in host.check_output("/usr/local/sbin/runc --version")
        text = host.check_output("cat /etc/containerd/conf.d/99-nvidia.toml")
    assert "version = 3" in text and host.run("dpkg -s containerd").rc != 0


def test_a_wrong_checksum_is_refused(host: Any, docker: bool) -> None:
    if docker:
        pytest.skip("Docker's package")
    releases = json.loads((pathlib.Path(__file__).resolve().parents[3] / ".cache/containerd/releases/releases.json")
                          .read_text())["archive"]
    before = host.check_output("sha256sum /usr/local/bin/containerd")
    wrong = {"containerd": {**releases["containerd"], "sha256": "0" * 64}}
    result = module(host, "containerd_archive", json.dumps({"parts": wrong}))
    assert result["failed"] and "expected is 0000" in result["msg"] and "nothing was written" in result["msg"]
    assert host.check_output("sha256sum /usr/local/bin/containerd") == before
    assert module(host, "containerd_archive", json.dumps({"parts": releases}))["changed"] is False


def test_what_was_asked_for_is_in_force(host: Any, dumped: dict[str, Any]) -> None:
    runtime = next(dumped["plugins"][name] for name in CRI if "containerd" in dumped["plugins"].get(name, {}))
    images = dumped["plugins"].get("io.containerd.cri.v1.images", runtime)
    runtimes = runtime["containerd"]["runtimes"]
    assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert runtimes["runc"]["options"]["SystemdCgroup"] is True
    assert runtimes["nvidia"]["options"]["SystemdCgroup"] is True
    assert runtime["containerd"]["default_runtime_name"] == "runc"
    assert images["registry"]["config_path"] == "/etc/containerd/certs.d"
    pinned = images["pinned_images"]["sandbox"] if "pinned_images" in images else images["sandbox_image"]
    assert pinned == "registry.k8s.io/pause:3.10"
    with host.sudo():
        hosts = tomllib.loads(host.check_output("cat /etc/containerd/certs.d/docker.io/hosts.toml"))
    assert hosts == {"server": "https://registry-1.docker.io",
                     "host": {"https://mirror.local": {"capabilities": ["pull", "resolve"]}}}


def test_a_drop_in_of_a_higher_version_is_taken_back(host: Any, docker: bool) -> None:
    """What stops containerd 2 on real fleets."""
    if docker:
        pytest.skip("1.7 has no drop-in of ours")
    drop_in = "/etc/containerd/conf.d/99-nvidia.toml"
    with host.sudo():
        host.check_output(f"cp {drop_in} /root/kept.toml && sed -i 's/^version = 3/version = 4/' {drop_in}")
        restore = {"restore": [{"path": drop_in, "backup": "/root/kept.toml"}], "handlers": ["nvidia"], "timeout": 10}
        result = module(host, "containerd_restart", json.dumps(restore))
        assert result["failed"] and "were put back and it runs again" in result["msg"]
        assert host.service("containerd").is_running
        assert host.run(f"cmp {drop_in} /root/kept.toml").rc == 0
