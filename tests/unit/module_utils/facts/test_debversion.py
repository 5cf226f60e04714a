# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of Debian's versions, as dpkg has it."""

from __future__ import annotations

import functools
import shutil
import subprocess

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import debversion


@pytest.mark.parametrize(
    "versions",
    [
        ["1.0~rc1", "1.0", "1.0-1", "1.0-1+b1", "1.0a", "1.0+x", "1.1", "1.10", "1:0.5"],
        ["535.216.03-2~bpo12+1", "535.216.03-2", "535.261.03-1", "535.309.01-0+deb12u1"],
        ["6.1.176-1", "6.1.192-3", "6.12.117-1", "7.2.12-1"],
        ["1.6.20~ds1-1", "1.6.20~ds1-1+deb12u2", "1.6.20~ds1-1+deb12u3", "1.6.20"],
    ],
)
def test_order_of_versions(versions):
    shuffled = versions[::2][::-1] + versions[1::2]
    assert sorted(shuffled, key=functools.cmp_to_key(debversion.compare)) == versions
    for older, newer in zip(versions, versions[1:]):
        assert debversion.compare(older, newer) < 0 < debversion.compare(newer, older)
        if shutil.which("dpkg"):
            assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=False).returncode == 0


def test_equal_versions():
    assert debversion.compare("1.0", "0:1.0") == 0 and debversion.compare("1.00", "1.0") == 0
