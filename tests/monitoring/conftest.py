# SPDX-License-Identifier: GPL-3.0-or-later
"""The helpers of this directory are modules."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
