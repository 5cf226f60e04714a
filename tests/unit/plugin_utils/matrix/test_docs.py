# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/matrix.md shows what works: its overlays load, its sections are all of them, its answers are given."""

from __future__ import annotations

import pathlib
import re

import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix.schema import SECTIONS

TEXT = (pathlib.Path(__file__).resolve().parents[4] / "docs" / "matrix.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.S)]


def test_the_overlays_of_the_page_load():
    (variables,) = [block for block in BLOCKS if "gpu_matrix_overlay" in block]
    (site,) = [block for block in BLOCKS if isinstance(block, dict) and block.get("name") == "site"]
    inline = [row for row in variables["gpu_matrix_overlay"] if isinstance(row, dict)]
    matrix = load([site, *inline])
    assert matrix.version("580.95.05").known_bad == ("hangs in our burn-in",)
    assert matrix.kernel_fit("580.178.04", "open", "6.12.97-ours", "debian", "13").overlays == ("site",)
    assert matrix.product("10de:25b6", "10de:15aa").name == "A16 of our vendor"


def test_the_page_names_every_section():
    assert [section for section in SECTIONS if f"`{section}`" not in TEXT] == []


def test_the_answers_of_the_page(matrix):
    assert matrix.supports(matrix.product("10de:1db5"), "595").why in TEXT
    assert "575.57.08" in matrix.kernel_fit("575.57.08", "open", "6.17.0-1008-nvidia-64k", "ubuntu", "24.04").why
