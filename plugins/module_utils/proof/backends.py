# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a proof gets packages from: the package manager of the host at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, ClassVar, Protocol

from ..facts.kmps import Symbols
from ..packages import detect
from .apt import Apt, Offer
from .rpm import Dnf, Zypper

Runner = Callable[..., Any]


class Source(Protocol):
    """What is asked of a package manager, or of the files that stand before one.

    ``offered`` and ``way_out`` end sentences: "it is not ``offered``: ``way_out``".
    """

    offered: ClassVar[str]
    way_out: ClassVar[str]

    def installed(self, name: str) -> str | None:
        """The installed version of a package, None unless it is completely installed."""

    def headers_name(self, release: str) -> str:
        """The package with the headers of a kernel."""

    def offer(self, name: str, version: str | None = None) -> Offer | None:
        """What is on offer of a package, at ``version`` or the manager's own choice; None for nothing."""

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        """Fetch packages at exact versions into a directory; their paths. Raises ProofError."""

    def unpack(self, package: str, into: str) -> None:
        """Open a package file, running none of its scripts. Raises ProofError."""

    def required_symbols(self, package: str) -> Symbols:
        """What a package file asks of the kernel's symbols, by the names of rpm; empty where packages name none."""

    def provided_symbols(self, release: str) -> Symbols:
        """What the packages say of a kernel's symbols, by the same names; empty where they say nothing."""


def backend(run: Runner, root: str = "/") -> Source:
    """The source for what the host has; apt's where that cannot be told."""
    name = detect.detect(root)
    if name == "dnf":
        return Dnf(run, root)
    return Zypper(run, root) if name == "zypper" else Apt(run)
