# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with the driver: every bootable kernel has the proved module, and nothing was built twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

FAMILY = ("nvidia-kernel-dkms", "nvidia-open-kernel-dkms")


@pytest.fixture(scope="module")
def kernels(host: Any) -> list[str]:
    found = host.check_output("ls /boot").split()
    return [name[len("vmlinuz-") :] for name in found if name.startswith("vmlinuz-")]


@pytest.fixture(scope="module")
def driver(host: Any) -> dict[str, str]:
    """Source package, DKMS name and driver version, as dpkg has them."""
    listed = host.check_output("dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}\\n'").splitlines()
    rows = [line.split("|") for line in listed]
    ((_status, package, version),) = [row for row in rows if row[1] in FAMILY and row[0].strip() in ("ii", "hi")]
    name = "nvidia-current-open" if "open" in package else "nvidia-current"
    return {"package": package, "name": name, "version": version.rsplit("-", 1)[0]}


@pytest.fixture(scope="module")
def state(host: Any) -> dict[str, Any]:
    with host.sudo():
        return dict(json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json")))


def test_dkms_has_the_module_installed_for_every_kernel(host: Any, kernels: list[str], driver: dict[str, str]) -> None:
    with host.sudo():
        status = host.check_output(f"dkms status -m {driver['name']} -v {driver['version']}")
    assert kernels
    for kernel in kernels:
        assert f", {kernel}, x86_64: installed" in status


def test_modinfo_agrees_with_the_package(host: Any, kernels: list[str], driver: dict[str, str]) -> None:
    licence = "Dual MIT/GPL" if driver["name"].endswith("open") else "NVIDIA"
    for kernel in kernels:
        text = host.check_output(f"/sbin/modinfo -k {kernel} {driver['name']}")
        fields = {line.partition(":")[0]: line.partition(":")[2].strip() for line in text.splitlines()}
        assert fields["version"] == driver["version"]
        assert fields["license"] == licence
        assert fields["vermagic"].split()[0] == kernel
        for part in ("modeset", "drm", "uvm", "peermem"):
            assert host.run(f"/sbin/modinfo -k {kernel} {driver['name']}-{part}").rc == 0


def test_the_proofs_are_recorded(state: dict[str, Any], kernels: list[str], driver: dict[str, str]) -> None:
    for kernel in kernels:
        assert state["proved_kernels"][kernel]["driver"] == driver["version"]
        assert state["proved_kernels"][kernel]["how"] in ("built", "cached")
    assert state["open"] is None and state["lease"] is None


def test_dpkg_did_not_build_a_second_time(host: Any, kernels: list[str], driver: dict[str, str]) -> None:
    with host.sudo():
        for kernel in kernels:
            log = f"/var/lib/dkms/{driver['name']}/{driver['version']}/{kernel}/x86_64/log/make.log"
            text = host.run(f"cat {log}").stdout
            assert "gcc" not in text and "objtool" not in text, log


def test_nothing_is_left_of_proof_and_offer(host: Any, driver: dict[str, str]) -> None:
    with host.sudo():
        assert host.run(f"ls /etc/dkms | grep '^{driver['name']}-'").stdout == ""
        assert host.run("ls /var/lib/baremetal-nvidia/proved").stdout == ""
        assert host.run("ls -d /var/tmp/baremetal-nvidia-proof.*").stdout == ""


def test_no_package_is_half_installed_and_the_family_is_in_step(host: Any, driver: dict[str, str]) -> None:
    assert host.check_output("dpkg --audit") == ""
    rows = [line.split("|") for line in host.check_output("dpkg-query -W -f '${Package}|${Version}\\n'").splitlines()]
    versions = dict(rows)
    for name in ("nvidia-smi", "libnvidia-ml1", "libcuda1", "nvidia-alternative", "firmware-nvidia-gsp"):
        assert versions[name].rsplit("-", 1)[0] == driver["version"], name
    assert "xserver-xorg-core" not in versions


def test_the_driver_is_held(host: Any, driver: dict[str, str]) -> None:
    held = host.check_output("apt-mark showhold").split()
    assert {driver["package"], "nvidia-smi", "libcuda1", "libnvidia-ml1"} <= set(held)


def test_no_ramdisk_loads_nouveau(host: Any, kernels: list[str]) -> None:
    options = host.file("/etc/modprobe.d/baremetal-nvidia.conf")
    assert options.exists and options.mode == 0o644 and options.user == "root"
    assert "blacklist nouveau" in options.content_string
    with host.sudo():
        for kernel in kernels:
            listed = host.check_output(f"lsinitramfs /boot/initrd.img-{kernel}")
            blocked = "etc/modprobe.d/baremetal-nvidia.conf" in listed
            assert blocked or "/nouveau.ko" not in listed, kernel
            assert "bin/" in listed or "sbin" in listed, kernel


def test_a_ramdisk_that_was_replaced_is_kept_and_whole(host: Any) -> None:
    with host.sudo():
        kept = [name for name in host.check_output("ls /boot").split() if name.endswith(".baremetal-nvidia.old")]
        for name in kept:
            assert host.run(f"lsinitramfs /boot/{name} >/dev/null").rc == 0


def test_services_were_not_started_by_package_scripts(host: Any) -> None:
    assert not host.file("/usr/sbin/policy-rc.d").exists
    assert host.service("nvidia-persistenced").is_enabled
    assert not host.service("nvidia-persistenced").is_running    # no device answers in the lab
    assert host.run("systemctl --failed --no-legend | grep nvidia").stdout == ""
