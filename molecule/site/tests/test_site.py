# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After site.yml the host's own tools agree with what was planned."""
from __future__ import annotations

import json
import re

import pytest

DRIVER = {"gpu-deb12": "535.", "gpu-deb13": "550."}


@pytest.fixture
def name(host):
    return host.backend.get_hostname().split("@")[-1]


@pytest.fixture
def kernels(host):
    return [path.rpartition("vmlinuz-")[2] for path in host.check_output("ls /boot/vmlinuz-*").split()]


def run(host, command):
    with host.sudo():
        return host.check_output(command)


def test_every_kernel_that_can_be_booted_has_the_module(host, name, kernels):
    assert kernels
    for release in kernels:
        assert run(host, f"modinfo -k {release} -F version nvidia-current").startswith(DRIVER[name])
        assert run(host, f"modinfo -k {release} -F vermagic nvidia-current").startswith(f"{release} ")


def test_dkms_says_installed_for_every_kernel(host, kernels):
    status = run(host, "dkms status")
    for release in kernels:
        assert re.search(rf"^nvidia-current.*{re.escape(release)}.*installed", status, re.M), status


def test_dpkg_is_in_order(host):
    assert run(host, "dpkg --audit") == ""


def test_kernel_and_driver_are_held(host):
    held = run(host, "apt-mark showhold").split()
    assert {"linux-image-amd64", "linux-headers-amd64", "nvidia-kernel-dkms"} <= set(held)


def test_the_boot_default_is_a_kernel_with_the_module(host, kernels):
    saved = dict(line.split("=", 1) for line in run(host, "grub-editenv list").splitlines() if "=" in line)
    assert any(f"gnulinux-{release}-advanced" in saved["saved_entry"] for release in kernels)


def test_nouveau_is_blocked(host):
    assert re.search(r"^blacklist nouveau$", run(host, "modprobe --showconfig"), re.M)


def test_containerd_runs_with_the_nvidia_runtime(host):
    assert host.service("containerd").is_running
    assert "/usr/bin/nvidia-container-runtime" in run(host, "containerd config dump")


def test_the_toolkit_is_there_at_one_version(host):
    asked = "dpkg-query --show --showformat '${Version}\\n' nvidia-container-toolkit nvidia-container-toolkit-base " \
            "libnvidia-container-tools libnvidia-container1"
    assert len(set(run(host, asked).split())) == 1


def test_the_state_file_remembers_the_proof_and_nothing_is_open(host, kernels):
    state = json.loads(run(host, "cat /var/lib/baremetal-nvidia/state.json"))
    assert set(kernels) <= set(json.dumps(state).replace('"', " ").split())
    assert not state.get("open")


def test_fabric_manager_is_there_where_nvswitches_are(host, name):
    there = "nvidia-fabricmanager" in run(host, "dpkg-query --show --showformat '${binary:Package}\\n'")
    assert there == (name == "gpu-deb13")
