# SPDX-License-Identifier: GPL-3.0-or-later
"""Let the flow tests import their world."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
