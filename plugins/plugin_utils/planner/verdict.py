# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings in their order, waivers, and the one word that a plan ends in."""

from __future__ import annotations

import fnmatch
from dataclasses import replace

from ..model.plan import SEVERITIES, Finding
from ..rules import registry
from ..rules.context import Context


def findings(context: Context) -> list[Finding]:
    """Return the findings, errors first; those of a waived rule become infos that name the waiver."""
    found = [_waive(context, finding) for finding in registry.inspect(context)]
    if any(finding.rule == "GPU007" and finding.severity == "error" for finding in found):
        found = [finding for finding in found if finding.rule != "GPU006"]  # no flavour runs all: told once
    unique = dict.fromkeys(found)
    return sorted(unique, key=lambda finding: (SEVERITIES.index(finding.severity), finding.rule))


def _waive(context: Context, finding: Finding) -> Finding:
    if finding.severity == "info" or finding.rule not in context.waived:
        return finding
    for waiver in context.wishes.findings_waived:
        valid = waiver["rule"] == finding.rule and waiver["until"] >= context.now
        if valid and fnmatch.fnmatchcase(context.name, waiver["host"]):
            words = f"{finding.severity} waived until {waiver['until']}: {waiver['reason']}"
            return replace(finding, severity="info", waived=words)
    return finding


def verdict(context: Context, found: list[Finding]) -> str:
    """Return blocked, change or ok."""
    if any(finding.severity == "error" for finding in found):
        return "blocked"
    return "change" if context.changes or context.pending else "ok"
