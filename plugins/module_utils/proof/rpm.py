# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a proof needs of dnf and zypper: what is installed, what is on offer, a package file, its contents.

The counterpart of :class:`..proof.apt.Apt`, with the same methods. Packages are fetched by the manager, which
knows its repositories and their proxy; each file's signature is then looked at by rpm.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any, Callable, ClassVar

from ..facts import advisories, kmps
from ..facts.candidates_zypper import PRIMARY, release_of
from ..facts.context import Context
from ..facts.tree import Tree
from .apt import OFFERED, WAY_OUT, Offer
from .errors import ProofError

Runner = Callable[..., Any]
_FORMAT = "%{EPOCHNUM}:%{VERSION}-%{RELEASE}"
_LONG = 32 * 1024 * 1024  # a kernel provides tens of thousands of symbols
_OPEN = 'cd "$2" && rpm2cpio "$1" | cpio --extract --make-directories --quiet --no-absolute-filenames'


def plain(evr: str) -> str:
    """A version as the facts have it: the epoch only where it is not 0."""
    text = evr.strip()
    return text[2:] if text.startswith("0:") else text


class Rpm:
    """The part that rpm does itself. ``run`` starts programs."""

    offered: ClassVar[str] = OFFERED
    way_out: ClassVar[str] = WAY_OUT

    def __init__(self, run: Runner, download_timeout: float = 900) -> None:
        self.run = run
        self.download_timeout = download_timeout

    def installed(self, name: str) -> str | None:
        """The installed version of ``name`` (the newest of several), None if there is none."""
        result = self.run(["rpm", "-q", "--queryformat", _FORMAT + "\\n", name], timeout=60)
        lines = [line for line in result.out.splitlines() if ":" in line and " " not in line]
        return plain(lines[-1]) if result.rc == 0 and lines else None

    def headers_name(self, release: str) -> str:
        """See :class:`.backends.Source`: SUSE's name where the release ends in a flavour, else Red Hat's."""
        version, _dash, flavour = release.rpartition("-")
        return f"kernel-{flavour}-devel" if version and flavour.isalpha() else f"kernel-devel-{release}"

    def offer(self, name: str, version: str | None = None) -> Offer | None:
        """What the repositories offer for ``name``, at ``version`` or the newest; None when they do not have it."""
        raise NotImplementedError

    def _fetch(self, specs: list[str], into: str) -> Any:
        raise NotImplementedError

    def _spec(self, name: str, version: str) -> str:
        raise NotImplementedError

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        """Fetch packages at exact versions into ``into``; their paths. Raises ProofError."""
        specs = [self._spec(name, version) for name, version in sorted(wanted.items())]
        result = self._fetch(specs, into)
        found = sorted(os.path.join(where, name) for where, _dirs, names in os.walk(into) for name in names
                       if name.endswith(".rpm"))
        if result.rc != 0 or len(found) < len(specs):
            said = [line.strip() for line in f"{result.err}\n{result.out}".splitlines() if line.strip()]
            why = "it took too long" if result.timed_out else "; ".join(said[-3:]) or f"status {result.rc}"
            raise ProofError(f"cannot fetch {', '.join(specs)}: {why}. Look at the repositories of this host, then "
                             "refresh the package lists")
        for path in found:
            checked = self.run(["rpm", "--checksig", path], timeout=120)
            if checked.rc != 0:
                raise ProofError(f"{os.path.basename(path)} is not signed by a key that this host trusts: "
                                 f"{(checked.out or checked.err).strip()}")
        return found

    def unpack(self, package: str, into: str) -> None:
        """Open a package file into ``into``, running none of its scripts."""
        result = self.run(["sh", "-c", _OPEN, "sh", package, into], timeout=600)
        if result.rc != 0:
            raise ProofError(f"cannot open {os.path.basename(package)}: {result.err.strip() or f'status {result.rc}'}")

    def required_symbols(self, package: str) -> kmps.Symbols:
        """What a package file asks of the kernel, by rpm's names (``kernel(…)``, ``ksym(…)``)."""
        result = self.run(["rpm", "-qp", "--requires", package], timeout=120, limit=_LONG)
        return kmps.requirements(result.out) if result.rc == 0 else {}

    def provided_symbols(self, release: str) -> kmps.Symbols:
        """What a kernel has by rpm's names: the installed one's package, else what is on offer; empty: not told."""
        paths = [f"/lib/modules/{release}/vmlinuz", f"/boot/vmlinuz-{release}"]
        # what is not there is complained of beside the answer
        there = kmps.requirements(self.run(["rpm", "-qf", "--provides", *paths], timeout=120, limit=_LONG).out)
        return there or self._offered_symbols(release)

    def _offered_symbols(self, release: str) -> kmps.Symbols:
        raise NotImplementedError


