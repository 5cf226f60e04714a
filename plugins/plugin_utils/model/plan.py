# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan is made of: findings and changes, in the shape of docs/design.md, section 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should know: the thing, the reason and the way out."""

    rule: str
    severity: Severity
    subject: str
    summary: str
    remedy: str
    sources: tuple[str, ...]
    waived: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the finding in the shape of the plan."""
        shape: dict[str, Any] = {
            "rule": self.rule,
            "severity": self.severity,
            "subject": self.subject,
            "summary": self.summary,
            "remedy": self.remedy,
            "sources": list(self.sources),
        }
        if self.waived is not None:
            shape["waived"] = self.waived
        return shape


Disruption = Literal["none", "daemon_reload", "restart", "reboot"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs between the host and the decisions; ``needs`` names the variable that gives leave."""

    role: str
    action: str
    target: str
    before: Any
    after: Any
    disruption: Disruption = "none"
    needs: str | None = None
    why: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the change in the shape of the plan."""
        shape = {
            "role": self.role,
            "action": self.action,
            "target": self.target,
            "before": self.before,
            "after": self.after,
            "disruption": self.disruption,
        }
        if self.needs is not None:
            shape["needs"] = self.needs
        if self.why is not None:
            shape["why"] = self.why
        return shape
