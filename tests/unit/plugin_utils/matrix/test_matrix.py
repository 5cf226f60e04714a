# SPDX-License-Identifier: GPL-3.0-or-later
"""What the matrix answers: the questions people ask most, with the answers they must get."""

from __future__ import annotations

import datetime
import pathlib
import subprocess
import sys
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load

FIT = [
    # driver, flavour, release, os, source, package version, answer
    ("575.57.08", "open", "6.17.0-1008-nvidia-64k", "ubuntu 24.04", "nvidia", None, "fails"),
    ("580.178.04", "open", "6.17.0-1008-nvidia-64k", "ubuntu 24.04", "nvidia", None, "builds"),
    ("550.90.07", "proprietary", "5.15.0-113-generic", "ubuntu 22.04", "nvidia", None, "builds"),
    ("520.61.05", "proprietary", "5.15.0-113-generic", "ubuntu 22.04", "nvidia", None, "builds"),
    ("550.163.01", "proprietary", "6.12.117+deb13-amd64", "debian 13", "distro", "550.163.01-2", "builds"),
    ("550.163.01", "proprietary", "6.12.118+deb13-amd64", "debian 13", "distro", "550.163.01-2", "builds"),
    ("550.163.01", "open", "6.12.117+deb13-amd64", "debian 13", "distro", "550.163.01-2", "fails"),
    ("550.163.01", "proprietary", "7.3.4+deb13-amd64", "debian 13", "distro", "550.163.01-2", "fails"),
    ("550.163.01", "proprietary", "7.2.12+deb14-amd64", "debian 13", "distro", "550.163.01-2", "fails"),
    ("535.309.01", "proprietary", "6.1.0-57-amd64", "debian 12", "distro", "535.309.01-0+deb12u1", "builds"),
    ("535.261.03", "proprietary", "6.1.0-50-amd64", "debian 12", "distro", "535.261.03-1", "builds"),
    ("535.274.02", "proprietary", "6.12.117+deb13-amd64", "debian 13", "distro", "535.274.02-1~deb13u1", "builds"),
    ("525.147.05", "proprietary", "6.1.0-18-amd64", "debian 12", "nvidia", None, "fails"),
    ("525.147.05", "open", "6.1.0-18-amd64", "debian 12", "nvidia", None, "builds"),
    ("525.147.05", "proprietary", "6.1.0-17-amd64", "debian 12", "nvidia", None, "builds"),
    ("595.91.07", "open", "6.12.117+deb13-amd64", "debian 13", "nvidia", None, "builds"),
    ("580.95.05", "open", "6.12.117+deb13-amd64", "debian 13", "nvidia", None, "fails"),
    ("580.178.04", "open", "5.14.0-503.40.1.el9_5.x86_64", "rocky 9.5", "nvidia", None, "builds"),
    ("575.64.05", "open", "5.14.0-687.12.1.el9_8.x86_64", "rocky 9.8", "nvidia", None, "fails"),
    ("550.163.01", "open", "5.14.0-687.12.1.el9_8.x86_64", "almalinux 9.8", "nvidia", None, "unknown"),
    ("440.118.02", "proprietary", "5.15.0-203-generic", "ubuntu 22.04", "nvidia", None, "fails"),
    ("580.178.04", "open", "7.4.0-1-amd64", "debian 13", "nvidia", None, "unknown"),
    ("595.91.07", "open", "7.2.13+deb14-amd64", "debian 13", "nvidia", None, "unknown"),
    ("595.91.07", "open", "7.0.0-31-generic", "ubuntu 26.04", "distro", None, "builds"),
    ("595.91.07", "open", "6.4.0-150600.23.47-default", "sles 15.6", "nvidia", None, "builds"),
    ("555.58.02", "open", "3.10.0-1160.el7.x86_64", "centos 7", "nvidia", None, "fails"),
    ("580.178.04", "open", "not a kernel", "debian 13", "nvidia", None, "unknown"),
    ("latest", "open", "6.8.0-1-generic", "ubuntu 24.04", "nvidia", None, "unknown"),
]


@pytest.mark.parametrize(("version", "flavour", "release", "os", "source", "package", "want"), FIT)
def test_kernel_fit(matrix, version, flavour, release, os, source, package, want):
    fit = matrix.kernel_fit(version, flavour, release, *os.split(), source, package)
    assert fit.answer == want, fit.why
    assert fit.why
    if fit.answer != "unknown":
        assert fit.rows and all(row.decides for row in fit.rows[:1]), fit


