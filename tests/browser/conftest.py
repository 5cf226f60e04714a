# SPDX-License-Identifier: GPL-3.0-or-later
"""One browser for all tests of the page; without one they are skipped and say how to get it."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Chromium]:
    """A headless Chromium."""
    if chromium.found() is None:
        pytest.skip("there is no Chromium here: scripts/setup.sh installs it where apt has it")
    found = chromium.Chromium()
    yield found
    found.close()
