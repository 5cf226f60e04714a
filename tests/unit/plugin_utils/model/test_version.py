# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import itertools
import pickle
import shutil
import subprocess

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import version as v


def test_driver_versions_compare_by_number():
    assert v.parse("580.95.05") == (580, 95, 5)
    assert v.parse("535.98") < v.parse("535.104.05") < v.parse("535.183.01")
    assert v.parse("455.32.00") == v.parse("455.32")
    assert str(v.parse("580.126.09")) == "580.126.09"
    assert v.branch("580.126.09") == "580"


def test_driver_version_survives_copy_and_pickle():
    one = v.parse("580.95.05")
    assert copy.deepcopy(one).text == pickle.loads(pickle.dumps(one)).text == "580.95.05"


@pytest.mark.parametrize("text", ["", "580-server", "v580", "580.", "580.95.05-1", None, 580.95])
def test_what_is_no_driver_version_is_refused(text):
    with pytest.raises(ValueError, match="not a driver version"):
        v.DriverVersion(text)


@pytest.mark.parametrize(("package", "want"), [
    ("3:580.95.05-1.el9", "580.95.05"), ("535.183.01-0ubuntu0.22.04.1", "535.183.01"),
    ("550.163.01-4~bpo13+1", "550.163.01"), ("580.142-1ubuntu1", "580.142"),
    ("595-1ubuntu1", None), ("20250708-1", None)])
def test_upstream_of_a_package_version(package, want):
    assert v.upstream(package) == want


def test_loose_versions():
    assert v.loose("v26.3.2") == (26, 3, 2)
    assert v.loose("1.16.9") < v.loose("1.17.0-rc.1") < v.loose("1.17.0") < v.loose("1.17.0.1")
    with pytest.raises(ValueError, match="not a version"):
        v.loose("latest")


@pytest.mark.parametrize(("text", "version", "abi", "distro", "flavour"), [
    ("6.1.0-50-amd64", (6, 1, 0), (50,), None, "amd64"),
    ("6.1.0-50-cloud-amd64", (6, 1, 0), (50,), None, "cloud-amd64"),
    ("6.12.117+deb13-amd64", (6, 12, 117), (), "deb13", "amd64"),
    ("6.12.9+bpo-amd64", (6, 12, 9), (), "bpo", "amd64"),
    ("6.1.0-0.deb11.21-amd64", (6, 1, 0), (0, 21), "deb11", "amd64"),
    ("5.15.0-113-generic", (5, 15, 0), (113,), None, "generic"),
    ("6.17.0-1008-nvidia-64k", (6, 17, 0), (1008,), None, "nvidia-64k"),
    ("5.14.0-503.40.1.el9_5.x86_64", (5, 14, 0), (503, 40, 1), "el9_5", ""),
    ("5.14.0-503.40.1.el9_5.aarch64+64k", (5, 14, 0), (503, 40, 1), "el9_5", "64k"),
    ("4.18.0-553.el8_10.x86_64", (4, 18, 0), (553,), "el8_10", ""),
    ("6.4.0-150600.23.47-default", (6, 4, 0), (150600, 23, 47), None, "default"),
    ("6.8.12-15-pve", (6, 8, 12), (15,), None, "pve"),
    ("6.19.6-custom", (6, 19, 6), (), None, "custom"),
    ("7.3.0", (7, 3, 0), (), None, "")])
def test_kernel_releases(text, version, abi, distro, flavour):
    got = v.KernelRelease.parse(text)
    assert (got.version, got.abi, got.distro, got.flavour) == (version, abi, distro, flavour)


def test_kernel_releases_sort_by_number():
    releases = ["5.15.0-113-generic", "5.15.0-94-generic", "6.8.0-9-generic", "6.12.117+deb13-amd64",
                "6.12.95+deb13-amd64"]
    assert sorted(releases, key=lambda text: v.KernelRelease.parse(text).key) == [
        "5.15.0-94-generic", "5.15.0-113-generic", "6.8.0-9-generic", "6.12.95+deb13-amd64", "6.12.117+deb13-amd64"]


@pytest.mark.parametrize("text", ["", "generic", "-amd64", None])
def test_what_is_no_kernel_release_is_refused(text):
    with pytest.raises(ValueError, match="not a kernel release"):
        v.KernelRelease.parse(text)


DEB = ["1.0", "1:1.0", "1.0-1", "1.0-1~bpo12+1", "1.0~rc1", "1.0+deb12u1", "550.163.01-2", "550.163.01-4~bpo13+1",
       "1.0a", "1.7.24~ds1-6+deb13u1", "1.7.24-1", "1.0-10", "1.0-9", "1.0-9+b4"]


@pytest.mark.skipif(not shutil.which("dpkg"), reason="dpkg is not installed here")
def test_deb_compare_agrees_with_dpkg():
    for left, right in itertools.product(DEB, DEB):
        word = {-1: "lt", 0: "eq", 1: "gt"}[v.deb_compare(left, right)]
        assert subprocess.call(["dpkg", "--compare-versions", left, word, right]) == 0, (left, word, right)


@pytest.mark.parametrize(("left", "right", "want"), [
    ("1.0", "1.0", 0), ("1.10", "1.9", 1), ("3:580.95.05-1.el9", "3:580.126.09-1.el9", -1), ("1:1.0-1", "2.0-1", 1),
    ("1.0~rc1", "1.0", -1), ("1.0^git1", "1.0", 1), ("1.0^git1", "1.0.1", -1), ("1.0a", "1.0", 1), ("1.a", "1.1", -1),
    ("5.14.0-503.40.1.el9_5", "5.14.0-503.9.1.el9_5", 1), ("1.0", "1.0-7.el9", 0), ("2.0.1", "2.0", 1)])
def test_rpm_compare(left, right, want):
    assert v.rpm_compare(left, right) == want
    assert v.rpm_compare(left=right, right=left) == -want


def test_compare_goes_by_package_manager():
    assert v.compare("1.0-1~bpo1", "1.0-1", "apt") == -1
    assert sorted(["3:2-1", "3:10-1"], key=v.sort_key("dnf")) == ["3:2-1", "3:10-1"]


GARBAGE = ["", "x", None, 580.95, [], "9" * 5000, "580..1", "1.2\n", "\u0663.1", "6.1.0-" + "1" * 4000]


@pytest.mark.parametrize("value", GARBAGE)
def test_nothing_makes_try_parse_raise(value):
    assert v.try_parse(value) is None
    v.KernelRelease.try_parse(value)
    v.try_loose(value)
    v.upstream(value)


@pytest.mark.parametrize("function", [v.deb_compare, v.rpm_compare])
def test_texts_that_are_no_versions_still_have_an_order(function):
    for left, right in itertools.product(["x:1", ":", "1:", "", "~", "9" * 5000, "-"], repeat=2):
        swapped = (right, left)
        assert function(left, right) == -function(*swapped)
