# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the lab keeps its things, and what the environment may change."""
from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT / "molecule" / "shared"
DEFAULT_NAME = "default"
FIRST_PORT = 22200
# Where hosts see the repository, the proved modules and the downloaded packages.
HOST_REPOSITORY = "/srv/baremetal-nvidia-lab"
HOST_ARCHIVE = "/srv/archive"  # of stand-ins for another distribution
HOST_MODULES = "/var/cache/baremetal-nvidia"
HOST_ARCHIVES = "/var/cache/apt/archives"


class LabError(Exception):
    """Something a person has to do; the message says what."""


@dataclass(frozen=True)
class Settings:
    """The settings of one lab; several labs may run side by side, each with its own name."""

    name: str
    first_port: int
    upstream: bool
    mirror: str
    cache: Path
    twins: Mapping[str, int] = field(default_factory=dict)  # host → how many of it there are: NAME, NAME-2, NAME-3

    @property
    def checkout(self) -> str:
        """A word for this checkout; two checkouts on one machine never share a container or a snapshot."""
        return "bmn-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:6]

    @property
    def prefix(self) -> str:
        """What the names of this lab's containers begin with."""
        return f"{self.checkout}-{self.name}-"

    @property
    def state(self) -> Path:
        """The folder of this lab."""
        return self.cache / "lab" / self.name

    @property
    def inventory(self) -> Path:
        """The folder of the inventory: inventories/lab for the lab people use, else beside its state."""
        return ROOT / "inventories" / "lab" if self.name == DEFAULT_NAME else self.state / "inventory"


def from_environment() -> Settings:
    """Read LAB_NAME, LAB_PORT, LAB_UPSTREAM, LAB_MIRROR, LAB_CACHE and LAB_TWINS."""
    name = os.environ.get("LAB_NAME") or DEFAULT_NAME
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii() or name != name.lower():
        raise LabError(f"LAB_NAME is {name!r}: small letters, digits, - and _ are allowed")
    port = os.environ.get("LAB_PORT") or str(FIRST_PORT)
    if not port.isdigit() or not 1024 <= int(port) <= 65000:
        raise LabError(f"LAB_PORT is {port!r}: a number from 1024 to 65000 is allowed")
    return Settings(
        name=name,
        first_port=int(port),
        upstream=os.environ.get("LAB_UPSTREAM", "0") not in ("", "0", "false", "no"),
        mirror=(os.environ.get("LAB_MIRROR") or "http://deb.debian.org").rstrip("/"),
        cache=Path(os.environ.get("LAB_CACHE") or ROOT / ".cache").absolute(),
        twins=_twins(os.environ.get("LAB_TWINS") or ""),
    )


def _twins(text: str) -> dict[str, int]:
    found = {}
    for word in text.split():
        name, _sign, count = word.partition("=")
        if not count.isdigit() or not 1 <= int(count) <= 64:
            raise LabError(f"LAB_TWINS is {text!r}: HOST=NUMBER is allowed, several with blanks between")
        found[name] = int(count)
    return found
