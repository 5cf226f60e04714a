# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names belong to a kernel family, and the two files of apt."""
from __future__ import annotations

import pathlib
import re

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import apt_files, families


@pytest.mark.parametrize("name, part", [
    ("linux-image-amd64", "image"),
    ("linux-image-6.1.0-50-amd64", "image"),
    ("linux-image-unsigned-6.8.0-60-generic", "image"),
    ("linux-image-cloud-amd64", "image"),
    ("linux-image-6.1.0-50-amd64-dbg", None),
    ("linux-headers-amd64", "headers"),
    ("linux-headers-6.8.0-60-generic", "headers"),
    ("linux-headers-6.1.0-50-common", None),
    ("linux-headers-6.1.0-50-common-rt", None),
    ("linux-modules-6.8.0-60-generic", "modules"),
    ("linux-modules-extra-6.8.0-60-generic", "modules"),
    ("linux-modules-nvidia-580-server-generic", "modules"),
    ("linux-generic", "meta"),
    ("linux-generic-hwe-22.04", "meta"),
    ("linux-nvidia-64k-hwe-24.04", "meta"),
    ("linux-aws", "meta"),
    ("linux-aws-6.8-tools-6.8.0-1029", "tools"),
    ("linux-tools-6.8.0-60-generic", "tools"),
    ("linux-tools-generic-hwe-24.04", "tools"),
    ("linux-cloud-tools-virtual", "tools"),
    ("linux-tools-host", None),
    ("linux-lowlatency-hwe-22.04", "meta"),
    ("linux-oracle", "meta"),
    ("linux-image-rt-amd64", "image"),
    ("linux-libc-dev", None),
    ("linux-kbuild-6.1", None),
    ("linux-compiler-gcc-12-x86", None),
    ("linux-tools-common", None),
    ("linux-base", None),
    ("linux-base-amd64", "image"),
    ("linux-base-7.2.12+deb14-amd64", "image"),
    ("linux-binary-7.2.12+deb14-amd64", "image"),
    ("linux-modules-7.2.12+deb14-amd64", "modules"),
    ("linux-headers-7.2.12+deb14-common", None),
    ("linux-kbuild-7.2.12+deb14", None),
    ("bash", None),
    ("kernel", "meta"),
    ("kernel-core", "image"),
    ("kernel-modules", "modules"),
    ("kernel-modules-core", "modules"),
    ("kernel-modules-extra", "modules"),
    ("kernel-modules-internal", "modules"),
    ("kernel-modules-extra-matched", "modules"),
    ("kernel-devel", "headers"),
    ("kernel-devel-matched", "headers"),
    ("kernel-headers", None),
    ("kernel-tools", "tools"),
    ("kernel-tools-libs", "tools"),
    ("kernel-uki-virt", "image"),
    ("kernel-uki-virt-addons", "image"),
    ("kernel-rt", "image"),
    ("kernel-rt-core", "image"),
    ("kernel-rt-devel", "headers"),
    ("kernel-rt-modules-extra", "modules"),
    ("kernel-64k", "meta"),
    ("kernel-64k-core", "image"),
    ("kernel-64k-modules-core", "modules"),
    ("kernel-64k-debug-core", "image"),
    ("kernel-debug-devel", "headers"),
    ("kernel-uek-core", "image"),
    ("kernel-ml", "meta"),
    ("kernel6.12", "image"),
    ("kernel6.12-devel", "headers"),
    ("kernel-default", "image"),
    ("kernel-default-base", "image"),
    ("kernel-default-devel", "headers"),
    ("kernel-default-extra", "modules"),
    ("kernel-default-livepatch", "modules"),
    ("kernel-azure", "image"),
    ("kernel-azure-devel", "headers"),
    ("kernel-devel-azure", "headers"),
    ("kernel-source", "headers"),
    ("kernel-syms", "headers"),
    ("kernel-macros", "headers"),
    ("kernel-firmware", None),
    ("kernel-firmware-nvidia", None),
    ("kernel-doc", None),
    ("kernel-abi-stablelists", None),
    ("kernel-srpm-macros", None),
    ("kernel-rpm-macros", None),
    ("kernelshark", None),
    ("kernel-install-tool", None),
])
def test_kernel_part(name: str, part: str | None) -> None:
    assert families.kernel_part(name) == part


DATA = pathlib.Path(__file__).parents[4] / "plugins/plugin_utils/matrix/data"


@pytest.mark.parametrize("system", ["debian", "ubuntu", "el", "sles"])
def test_the_matrix_names_the_same_families(system: str) -> None:
    """Host and planner hold by names here; what a person reads in the matrix must not say otherwise."""
    for row in yaml.safe_load((DATA / f"packaging_{system}.yml").read_text())["kernel_packaging"]:
        for name in [*row["metas"], *row["headers_metas"], *row.get("extra_patterns", [])]:
            assert families.kernel_part(name.replace("{release}", "5.14.0-1-x")) not in (None, "tools"), name
        for name in row["keep_moving"]:
            plain = name.replace(".*", "")
            assert families.kernel_part(plain) in (None, "tools"), name


def test_a_pin_about_something_else_misses_nothing() -> None:
    assert families.missing_from_pin(["containerd"], ["linux-image-amd64", "containerd"]) == []


def test_no_names_no_files() -> None:
    assert apt_files.preferences([]) == "" and apt_files.unattended([]) == ""


def test_order_and_repetition_make_no_difference() -> None:
    assert apt_files.preferences(["b", "a", "b"]) == apt_files.preferences(["a", "b"])
    assert apt_files.unattended(["b"], ["a"]) == apt_files.unattended(["a", "b", "b"])


@pytest.mark.parametrize("name, matches, spares", [
    ("linux-image-amd64", "linux-image-9.9-amd64", "linux-libc-dev"),
    ("libstdc++6", "libstdc++6", "libstdc++6-dev"),
    ("nvidia-*", "nvidia-smi", "libnvidia-ml1"),
    ("linux-generic-hwe-22.04", "linux-generic-hwe-22.04", "linux-generic-hwe-22x04"),
    ("linux-base-amd64", "linux-base-7.2.12+deb14-amd64", "linux-base"),
])
def test_exclusions_match_as_unattended_upgrades_does(name: str, matches: str, spares: str) -> None:
    """It calls re.match with each entry."""
    entries = re.findall(r'^  "(.*)";$', apt_files.unattended([name]), re.M)
    assert any(re.match(entry, matches) for entry in entries)
    assert not any(re.match(entry, spares) for entry in entries)


def test_patterns_match_whole_names() -> None:
    (entry,) = re.findall(r'^  "(.*)";$', apt_files.unattended([], [], [r"nvidia-smi|libcuda1"]), re.M)
    assert re.match(entry, "libcuda1") and not re.match(entry, "libcuda1-i386")


def test_each_set_has_files_of_its_own() -> None:
    assert apt_files.preferences_path() == "/etc/apt/preferences.d/baremetal-nvidia"
    assert apt_files.preferences_path("driver") == "/etc/apt/preferences.d/baremetal-nvidia-driver"
    assert apt_files.auto_upgrades_path("driver") != apt_files.auto_upgrades_path()