def test_unconfirmed_rows_never_tip_the_scale(matrix):
    """The Azure breakage of 535 is known only by hearsay: it is shown, and 535.161.08 still builds."""
    shown = {row.id for row in matrix.breakages("535.161.08", "5.15.0-1064-azure", "ubuntu", "22.04", "proprietary")}
    assert "rcu-read-unlock-strict" in shown
    assert matrix.kernel_fit("535.161.08", "proprietary", "5.15.0-1064-azure", "ubuntu", "22.04").answer == "builds"


def test_the_claim_about_113_is_not_a_row(matrix):
    text = "".join(
        path.read_text() for path in pathlib.Path(sys.modules[load.__module__].__file__).parent.glob("data/*.yml")
    )
    assert "5.15.0-113" not in text


def test_compilers_of_kernels(matrix):
    assert matrix.kernel_line("ubuntu", "22.04", "5.15.0-203-generic").compiler == "gcc-11"
    assert matrix.kernel_line("ubuntu", "22.04", "6.8.0-149-generic").compiler == "gcc-12"
    assert matrix.kernel_line("debian", "13", "6.12.117+deb13-amd64").compiler == "gcc-14"
    assert matrix.kernel_line("debian", "13", "garbage") is None


SUPPORT = [
    ("10de:1db5", None, "595", "no", "580"),
    ("10de:1db5", None, "580", "yes", None),
    ("10de:102d", None, "470", "yes", None),
    ("10de:102d", None, "495", "no", "470"),
    ("10de:1eb8", None, "595", "yes", None),
    ("10de:1eb8", None, "390", "no", "410.78"),
    ("10de:2335", "10de:18be", "550.54.15", "no", "550.90.07"),
    ("10de:2335", "10de:18be", "550.90.07", "yes", None),
    ("10de:2335", None, "535.309.01", "no", "550.90.07"),
    ("10de:2b85", None, "570.211.01", "yes", None),
    ("10de:2b85", None, "565.77", "no", "570"),
    ("10de:1b82", None, "580.178.04", "yes", None),
    ("10de:1c81", None, "595", "no", "580"),
    ("10de:11bf", None, "390.157", "no", "367"),
    ("10de:3002", None, "595", "unknown", None),
    ("10de:2684", None, "latest", "unknown", None),
]


@pytest.mark.parametrize(("device", "subsystem", "version", "answer", "needs"), SUPPORT)
def test_support(matrix, device, subsystem, version, answer, needs):
    got = matrix.supports(matrix.product(device, subsystem), version)
    assert got.answer == answer, got.why
    if answer == "no":
        assert got.needs == needs and got.why


def test_flavours_of_cards(matrix):
    rule = {
        device: matrix.product(device).flavour_rule
        for device in ("10de:1d01", "10de:1eb8", "10de:2330", "10de:2342", "10de:2901", "10de:2e12", "10de:2b85")
    }
    assert rule == {
        "10de:1d01": "proprietary_only",
        "10de:1eb8": "both",
        "10de:2330": "both",
        "10de:2342": "open_only",
        "10de:2901": "open_only",
        "10de:2e12": "open_only",
        "10de:2b85": "open_only",
    }
    assert matrix.product("10de:ffff") is None  # unknown, and never proprietary


def test_subsystems_choose_between_cards(matrix):
    assert matrix.product("10de:25b6", "10de:14a9").name == "A16"
    assert matrix.product("10de:25b6", "10de:157e").name == "A2"
    assert matrix.product("10DE:20B2", "10DE:1463").name == "A100-SXM4-80GB"
    assert matrix.product("10de:20b2", "1028:0000").name == "A100-SXM4-80GB"  # an OEM's own subsystem


def test_fabrics(matrix):
    assert matrix.nvswitch("10de:22a3").needs == ("fabricmanager",)
    assert matrix.nvswitch("10de:1af1").generation == 2
    assert matrix.fabric_of("10de:2901").needs == ("fabricmanager", "nvlsm")
    assert matrix.fabric_of("10de:2941").needs == ("imex",)
    assert matrix.fabric_of("10de:1eb8") is None and matrix.nvswitch("10de:1eb8") is None
    assert not matrix.fabric_component("nvlsm").lockstep


def test_cuda(matrix):
    assert [matrix.cuda_max(version) for version in ("580.178.04", "470.182.03", "450.80.02", "595.91.07", "550")] == [
        "13.0",
        "11.4",
        "11.0",
        "13.2",
        "12.4",
    ]
    assert matrix.cuda("12.4").toolkit_min == "550.54.14" and matrix.cuda("12.4.1").version == "12.4.1"
    assert [matrix.cuda_family(major).min_driver for major in ("11.8", 12, "13")] == [
        "450.80.02",
        "525.60.13",
        "580.65.06",
    ]
    assert matrix.cuda_family(10).min_driver is None and matrix.cuda("9.0") is None
    assert "535" in matrix.cuda_compat("13.0.1").base_branches and matrix.cuda_max("garbage") is None


