# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetching and opening Debian packages without installing them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, ClassVar

from .errors import ProofError

Runner = Callable[..., Any]
_DEPENDS = re.compile(r"^Depends:(.*)$", re.MULTILINE)
_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)
OFFERED, WAY_OUT = "offered by this host's package sources", "refresh the package lists"


@dataclass(frozen=True)
class Offer:
    """One version of a package in the configured sources, with the names it depends on (first alternatives)."""

    name: str
    version: str
    depends: tuple[str, ...]


class Apt:
    """The questions a proof asks of apt and dpkg. Each raises ProofError with apt's own words when it fails."""

    offered: ClassVar[str] = OFFERED
    way_out: ClassVar[str] = WAY_OUT

    def __init__(self, run: Runner, download_timeout: float = 900) -> None:
        self.run = run
        self.download_timeout = download_timeout

    def installed(self, name: str) -> str | None:
        """The installed version of ``name``; None unless it is completely installed."""
        result = self.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Version}\n", name], timeout=30)
        for line in result.out.splitlines() if result.rc == 0 else []:
            status, _bar, version = line.partition("|")
            if status.startswith(("ii", "hi")):
                return str(version)
        return None

    def headers_name(self, release: str) -> str:
        """See :class:`.backends.Source`: Debian's and Ubuntu's name."""
        return f"linux-headers-{release}"

    def offer(self, name: str, version: str | None = None) -> Offer | None:
        """What the sources offer for ``name``, at ``version`` or apt's candidate; None when they do not have it."""
        if version is None:
            policy = self.run(["apt-cache", "policy", name], timeout=60)
            match = re.search(r"Candidate:\s*(\S+)", policy.out)
            if policy.rc != 0 or match is None or match.group(1) == "(none)":
                return None
            version = str(match.group(1))
        shown = self.run(["apt-cache", "show", f"{name}={version}"], timeout=60)
        if shown.rc != 0 or _VERSION.search(shown.out) is None:
            return None
        depends = _DEPENDS.search(shown.out)
        names = [
            part.split("|")[0].split("(")[0].split(":")[0].strip()
            for part in (depends.group(1) if depends else "").split(",")
        ]
        return Offer(name=name, version=version, depends=tuple(item for item in names if item))

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        """Fetch packages at exact versions into ``into``, checked by apt against its signed lists; their paths."""
        before = set(os.listdir(into))
        specs = [f"{name}={version}" for name, version in sorted(wanted.items())]
        result = self.run(
            ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download", *specs],
            timeout=self.download_timeout,
            cwd=into,
        )
        if result.rc != 0:
            said = [line for line in (result.err + result.out).splitlines() if line.startswith("E:")]
            why = "; ".join(said) or ("it took too long" if result.timed_out else f"status {result.rc}")
            raise ProofError(
                f"cannot fetch {', '.join(specs)}: {why}. Look at the package sources of this host, "
                "then run apt-get update"
            )
        return [os.path.join(into, name) for name in sorted(set(os.listdir(into)) - before) if name.endswith(".deb")]

    def unpack(self, package: str, into: str) -> None:
        """Open a package file into ``into``, running none of its scripts."""
        result = self.run(["dpkg-deb", "-x", package, into], timeout=300)
        if result.rc != 0:
            raise ProofError(f"cannot open {os.path.basename(package)}: {result.err.strip() or f'status {result.rc}'}")

    def required_symbols(self, package: str) -> dict[str, str]:
        """Nothing: packages of Debian and Ubuntu name no symbols."""
        return {}

    def provided_symbols(self, release: str) -> dict[str, str]:
        """See :meth:`required_symbols`."""
        return {}
