# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd in the plan: whose it is, where it comes from, the way back, and what waits for leave."""

from __future__ import annotations

import copy
import datetime
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan

NOW = datetime.date(2026, 11, 30)
RUNC3 = '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
K3S = "/var/lib/rancher/k3s/agent/etc/containerd"
HOST: dict[str, Any] = {
    "os": {
        "id": "debian",
        "version": "12",
        "codename": "bookworm",
        "family": "debian",
        "arch": "x86_64",
        "virt": "none",
    },
    "kernel": {
        "running": "6.1.0-50-amd64",
        "default_boot": "6.1.0-50-amd64",
        "installed": [
            {
                "release": "6.1.0-50-amd64",
                "image": True,
                "initrd": True,
                "headers": True,
                "compiler": "gcc-12",
                "nvidia": None,
            }
        ],
    },
    "gpus": [{"address": "0000:3b:00.0", "id": "10de:1eb8", "driver": None, "numa_node": 0}],
    "nvswitches": [],
    "packages": {"manager": "apt", "installed": {"nvidia-container-toolkit": "1.20.0-1"}, "held": []},
    "files": {},
    "state": {"proved_kernels": [], "holds": [], "open": None},
}


def containerd(**more: Any) -> dict[str, Any]:
    config = {
        "path": more.pop("path", "/etc/containerd/config.toml"),
        "text": more.pop("text", "version = 3\n" + RUNC3),
        "drop_ins": more.pop("drop_ins", {}),
    }
    return {
        "containerd": {
            "version": "2.1.9",
            "active": True,
            "owner": "host",
            "config": config,
            "gpu_containers": 0,
            **more,
        },
        "toolkit": {"version": "1.20.0", "mode": "auto"},
        "runc": "1.3.6",
        "cdi": [],
    }


def planned(
    containers: dict[str, Any] | None = None, policy: dict[str, Any] | None = None, **facts: Any
) -> dict[str, Any]:
    given = {**copy.deepcopy(HOST), "containers": containers or containerd(), **facts}
    return plan("g1", given, policy or {}, load(), NOW)


def ours(made: dict[str, Any], part: str = "changes") -> list[tuple[str, str, str]]:
    return [(one["action"], one["target"], one["disruption"]) for one in made[part] if one["role"] == "gpu_containerd"]


def test_k3s_is_only_started_again() -> None:
    made = planned(containerd(owner="k3s", path=f"{K3S}/config.toml", version="2.1.9-k3s1"))
    assert ours(made) == [("restart", "k3s.service", "restart")]
    assert made["decisions"]["containerd"]["units"] == ["k3s.service", "k3s-agent.service"]
    told = [one for one in made["findings"] if one["rule"] == "CTR004"]
    assert [one["severity"] for one in told] == ["info"] and "k3s" in told[0]["summary"]


def test_a_file_in_the_folder_of_k0s_waits_like_a_restart() -> None:
    """k0s restarts containerd as soon as the file is there, so the file itself needs the leave."""
    facts = {
        "owner": "k0s",
        "path": "/etc/k0s/containerd.toml",
        "gpu_containers": 2,
        "text": '# k0s_managed=true\nversion = 3\nimports = ["/run/k0s/containerd-cri.toml"]\n',
        "drop_ins": {"/run/k0s/containerd-cri.toml": "version = 3\n" + RUNC3},
    }
    made = planned(containerd(**facts))
    assert ours(made) == [] and {one["needs"] for one in made["pending"] if one["role"] == "gpu_containerd"} == {
        "gpu_containerd_restart_allowed"
    }
    allowed = planned(containerd(**facts), {"gpu_containerd_restart_allowed": True})
    assert ours(allowed)[0] == ("config", "/etc/k0s/containerd.d/99-nvidia.toml", "restart")


def test_a_restart_under_gpu_containers_waits() -> None:
    made = planned(containerd(gpu_containers=2))
    assert ours(made) == [] and [action for action, _target, _disruption in ours(made, "pending")] == [
        "config",
        "restart",
    ]


def test_taken_out_and_nothing_else() -> None:
    wish = {"gpu_containerd_state": "absent"}
    assert ours(planned(policy=wish)) == []
    drop_in = (
        "# nvidia runtime, written by the Ansible collection baremetal.nvidia\nversion = 3\n"
        '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]\nruntime_type = "io.containerd.runc.v2"\n'
    )
    made = planned(
        containerd(
            text='version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n' + RUNC3,
            drop_ins={"/etc/containerd/conf.d/99-nvidia.toml": drop_in},
        ),
        wish,
        packages={**HOST["packages"], "installed": {"containerd": "2.1.9+ds1-5"}},
    )
    assert made["decisions"]["containerd"]["strategy"] == "remove" and made["decisions"]["containerd"]["hold"] == []
    assert [action for action, _target, _disruption in ours(made)] == ["config", "restart"]


