# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs by the names that people use, and what is said when no card has the name."""

from __future__ import annotations

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import gpu_names
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load

MATRIX = load()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("10de:1eb8", {"Tesla T4"}),
        ("10DE:1EB8", {"Tesla T4"}),
        ("T4", {"Tesla T4"}),
        ("Tesla T4", {"Tesla T4"}),
        ("NVIDIA L4", {"L4"}),
        ("l40s", {"L40S"}),
        ("A10", {"A10"}),
        ("rtx5090", {"GeForce RTX 5090", "GeForce RTX 5090 D", "GeForce RTX 5090 D V2"}),
        ("A100 80GB", {"A100 80GB PCIe", "A100-SXM4-80GB"}),
        ("v100-pcie", {"Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB"}),
        ("k80", {"Tesla K80"}),
        ("Quadro RTX 6000", {"Quadro RTX 6000"}),
    ],
)
def test_names(name: str, found: set[str]) -> None:
    assert {one.name for one in gpu_names.find(MATRIX, name)} == found


def test_a_family_is_all_its_cards_that_drivers_know() -> None:
    found = gpu_names.find(MATRIX, "H100")
    assert len(found) > 3 and all(one.known and "H100" in one.name for one in found)
    assert [one.id for one in found] == sorted(one.id for one in found)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("H1000", "nearest are H100"),
        ("L4O", "L4"),
        ("telsa v10", "Tesla"),
        ("8086:1234", "no PCI id of NVIDIA"),
        ("10de:zzzz", "no PCI id of NVIDIA"),
        ("10de:0000", "no list knows"),
        ("", "such as H100"),
        ("!!", "such as H100"),
        ("x" * 3000, "such as H100"),
    ],
)
def test_misses(name: str, says: str) -> None:
    with pytest.raises(gpu_names.UnknownGpu, match=says):
        gpu_names.find(MATRIX, name)
