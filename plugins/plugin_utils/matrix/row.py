# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every row of the matrix has."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal

from .kinds import Date, Flag, Text

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fact with its origin.

    source: where it was read (a shared file of sources gives short names; rows hold the full text).
    checked: the day somebody last compared it with the source.
    confidence, unconfirmed: a low or unconfirmed row is shown but decides nothing by itself (``decides``).
    overlay: name of the overlay that set the row, None for the collection's own.
    """

    source: tuple[Text, ...]
    checked: Date
    confidence: Confidence = "high"
    unconfirmed: Flag = False
    note: Text | None = None
    overlay: Text | None = None

    @property
    def decides(self) -> bool:
        """True if a decision may rest on this row alone."""
        return self.confidence != "low" and not self.unconfirmed

    def age(self, today: datetime.date) -> int:
        """Days since the row was checked."""
        return (today - self.checked).days
