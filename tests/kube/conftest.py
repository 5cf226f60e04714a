# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster for each test: the emulator in this process, a stand-in chart, and hosts as stored facts."""

from __future__ import annotations

import inspect
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cluster import Cluster


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Begin with the tests that run the playbook most often, so that no worker waits long for the other at the end."""
    items.sort(key=lambda item: inspect.getsource(item.function).count("cluster.run("), reverse=True)


@pytest.fixture(name="cluster")
def _cluster(tmp_path: pathlib.Path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()
