# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with the driver: every bootable kernel has the proved module, and nothing was built twice."""

from __future__ import annotations

import base64
import json
import pathlib
import sys
import tempfile
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests"))
import _bootstrap  # noqa: F401  pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.module_utils.mok import signature
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run

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


def test_what_is_loaded_at_boot(host: Any) -> None:
    loaded = host.file("/etc/modules-load.d/baremetal-nvidia.conf")
    nodes = host.file("/etc/udev/rules.d/71-baremetal-nvidia-nodes.rules")
    assert loaded.content_string.endswith("\nnvidia_uvm\n") and loaded.mode == 0o644
    assert "nvidia-modprobe -c=0 -u" in nodes.content_string
    verify = host.run("udevadm verify /etc/udev/rules.d/71-baremetal-nvidia-nodes.rules")    # systemd 254 and later
    assert verify.rc == 0 or "Unknown" in verify.stderr or "not found" in verify.stderr, verify.stderr


def test_fabric_manager_is_where_the_switches_are_and_of_the_drivers_version(host: Any, driver: dict[str, str]) -> None:
    rows = host.check_output("dpkg-query -W -f '${Package}|${Version}\\n'").splitlines()
    managers = [row.split("|") for row in rows if row.startswith("nvidia-fabricmanager")]
    switches = host.check_output("grep -l 0x22a3 /sys/bus/pci/devices/*/device || true")
    assert bool(managers) == bool(switches)
    for _name, version in managers:
        assert version.rsplit("-", 1)[0] == driver["version"]
        assert host.service("nvidia-fabricmanager").is_enabled


def test_what_dkms_signed_verifies_by_its_certificate(host: Any, kernels: list[str], driver: dict[str, str]) -> None:
    """The kernel's own sign-file signs; what this collection verifies signatures with has to agree with it."""
    with host.sudo():
        certificate = base64.b64decode(host.check_output("base64 -w0 /var/lib/dkms/mok.pub"))
        path = host.check_output(f"/sbin/modinfo -k {kernels[0]} -n {driver['name']}-peermem")
        module = base64.b64decode(host.check_output(f"base64 -w0 {path}"))
    with tempfile.TemporaryDirectory() as place:
        here = pathlib.Path(place)
        (here / "mok.pub").write_bytes(certificate)
        (here / pathlib.Path(path).name).write_bytes(module)
        signer = signature.Signer(str(here / "mok.pub"), run)
        assert signer.problems([str(here / pathlib.Path(path).name)]) == []