def test_the_record_of_the_host_says_what_comes_back() -> None:
    path = ["plugins", "io.containerd.cri.v1.runtime", "containerd", "default_runtime_name"]
    record = {
        "/etc/containerd/config.toml": {
            "sets": [{"path": path, "before": "runc", "after": "nvidia", "there": True, "header": True}],
            "imports": [],
            "version": False,
        }
    }
    text = (
        "version = 3\n"
        + RUNC3
        + '[plugins."io.containerd.cri.v1.runtime".containerd]\ndefault_runtime_name = "nvidia"\n'
        '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]\n'
        'BinaryName = "/usr/bin/nvidia-container-runtime"\n'
    )
    made = planned(
        containerd(text=text), {"gpu_containerd_state": "absent"}, state={**HOST["state"], "configured": record}
    )
    moved = {one["path"]: one["after"] for one in made["decisions"]["containerd"]["differences"]}
    assert moved['plugins."io.containerd.cri.v1.runtime".containerd.default_runtime_name'] == "runc"


def test_docker_comes_with_its_repository_and_key() -> None:
    made = planned(
        containers={"containerd": None, "toolkit": {"version": "1.20.0"}, "runc": None, "cdi": []},
        policy={"gpu_containerd_source": "docker"},
    )
    decision = made["decisions"]["containerd"]
    assert decision["source"] == "docker" and decision["packages"] == {"containerd.io": None}
    repository = decision["repositories"][0]
    assert (
        "Suites: bookworm" in repository["content"]
        and f"Signed-By: {repository['key']['path']}" in repository["content"]
    )
    assert repository["key"]["fingerprint"] == "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"
    assert [action for action, _target, _disruption in ours(made)][:2] == ["repository", "install"]


def test_a_mirror_of_docker_with_its_own_key() -> None:
    made = planned(
        containers={"containerd": None, "toolkit": {"version": "1.20.0"}, "runc": None, "cdi": []},
        policy={
            "gpu_containerd_source": "docker",
            "gpu_containerd_version": "1.7.24",
            "gpu_containerd_repository": {
                "url": "https://mirror.local/docker",
                "suite": "bookworm",
                "components": ["stable"],
                "fingerprint": "A" * 40,
            },
        },
        packages={**HOST["packages"], "available": {"containerd.io": ["2.1.9-1", "1.7.24-1"]}},
    )
    decision = made["decisions"]["containerd"]
    assert decision["packages"] == {"containerd.io": "1.7.24-1"} and decision["version"] == "1.7.24"
    assert decision["hold"] == ["containerd.io"]
    assert "URIs: https://mirror.local/docker" in decision["repositories"][0]["content"]


@pytest.mark.parametrize("owner", ["k3s", "operator"])
def test_registry_hosts_are_the_hosts_own_alone(owner: str) -> None:
    made = planned(containerd(owner=owner), {"gpu_containerd_registry_hosts": {"docker.io": {"server": "https://r"}}})
    assert made["decisions"]["containerd"]["registry"] == []


def test_settings_are_told_one_by_one() -> None:
    made = planned(
        policy={
            "gpu_containerd_sandbox_image": "registry.k8s.io/pause:3.10",
            "gpu_containerd_systemd_cgroup": True,
            "gpu_containerd_registry_config_path": "/etc/containerd/certs.d",
        }
    )
    paths = {one["path"]: one["after"] for one in made["decisions"]["containerd"]["differences"]}
    assert paths['plugins."io.containerd.cri.v1.images".pinned_images.sandbox'] == "registry.k8s.io/pause:3.10"
    assert paths['plugins."io.containerd.cri.v1.images".registry.config_path'] == "/etc/containerd/certs.d"
    assert paths['plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options.SystemdCgroup'] is True
    assert paths['plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options.SystemdCgroup'] is True


def test_mirrors_of_the_old_kind_stop_a_config_path() -> None:
    text = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\nendpoint = ["https://m"]\n'
    made = planned(
        containerd(text=text, version="1.7.24"), {"gpu_containerd_registry_config_path": "/etc/containerd/certs.d"}
    )
    assert made["verdict"] == "blocked" and "hosts.toml" in str(made["findings"])