def test_frameworks(matrix):
    assert matrix.framework("pytorch", "2.7.1").version == "2.7"
    assert matrix.framework("PyTorch", "2.0").wheel_indexes == ("cu117", "cu118")
    assert matrix.framework("pytorch", "9.9") is None
    assert matrix.frameworks("pytorch")[0].version == "2.15" and matrix.frameworks("nothing") == ()
    assert matrix.framework("jax", "0.7.2").min_driver == "525.60.13"


def test_branches(matrix):
    assert matrix.branches()[0].name == "390" and matrix.branch("999") is None
    row = matrix.branch("580")
    assert (row.type, row.latest, row.first, row.security_floor) == ("lts", "580.178.04", "580.65.06", "580.159.03")
    assert row.supported_on(datetime.date(2028, 6, 30)) and not row.supported_on(datetime.date(2028, 7, 1))
    assert matrix.versions("580")[0].version == "580.178.04" and matrix.versions("999") == ()
    assert [row.id for row in matrix.open_bulletins("580.95.05")] == [5747, 5821]
    assert matrix.open_bulletins("580.178.04") == () and matrix.open_bulletins("garbage") == ()


PACKAGES = [
    ("debian", "12", "535", "proprietary", "535.309.01-0+deb12u1", "nvidia-kernel-dkms", "nvidia-current"),
    ("debian", "12", "535", "open", "535.261.03-1", "nvidia-open-kernel-dkms", "nvidia-current-open"),
    ("debian", "12", "470", "proprietary", "470.256.02-1~deb12u1", "nvidia-tesla-470-kernel-dkms", "nvidia-tesla-470"),
    ("debian", "13", "550", "open", "550.163.01-2", "nvidia-open-kernel-dkms", "nvidia-current-open"),
    ("debian", "13", "535", "proprietary", "535.274.02-1~deb13u1", "nvidia-tesla-535-kernel-dkms", "nvidia-tesla-535"),
]


@pytest.mark.parametrize(("os", "version", "branch", "flavour", "package_version", "package", "dkms"), PACKAGES)
def test_series_of_debian(matrix, os, version, branch, flavour, package_version, package, dkms):
    series = matrix.packaging(os, version, "x86_64").find(branch, "distro", flavour)[0]
    found = series.flavour(flavour)
    assert (series.package_version, found.source_package, found.dkms_name, found.module) == (
        package_version,
        package,
        dkms,
        dkms,
    )
    assert found.packages[0] == package and "nvidia-driver" not in found.packages


def test_series_of_other_systems(matrix):
    noble = matrix.packaging("ubuntu", "24.04", "x86_64")
    assert noble.find("570", "distro") == ()
    assert noble.find("570", "distro", transitional=True)[0].transitional_to == "580"
    assert noble.find("580", "nvidia", "open")[0].open.packages[0] == "nvidia-dkms-580-open"
    assert noble.find("595", "nvidia", "open")[0].open.packages[0] == "nvidia-dkms-open"
    assert noble.find("515", "nvidia") == ()
    assert noble.find("615", "nvidia")[0].proprietary is None
    server = noble.find("580", "distro", "open", "precompiled")[0].open
    assert server.precompiled == "linux-modules-nvidia-580-server-open-{release}"
    assert matrix.packaging("ubuntu", "26.04", "x86_64").find("580", "nvidia") == ()
    rocky = matrix.packaging("rocky", "9.5", "x86_64")
    series = rocky.find("580", flavour="open", method="dkms")[0]
    assert (series.package_pattern, series.open.stream) == ("3:{version}-1.el9", "580-open")
    assert matrix.packaging("rhel", "9.7", "x86_64").find("580", method="precompiled")[0].proprietary.precompiled == (
        "kmod-nvidia-{version}-{kernel}"
    )
    assert matrix.packaging("gentoo", "1", "x86_64") is None and matrix.packaging("debian", "12", "riscv64") is None


def test_lying_names(matrix):
    names = matrix.packaging("ubuntu", "24.04", "x86_64").lying
    import re

    assert {row.installs for row in names if re.fullmatch(row.name, "nvidia-driver-570-server-open")} == {"580"}
    assert [row for row in names if re.fullmatch(row.name, "nvidia-driver-580-server-open")] == []


