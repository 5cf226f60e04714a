# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions compare by what they mean."""
from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import version as v


@pytest.mark.parametrize(
    ("text", "numbers"), [("580.95.05", (580, 95, 5)), ("580.142", (580, 142)), ("12.4", (12, 4)), ("6", (6,))]
)
def test_parse(text: str, numbers: tuple[int, ...]) -> None:
    assert v.parse(text) == numbers


@pytest.mark.parametrize("junk", ["", "580.", "a.b", "580.95.05-1", " 580", None, 2.1, 580, ["580"], "5" * 100, "٥.٨"])
def test_no_version(junk: object) -> None:
    assert v.try_parse(junk) is None
    with pytest.raises(v.VersionError, match="no version"):
        v.parse(junk)


def test_driver_order() -> None:
    assert v.parse("580.142") > v.parse("580.126.20") > v.parse("580.95.05")
    assert v.parse("450.80.02") > v.parse("450.51.06")


@pytest.mark.parametrize(
    ("release", "upstream", "abi", "suffix"),
    [
        ("5.15.0-113-generic", (5, 15, 0), (113,), "generic"),
        ("6.12.117+deb13-amd64", (6, 12, 117), (), "+deb13-amd64"),
        ("6.1.0-50-amd64", (6, 1, 0), (50,), "amd64"),
        ("5.14.0-503.40.1.el9_5.x86_64", (5, 14, 0), (503, 40, 1), "el9_5.x86_64"),
        ("6.17.0-1008-nvidia-64k", (6, 17, 0), (1008,), "nvidia-64k"),
        ("6.4.0-150600.23.25-default", (6, 4, 0), (150600, 23, 25), "default"),
        ("6.8.12-15-pve", (6, 8, 12), (15,), "pve"),
    ],
)
def test_kernel_release(release: str, upstream: tuple[int, ...], abi: tuple[int, ...], suffix: str) -> None:
    parsed = v.KernelVersion.parse(release)
    assert (parsed.upstream, parsed.abi, parsed.suffix) == (upstream, abi, suffix)


def test_kernel_order_and_junk() -> None:
    older, newer = v.KernelVersion.parse("5.15.0-112-generic"), v.KernelVersion.parse("5.15.0-113-generic")
    assert older < newer
    assert v.KernelVersion.try_parse("vmlinuz") is None
    assert v.KernelVersion.try_parse(6.1) is None
    with pytest.raises(v.VersionError, match="kernel release"):
        v.KernelVersion.parse("generic")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3:580.178.04-1.el9", "580.178.04"),
        ("550.163.01-4~bpo13+1", "550.163.01"),
        ("580.178.04-0ubuntu0.24.04.1", "580.178.04"),
        ("junk", None),
        (7, None),
    ],
)
def test_upstream(text: object, found: str | None) -> None:
    assert v.upstream(text) == found


DEB = [
    ("6.1.176-1", "6.1.99-1", 1),
    ("6.12.117-1~bpo13+1", "6.12.117-1", -1),
    ("5.15.0.113.113", "5.15.0.113.113", 0),
    ("1:1.0-1", "2.0-1", 1),
    ("550.163.01-2", "550.163.01-4~bpo13+1", -1),
    ("2.8.7-2ubuntu2.2", "2.8.7-2ubuntu2", 1),
    ("580.178.04-0ubuntu0.24.04.1", "580.178.04-1ubuntu1", -1),
    ("1.0~rc1-1", "1.0-1", -1),
]


@pytest.mark.parametrize(("left", "right", "sign"), DEB)
def test_deb_compare(left: str, right: str, sign: int) -> None:
    assert v.deb_compare(left, right) == sign
    assert v.deb_compare(right, left) == -sign


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no dpkg here to compare with")
@pytest.mark.parametrize(("left", "right", "sign"), DEB)
def test_dpkg_agrees(left: str, right: str, sign: int) -> None:
    word = {-1: "lt", 0: "eq", 1: "gt"}[sign]
    assert subprocess.run(["dpkg", "--compare-versions", left, word, right], check=False).returncode == 0


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        ("5.14.0-687.12.1.el9_8", "5.14.0-503.40.1.el9_5", 1),
        ("3:580.178.04-1.el9", "580.178.04-1.el9", 1),
        ("1.0~rc1-1", "1.0-1", -1),
        ("1.0^git1-1", "1.0-1", 1),
        ("1.0a-1", "1.0.1-1", -1),
        ("2.1-2.el9", "2.1-2.el9", 0),
    ],
)
def test_rpm_compare(left: str, right: str, sign: int) -> None:
    assert v.rpm_compare(left, right) == sign
    assert v.package_compare(right, left, "dnf") == -sign
