# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The new text of each file that a decision changes."""
from __future__ import annotations

from collections.abc import Mapping

from .editing import edited
from .result import Decision

__all__ = ["edited", "render"]


def render(decision: Decision, files: Mapping[str, str]) -> dict[str, str | None]:
    """The text of every file the decision changes, None for one that goes. Raises Refusal if an edit is not safe."""
    texts: dict[str, str | None] = {}
    for edit in decision.edits:
        start = decision.base.get(edit.path, files.get(edit.path))
        texts[edit.path] = None if edit.delete else edited(edit, start)
    return texts | {path: text for path, text in decision.base.items() if path not in texts}
