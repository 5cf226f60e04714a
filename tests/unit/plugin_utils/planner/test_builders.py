# SPDX-License-Identifier: GPL-3.0-or-later
"""Built once: the first host of a shape builds, what is stored is built by nobody."""
from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.baremetal.nvidia.plugins.filter.gpu_builders import gpu_builders


def look(*shapes: str, how: str = "needs_build") -> list[dict[str, Any]]:
    return [{"kernel": f"6.1.0-{index}-amd64", "shape": shape, "how": how} for index, shape in enumerate(shapes)]


def test_the_first_of_a_shape_builds_for_the_others() -> None:
    looks = {f"gpu-{index}": look("aaa", "bbb") for index in range(8)} | {"other": look("ccc")}
    assert gpu_builders(looks) == {"gpu-0": ["aaa", "bbb"], "other": ["ccc"]}


def test_each_kernel_counts_for_itself() -> None:
    assert gpu_builders({"a": look("aaa"), "b": look("aaa", "bbb"), "c": look("bbb")}) == {"a": ["aaa"], "b": ["bbb"]}


def test_what_is_stored_installed_or_unknown_is_built_by_nobody() -> None:
    stored = [f"/home/x/nvidia-535.261.03_6.1.0-50-amd64_aaa_{'0' * 64}.tar.gz", "/home/x/readme"]
    looks = {"a": look("aaa"), "b": look("bbb", how="installed"), "d": [],
             "c": [{"kernel": "6", "shape": None, "how": "needs_build"}]}
    assert gpu_builders(looks, stored) == {}


def test_a_mistake_is_told() -> None:
    with pytest.raises(AnsibleFilterError, match="a dictionary of hosts"):
        gpu_builders(["a"])
