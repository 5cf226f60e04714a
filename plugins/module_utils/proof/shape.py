# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a build depends on. Two hosts with the same shape can use the same module files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Shape:
    """Everything that goes into a build. ``sources``: source package -> exact version."""

    distribution: str  # debian-12
    arch: str  # x86_64
    kernel: str  # 6.1.0-50-amd64
    headers: str  # version of the headers package
    compiler: str  # gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0
    driver: str  # 535.261.03
    flavour: str  # open|proprietary
    dkms_name: str  # nvidia-current
    sources: Mapping[str, str]

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "sources": dict(self.sources)}

    @property
    def digest(self) -> str:
        """The first 16 hex digits of the SHA-256 of the shape as canonical JSON."""
        text = json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def distribution(os_release: str) -> str:
    """``id-version`` from the text of /etc/os-release; rolling releases have no version and give the bare id."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line and not line.startswith("#"))
    parts = [fields.get(key, "").strip().strip("\"'") for key in ("ID", "VERSION_ID")]
    return "-".join(part for part in parts if part) or "unknown"