def test_repositories_name_their_key(matrix):
    for os, version in (("debian", "12"), ("debian", "13"), ("ubuntu", "22.04"), ("rocky", "9.5"), ("sles", "15.6")):
        packaging = matrix.packaging(os, version, "x86_64")
        for repository in (packaging.driver_repository("nvidia"), packaging.toolkit_repository):
            key = repository.signing_key
            assert len(key.fingerprint) == 40 and key.url.startswith("https://") and key.path in repository.content
            assert "{" not in repository.content + key.url and "http" in repository.content
    arm = matrix.packaging("ubuntu", "24.04", "aarch64")
    assert (
        "/ubuntu2404/sbsa/" in arm.driver_repository("nvidia").content and "/arm64/" in arm.toolkit_repository.content
    )
    assert matrix.packaging("rhel", "10.0", "x86_64").driver_repository("nvidia").signing_key.fingerprint is None


def test_fabric_packages(matrix):
    jammy = matrix.packaging("ubuntu", "22.04", "x86_64")
    assert jammy.fabric_package("fabricmanager", "550.90.07").packages == ("nvidia-fabricmanager-550",)
    assert jammy.fabric_package("fabricmanager", "580.173.02").packages == ("nvidia-fabricmanager",)
    assert matrix.packaging("rocky", "9.5", "x86_64").fabric_package("fabricmanager", "570.1.1").packages == (
        "nvidia-fabric-manager",
    )
    assert matrix.packaging("debian", "13", "x86_64").fabric_package("fabricmanager", "550.163.01", "distro") is None


def test_container_runtimes(matrix):
    assert (matrix.toolkit_floor(), matrix.operator_floor()) == ("1.19.1", "26.3.2")
    assert [row.id for row in matrix.open_cves("nvidia-container-toolkit", "1.19.0")] == ["CVE-2026-24260"]
    assert matrix.open_cves("nvidia-container-toolkit", "1.20.1") == ()
    assert [
        matrix.containerd(version).config_version for version in ("1.6.20~ds1-1+deb12u3", "1.7.24", "2.0.4", "2.3.1")
    ] == [2, 2, 3, 4]
    assert matrix.containerd("9.9.9") is None
    assert (matrix.containerd_floor("1.7"), matrix.containerd_floor("2.3"), matrix.containerd_floor("1.6")) == (
        "1.7.33",
        "2.3.2",
        None,
    )
    assert matrix.runc_floor("1.3") == "1.3.6" and matrix.runc_floor("1.1") is None
    assert "CVE-2025-47290" not in [row.id for row in matrix.open_cves("containerd", "1.7.33")]
    assert matrix.open_cves("containerd", "garbage") == ()


def test_operator_and_kubernetes(matrix):
    assert matrix.operator("26.7.0").default_driver == matrix.operator("v26.7.0").default_driver == "595.91.07"
    assert matrix.operators()[0].version == "v26.7.0" and matrix.operator("1.0") is None
    assert "580.178.04" in matrix.operator("v26.3.3").drivers["580"]
    assert matrix.kubernetes("v1.34.2").containerd[0] == "2.1.3" and matrix.kubernetes("1.99") is None


def test_age(matrix):
    row = matrix.branch("580")
    assert row.age(row.checked + datetime.timedelta(days=90)) == 90
    assert matrix.oldest_check() <= row.checked
    assert matrix.unchecked_for(row.checked, 0) == {}
    assert matrix.unchecked_for(row.checked + datetime.timedelta(days=91), 90)["branches"] == len(matrix.branches())


def test_loading_is_cheap_and_questions_are_free(matrix):
    """CPU time, so that a busy machine does not decide. Loaded in a fresh interpreter."""
    code = (
        "import sys, time; sys.path.insert(0, 'tests'); import _bootstrap\n"
        "from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load\n"
        "start = time.process_time(); load(); print(time.process_time() - start)"
    )
    root = pathlib.Path(__file__).resolve().parents[4]
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout)
        for _attempt in range(2)
    )
    assert seconds < 0.7, f"load took {seconds:.2f} s of CPU"
    start = time.process_time()
    for _round in range(200):
        matrix.product("10de:2330", "10de:16c1")
        matrix.supports(matrix.product("10de:2330"), "580.178.04")
        matrix.kernel_fit("580.178.04", "open", "6.8.0-149-generic", "ubuntu", "24.04")
        matrix.packaging("ubuntu", "24.04", "x86_64").find("580", "nvidia", "open")
        matrix.cuda_max("580.178.04")
    each = (time.process_time() - start) / 1000
    assert each < 200e-6, f"a question took {each * 1e6:.0f} µs"
