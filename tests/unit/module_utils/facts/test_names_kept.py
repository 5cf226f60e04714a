# SPDX-License-Identifier: GPL-3.0-or-later
"""Names without a branch: of each branch the newest version is reported, so that a move to it can be planned."""
from __future__ import annotations

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import names

OFFERED = ["3:595.91.07-1.el9", "3:595.71.05-1.el9", "3:580.178.04-1.el9", "3:580.159.03-1.el9", "3:570.211.01-1.el9"]


@pytest.mark.parametrize(("name", "wanted"), [
    ("nvidia-driver-cuda", [*OFFERED[:3], OFFERED[4]]),
    ("kmod-nvidia-open-dkms", [*OFFERED[:3], OFFERED[4]]),
    ("nvidia-dkms-open", [*OFFERED[:3], OFFERED[4]]),
    ("nvidia-dkms-580-open", OFFERED[:3]),
    ("kernel-core", OFFERED[:3]),
])
def test_newest_of_each_branch(name: str, wanted: list[str]) -> None:
    assert names.kept(name, OFFERED, 3) == wanted


def test_not_without_end() -> None:
    many = [f"{branch}.1-1" for branch in range(700, 500, -5)]
    assert len(names.kept("nvidia-driver-cuda", many, 3)) == 8
