# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix.ranges import (
    DriverRange,
    KernelRange,
    RangeError,
)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("535", ["535.54.03", "535.309.01"], ["530.41.03", "545.23.06", "not a version"]),
        ("580.95.05", ["580.95.05"], ["580.95.06", "580.95"]),
        (">=535.161.07,<550", ["535.161.07", "545.29.06"], ["535.161.06", "550.40.07"]),
        ("<=450.80.02", ["450.80.02", "440.33.01", "450.80"], ["450.80.03"]),
        ("<=535.183", ["535.183.06", "535.183.01"], ["535.216.01"]),
        (">535.183", ["535.216.01"], ["535.183.06", "535.183"]),
        ("*", ["390.12", "620.1"], []),
    ],
)
def test_driver_ranges(text, inside, outside):
    one = DriverRange.parse(text)
    assert [version for version in inside if version not in one] == []
    assert [version for version in outside if version in one] == []
    assert str(one) == text


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("6.12", ["6.12.117+deb13-amd64", "6.12.0-55.9.1.el10_0.x86_64"], ["6.1.0-50-amd64", "6.120.1"]),
        (">=6.12.97,<6.13", ["6.12.97", "6.12.117+deb13-amd64"], ["6.12.95+deb12-amd64", "6.13.0-1-generic"]),
        (
            ">=5.14.0-687",
            ["5.14.0-687.12.1.el9_8.x86_64", "5.14.0-700.el9.x86_64", "5.15.0-1-generic"],
            ["5.14.0-611.30.1.el9_7.x86_64", "5.14.0"],
        ),
        ("5.14.0-503", ["5.14.0-503.40.1.el9_5.x86_64"], ["5.14.0-570.1.1.el9_6.x86_64", "5.14.0"]),
        (">=7.1", ["7.1.3+deb13-amd64", "7.3.4"], ["7.0.13+deb13-amd64", "garbage"]),
    ],
)
def test_kernel_ranges(text, inside, outside):
    one = KernelRange.parse(text)
    assert [release for release in inside if release not in one] == []
    assert [release for release in outside if release in one] == []


@pytest.mark.parametrize("text", [">=550,<535", ">550,<=550", ">=550,<550", ">=535.161.07,<535.161", "<1,>=2"])
def test_ranges_upside_down(text):
    with pytest.raises(RangeError, match="upside down"):
        DriverRange.parse(text)


@pytest.mark.parametrize("text", ["", "R535", ">=", "=535", "535,545", "535,>=1", ">=x"])
def test_what_is_no_range(text):
    with pytest.raises(RangeError):
        DriverRange.parse(text)


@pytest.mark.parametrize("text", [">=550,<=550", ">=550.1,<551", ">=550,<550.1"])
def test_narrow_ranges_are_fine(text):
    assert DriverRange.parse(text)


OVERLAPS = {
    ("535", ">=535.100,<536"): True,
    ("535", "545"): False,
    ("<580", ">=580"): False,
    ("<=580", "580.95.05"): True,
    (">=1,<3", ">=2,<4"): True,
    (">=1,<2", ">=2,<3"): False,
    ("*", "535"): True,
    (">535", "535.54.03"): False,
    ("535.54.03", "535"): True,
}


@pytest.mark.parametrize(("pair", "want"), OVERLAPS.items())
def test_overlaps(pair, want):
    one, two = map(DriverRange.parse, pair)
    assert one.overlaps(two) is want and two.overlaps(one) is want


def test_overlap_agrees_with_membership():
    """Whatever version lies in both ranges of a pair makes them overlap."""
    texts = ["535", "535.54.03", ">=535.161.07,<550", "<=450.80.02", "<=535.183", ">535.183", ">=580", "*"]
    versions = ["440.1", "450.80.02", "535.54.03", "535.161.07", "535.183.06", "545.1.1", "550.1", "580.65.06", "600"]
    for left, right in itertools.product(texts, repeat=2):
        one, two = DriverRange.parse(left), DriverRange.parse(right)
        if any(version in one and version in two for version in versions):
            assert one.overlaps(two), (left, right)
