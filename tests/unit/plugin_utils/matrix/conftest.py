# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix under test, and the facts of peers where a checkout has them beside it."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix.loader import DATA

PEERS = pathlib.Path(__file__).resolve().parents[4].parent / "shared" / "facts" / "debian_pci_ids"


@pytest.fixture(scope="session")
def matrix():
    return load()


@pytest.fixture(scope="session")
def data_files():
    return sorted(DATA.glob("*.yml"))


@pytest.fixture(scope="session")
def peers():
    if not PEERS.is_dir():
        pytest.skip(f"no id lists of peers at {PEERS}: they are not part of the collection")
    return PEERS
