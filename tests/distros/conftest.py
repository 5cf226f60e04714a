# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of other distributions, in three states: as installed, with the kernel held, and staged by policy gated."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import distros


@pytest.fixture(scope="session")
def world() -> Iterator[distros.World]:
    """All of it, made once: what each command did in each state is looked up by the tests."""
    try:
        yield distros.World()
    finally:
        distros.lab("down")
