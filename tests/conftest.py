# SPDX-License-Identifier: GPL-3.0-or-later
"""Let every test import the collection from the checkout."""
from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import _bootstrap  # noqa: F401  # pylint: disable=unused-import