class Dnf(Rpm):
    """dnf 4 or 5."""

    def __init__(self, run: Runner, root: str = "/", download_timeout: float = 900) -> None:
        super().__init__(run, download_timeout)
        exists = os.path.exists
        self.is_5 = exists(os.path.join(root, "usr/bin/dnf5")) and not exists(os.path.join(root, "usr/bin/dnf-3"))
        self.program = "dnf5" if self.is_5 else "dnf"

    def offer(self, name: str, version: str | None = None) -> Offer | None:
        """See :class:`Rpm`. Streams hide nothing: an exact version is what is asked for."""
        argv = [self.program, "--quiet", "repoquery", "--available", "--latest-limit=1", "--queryformat",
                "%{epoch}:%{version}-%{release}\\n"]
        argv += [] if self.is_5 else ["--disable-modular-filtering"]
        result = self.run([*argv, self._spec(name, version) if version else name], timeout=300)
        lines = [line for line in result.out.splitlines() if ":" in line]
        return Offer(name=name, version=plain(lines[-1]), depends=()) if result.rc == 0 and lines else None

    def _offered_symbols(self, release: str) -> kmps.Symbols:
        _bare, _plus, variant = release.partition("+")
        stem = f"kernel-{variant}" if variant else "kernel"
        # symbols of modules are provided by the packages of modules
        capabilities = [f"{one}-uname-r = {release}" for one in
                        ("kernel", f"{stem}-core", f"{stem}-modules-core", f"{stem}-modules")]
        result = self.run([self.program, "--quiet", "repoquery", "--available", "--provides", "--whatprovides",
                           ",".join(capabilities)], timeout=300, limit=_LONG)
        return kmps.requirements(result.out) if result.rc == 0 else {}

    def _spec(self, name: str, version: str) -> str:
        # a kernel's package is named with its version already
        return name if name.endswith((".x86_64", ".aarch64")) else f"{name}-{version}"

    def _fetch(self, specs: list[str], into: str) -> Any:
        return self.run([self.program, "--assumeyes", "--setopt=*.module_hotfixes=True", "download",
                         "--destdir", into, *specs], timeout=self.download_timeout)


class Zypper(Rpm):
    """zypper."""

    def __init__(self, run: Runner, root: str = "/", download_timeout: float = 900) -> None:
        super().__init__(run, download_timeout)
        self.root = root

    def _offered_symbols(self, release: str) -> kmps.Symbols:
        context = Context(Tree(self.root), deadline=float("inf"), runner=self.run)
        return kmps.kernel(advisories.texts(context, [PRIMARY]),
                           lambda name, version: release_of(name, version) == release)

    def offer(self, name: str, version: str | None = None) -> Offer | None:
        """See :class:`Rpm`."""
        spec = self._spec(name, version) if version else name
        result = self.run(["zypper", "--non-interactive", "--no-refresh", "--quiet", "search", "--match-exact",
                           "--details", "--type", "package", spec], timeout=300)
        rows = [[cell.strip() for cell in line.split("|")] for line in result.out.splitlines() if "|" in line]
        found = [row[3] for row in rows if len(row) > 5 and row[1] == name and row[3] != "Version"]
        return Offer(name=name, version=plain(found[0]), depends=()) if result.rc == 0 and found else None

    def _spec(self, name: str, version: str) -> str:
        return f"{name}={version}"

    def _fetch(self, specs: list[str], into: str) -> Any:
        result = self.run(["zypper", "--non-interactive", "--no-refresh", "--pkg-cache-dir", into, "download", *specs],
                          timeout=self.download_timeout)
        for where, _dirs, names in os.walk(into):  # below the repository's name
            for name in names:
                if where != into and name.endswith(".rpm"):
                    shutil.move(os.path.join(where, name), os.path.join(into, name))
        return result
