# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""The whole of the facts: joined, within 32 KB, of this very machine as root and as nobody."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import collector, trim
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from facts_helpers import cpio, module

SECTIONS = {
    "os", "kernel", "boot", "storage", "gpus", "nvswitches", "secure_boot", "driver", "health", "packages", "containers", "cuda",
    "services", "files", "state",
}  # fmt: skip
REL = "6.1.0-50-amd64"


def covered(facts):
    """Every section is there or unknown: nothing is silently left out."""
    unknown = {path.split(".")[0].split("[")[0] for path in facts["unknown"]}
    return {section for section in SECTIONS if section not in facts and section not in unknown}


def stanza(name, version):
    return f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n\n"


@pytest.fixture
def image(host):
    """An installed Debian with a driver, not running."""
    host.put("/etc/os-release", 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')
    host.put("/etc/hostname", "gpu-image\n")
    for release in (REL, "6.1.0-47-amd64"):
        host.put(f"/boot/vmlinuz-{release}")
        host.put(f"/boot/config-{release}", 'CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14) 12.2.0"\n')
        host.put(f"/lib/modules/{release}/modules.order")
    host.put(f"/boot/initrd.img-{REL}", gzip.compress(cpio({"usr/lib/modules/x/nouveau.ko": "x"})))
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia-current.ko", module(REL, "535.261.03"))
    host.put(
        "/var/lib/dpkg/status",
        stanza(f"linux-image-{REL}", "6.1.176-1")
        + stanza("nvidia-kernel-dkms", "535.261.03-1")
        + stanza("nvidia-fabricmanager-535", "535.261.03-1"),
    )
    host.put("/usr/bin/nvidia-smi")
    return host


def test_joined(image):
    facts = collector.collect(str(image.root))
    kernels = {row["release"]: row for row in facts["kernel"]["installed"]}
    assert kernels[REL]["packages"] == {"image": f"linux-image-{REL}", "headers": None}
    assert kernels[REL]["nouveau_in_initrd"] is True and kernels["6.1.0-47-amd64"]["nouveau_in_initrd"] is False
    assert facts["driver"]["nouveau"]["in_initramfs"] is True
    assert facts["driver"]["origin"] == "packages"
    assert facts["driver"]["fabricmanager"]["version"] == "535.261.03"
    assert facts["host"] == "gpu-image"
    assert not {"kernel_packages", "nouveau_images", "nvidia_images", "smi_gpus", "smi_silent"} & set(facts)
    assert covered(facts) == set()
    assert abs(facts["read_at"] - time.time()) < 60


def test_another_tree_starts_no_program_that_asks_the_running_system(image, monkeypatch):
    """Only unpackers and modinfo may be started, and those get files."""
    log = image.root.parent / "log"
    fake = image.root.parent / "bin"
    fake.mkdir()
    for name in (
        "systemctl",
        "nvidia-smi",
        "dpkg-query",
        "apt-cache",
        "systemd-detect-virt",
        "containerd",
        "runc",
        "mokutil",
        "lsinitramfs",
    ):
        (fake / name).write_text(f"#!/bin/sh\necho {name} >> {log}\n")
        (fake / name).chmod(0o755)
    monkeypatch.setattr(collector.containers.Context.__init__.__globals__["children"], "PATH", f"{fake}:/usr/bin:/bin")
    facts = collector.collect(str(image.root))
    assert not log.exists()
    assert facts["unknown"]["services"].startswith("another tree is read")
    assert facts["unknown"]["driver.smi"].startswith("another tree is read")


def test_empty_tree(host):
    facts = collector.collect(str(host.root))
    assert covered(facts) == set()
    assert facts["kernel"]["installed"] == [] and facts["driver"]["smi"]["status"] == "missing"
    assert {"gpus", "kernel.modules", "os", "packages", "boot.firmware", "secure_boot"} <= set(facts["unknown"])


def test_one_bad_initrd_makes_in_initramfs_unknown(image):
    image.put("/boot/initrd.img-6.1.0-47-amd64", "damaged")
    image.put(f"/boot/initrd.img-{REL}", gzip.compress(cpio({"init": "x"})))
    facts = collector.collect(str(image.root))
    assert "in_initramfs" not in facts["driver"]["nouveau"] and "driver.nouveau.in_initramfs" in facts["unknown"]
    assert "kernel.installed[6.1.0-47-amd64].nouveau_in_initrd" in facts["unknown"]


def test_the_nvidia_module_in_each_initrd(image):
    ko = "usr/lib/modules/x/updates/dkms/nvidia-current.ko"
    image.put(f"/boot/initrd.img-{REL}", gzip.compress(cpio({ko: module(REL, "535.247.01"), "init": "x"})))
    image.put("/boot/initrd.img-6.1.0-47-amd64", gzip.compress(cpio({"init": "x"})))
    kernels = {row["release"]: row for row in collector.collect(str(image.root))["kernel"]["installed"]}
    assert kernels[REL]["nvidia_in_initrd"] == {"version": "535.247.01", "flavour": "proprietary"}
    assert kernels["6.1.0-47-amd64"]["nvidia_in_initrd"] is None


def test_a_nvidia_module_that_cannot_be_read_is_not_taken_for_none(image):
    image.put(f"/boot/initrd.img-{REL}", gzip.compress(cpio({"usr/lib/modules/x/nvidia.ko": "broken", "init": "x"})))
    image.put("/boot/initrd.img-6.1.0-47-amd64", "damaged")
    facts = collector.collect(str(image.root))
    assert not any("nvidia_in_initrd" in row for row in facts["kernel"]["installed"])
    assert "has no version" in facts["unknown"][f"kernel.installed[{REL}].nvidia_in_initrd"]
    assert "kernel.installed[6.1.0-47-amd64].nvidia_in_initrd" in facts["unknown"]
    rows = {row["release"]: row for row in facts["kernel"]["installed"]}
    assert rows[REL]["nouveau_in_initrd"] is False


def gpu(address):
    return {"address": address, "persistence": None, "mig": None, "fabric": None}


def test_what_the_driver_tells_of_each_gpu():
    told = {"persistence": True, "mig": None, "fabric": {"state": "Completed", "status": "Success"}}
    facts = {
        "gpus": [gpu("0000:01:00.0"), gpu("0000:02:00.0")],
        "smi_gpus": {"0000:01:00.0": {**told, "ecc_uncorrected": 0}},
    }
    collector.join(facts, {}, Tree("/nonexistent"))
    assert facts["gpus"] == [{"address": "0000:01:00.0", **told}, gpu("0000:02:00.0")]


def test_a_driver_that_does_not_answer_makes_it_unknown():
    facts, unknown = {"gpus": [gpu("0000:01:00.0")], "smi_silent": "nvidia-smi did not end in time"}, {}
    collector.join(facts, unknown, Tree("/nonexistent"))
    assert facts["gpus"] == [{"address": "0000:01:00.0"}]
    assert {"gpus[].persistence", "gpus[].mig", "gpus[].fabric"} <= set(unknown)


@pytest.mark.parametrize(
    ("timer", "enabled"),
    [
        ({"enabled": False, "active": False, "failed": False}, False),
        ({"enabled": True, "active": True, "failed": False}, True),
        (None, True),
    ],
)
def test_upgrades_whose_timer_is_off_do_not_happen(timer, enabled):
    facts = {
        "packages": {"manager": "apt", "installed": {}, "auto_upgrades": {"enabled": True}},
        "services": {"apt-daily-upgrade.timer": timer},
    }
    collector.join(facts, {}, Tree("/nonexistent"))
    assert facts["packages"]["auto_upgrades"]["enabled"] is enabled


# ---- 32 KB


def big(texts=3000, packages=900):
    names = [f"nvidia-package-{number}" for number in range(packages)]
    return {
        "kernel": {"installed": [{"release": REL}]},
        "packages": {
            "installed": {
                f"{name}": "580.95.05-0ubuntu0.24.04.1"
                for name in [*names[:100], *(f"containerd-{n}" for n in range(50))]
            },
            "available": {name: ["3.0", "2.0", "1.0"] for name in names},
            "origins": {name: {"3.0": "r", "2.0": "r", "1.0": "r"} for name in names},
            "pins": [{"package": "x" * 200, "pin": "y", "priority": 1, "file": "z"} for _number in range(40)],
            "held": names[:100],
        },
        "containers": {"containerd": {"config": {"text": "a" * texts, "drop_ins": {"/a": "b" * texts, "/c": "short"}}}},
        "boot": {"entries": [{"id": "e" * 100}] * 16},
        "driver": {"dkms": [{"name": "n"}] * 60},
        "unknown": {},
    }


@pytest.mark.parametrize(
    ("texts", "packages"), [(300, 150), (3000, 200), (14000, 200), (200_000, 300), (2_000_000, 900)]
)
def test_size(texts, packages):
    facts = trim.trim(big(texts, packages))
    assert trim.size(facts) <= 32 * 1024
    assert facts["unknown"]
    assert facts["kernel"]["installed"]


def test_what_fits_is_left_alone():
    facts = {"packages": {"available": {"a": ["2", "1"]}}, "unknown": {}}
    assert trim.trim(json.loads(json.dumps(facts))) == facts


def test_what_was_cut_is_named():
    facts = trim.trim(big(14000, 200))
    available = facts["packages"]["available"]
    assert all(len(versions) == 1 for versions in available.values()) and "packages.available[]" in facts["unknown"]
    assert all(set(facts["packages"]["origins"][name]) == {"3.0"} for name in available)
    assert "text" not in facts["containers"]["containerd"]["config"]
    assert "14000 characters" in facts["unknown"]["containers.containerd.config.text"]
    assert facts["containers"]["containerd"]["config"]["drop_ins"] == {"/c": "short"}


def test_last_resort():
    facts = trim.trim({"weird": {"x": "y" * 100_000}, "small": {"a": 1}, "unknown": {}})
    assert trim.size(facts) <= 32 * 1024 and facts["small"] == {"a": 1} and "weird.x" in facts["unknown"]


def test_endless_reasons():
    facts = trim.trim({"unknown": {f"path{n}": "r" * 100 for n in range(2000)}})
    assert trim.size(facts) <= 32 * 1024


# ---- this machine

SCRIPT = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.collector import collect
if sys.argv[2] == "nobody":
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps(collect()))
"""


def collect_as(user):
    """The facts of this machine, read in another process."""
    tests = pathlib.Path(__file__).resolve().parents[3]
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tests), user], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), time.monotonic() - before


def test_this_machine():
    facts, took = collect_as("me")
    assert covered(facts) == set()
    assert trim.size(facts) <= 32 * 1024
    assert facts["os"]["family"] in ("debian", "redhat", "suse") and facts["kernel"]["running"] == os.uname().release
    assert took < 15


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_this_machine_as_nobody():
    facts, _rest = collect_as("nobody")
    root, _rest = collect_as("me")
    assert covered(facts) == set()
    assert facts["os"] == root["os"] and facts["gpus"] == root["gpus"]
    # whatever root knows and nobody does not is named
    for section in SECTIONS:
        missing = (
            set(root.get(section) or {}) - set(facts.get(section) or {})
            if isinstance(root.get(section), dict)
            else set()
        )
        assert all(
            any(path.startswith(f"{section}.{key}") or path == section for path in facts["unknown"]) for key in missing
        )


def test_nothing_is_written(image):
    def snapshot():
        return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in sorted(image.root.rglob("*"))}

    before = snapshot()
    collector.collect(str(image.root))
    assert snapshot() == before


def ubuntu():
    """A host with Ubuntu's archive and NVIDIA's repository: sixteen branches, each in some dozen packages."""
    releases = ["6.8.0-60-generic", "6.8.0-64-generic"]
    versions = ["580.95.05-0ubuntu0.24.04.1", "580.82.07-0ubuntu0.24.04.1", "580.65.06-0ubuntu0.24.04.1"]
    offered = []
    for branch in (390, 418, 450, 470, 510, 515, 525, 530, 535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595, 610):
        for server in ("", "-server"):
            name = f"{branch}{server}"
            offered += [
                f"nvidia-utils-{name}",
                f"nvidia-compute-utils-{name}",
                f"libnvidia-compute-{name}",
                f"libnvidia-cfg1-{name}",
            ]
            offered += [f"nvidia-firmware-{name}", f"nvidia-kernel-common-{name}", f"nvidia-driver-pinning-{branch}"]
            for opened in ("", "-open"):
                offered += [
                    f"nvidia-driver-{name}{opened}",
                    f"nvidia-dkms-{name}{opened}",
                    f"nvidia-kernel-source-{name}{opened}",
                ]
                offered += [
                    f"linux-modules-nvidia-{name}{opened}-{kernel}"
                    for kernel in (*releases, "generic", "generic-hwe-24.04")
                ]
        offered += [
            f"nvidia-open-{branch}",
            f"cuda-drivers-{branch}",
            f"nvidia-fabricmanager-{branch}",
            f"nvidia-imex-{branch}",
        ]
    installed = {f"linux-image-{release}": "6.8.0-60.63" for release in releases}
    installed.update(
        dict.fromkeys(
            ("nvidia-driver-580-server", "libnvidia-compute-580-server", "nvidia-utils-580-server"), versions[0]
        )
    )
    return {
        "kernel": {"installed": [{"release": release, "image": True} for release in releases]},
        "packages": {
            "installed": installed,
            "available": dict.fromkeys(sorted(set(offered)), versions),
            "origins": {name: dict.fromkeys(versions, "ubuntu") for name in sorted(set(offered))},
        },
        "unknown": {},
    }


def test_an_archive_with_every_branch():
    facts = trim.trim(ubuntu())
    available = facts["packages"]["available"]
    assert trim.size(facts) <= 32 * 1024
    for name in ("nvidia-driver-580-server", "nvidia-driver-570-server-open", "nvidia-driver-470-server", "nvidia-open-595",
                 "linux-modules-nvidia-580-server-6.8.0-64-generic", "nvidia-utils-580-server", "cuda-drivers-535"):  # fmt: skip
        assert name in available, name
        if not name.startswith("linux-modules-"):  # those come from one place only
            assert facts["packages"]["origins"][name] == {available[name][0]: "ubuntu"}
    assert "packages.available[]" in facts["unknown"]


def test_where_prebuilt_modules_come_from_goes_before_names_do():
    """A machine that was just installed, whose archive has one branch: all its parts stay on offer."""
    parts = ["nvidia-dkms-580", "libnvidia-compute-580", "nvidia-utils-580", "nvidia-firmware-580"]
    modules = [f"linux-modules-nvidia-580-6.8.0-{number}-generic" for number in range(250)]
    facts = {
        "packages": {
            "installed": {},
            "available": {name: ["580.178.04-1ubuntu1"] for name in [*parts, *modules]},
            "origins": {name: {"580.178.04-1ubuntu1": "archive-noble-updates"} for name in [*parts, *modules]},
        },
        "unknown": {},
    }
    assert trim.size(facts) > 32 * 1024
    packages = trim.trim(facts)["packages"]
    assert set(packages["available"]) == {*parts, *modules} and set(packages["origins"]) == set(parts)
