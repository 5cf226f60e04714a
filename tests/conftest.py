# SPDX-License-Identifier: GPL-3.0-or-later
"""Let every test import the collection from the checkout."""
from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import _bootstrap  # noqa: F401  # pylint: disable=unused-import


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a parameter of bytes by its size: compressed ones hold the time, and workers must agree on names."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None
