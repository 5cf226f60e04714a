# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt and dpkg, by their own programs; nothing here parses what those do not promise to keep."""
from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable

from . import apt_files, locks
from .base import BlockFile, Holder, LockHeld, Package, PackageError, Plan, Runner, Wanted

LOCKS = ("var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")
_LOCK_WORDS = re.compile(r"locked by another process|database is locked|could not get lock|another process using", re.I)
_LOCK_PID = re.compile(r"(?:with pid|process) (\d+)")
_FORMAT = r"${Package}\t${binary:Package}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\n"
_TIMEOUT = 60.0


class Apt(locks.Patient):
    """The backend for Debian and Ubuntu. ``run`` starts programs, ``root`` is the tree worked on."""

    name = "apt"
    hold_word = "hold"
    block_word = "preference"

    def __init__(self, run: Runner, root: str = "/", sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(sleep, clock)
        self.run = run
        self.root = root

    def _call(self, argv: Sequence[str], what: str, stdin: str | None = None) -> str:
        result = self.run(list(argv), timeout=_TIMEOUT, input=stdin)
        if result.timed_out:
            raise PackageError(f"{what}: {argv[0]} did not answer within {_TIMEOUT:.0f} s")
        if result.rc != 0:
            words = result.err.strip() or result.out.strip()
            raise PackageError(f"{what}: {' '.join(argv[:3])} failed ({result.rc}): {words}")
        return str(result.out)

    def _dpkg(self, program: str, *args: str) -> list[str]:
        if self.root == "/":
            return [program, *args]
        return [program, f"--admindir={os.path.join(self.root, 'var/lib/dpkg')}", *args]

    def _apt(self, program: str, *args: str) -> list[str]:
        return [program, *args] if self.root == "/" else [program, "-o", f"Dir={self.root}", *args]

    def installed(self) -> Mapping[str, list[Package]]:
        """Installed packages by name. Half-installed and half-configured ones count: they are on the host."""
        packages: dict[str, list[Package]] = {}
        text = self._call(self._dpkg("dpkg-query", "-W", f"--showformat={_FORMAT}"), "reading the installed packages")
        for line in text.splitlines():
            name, full, version, want, status = line.split("\t")
            if status not in ("not-installed", "config-files"):
                packages.setdefault(name, []).append(Package(name, full, version, want == "hold"))
        return packages

    def _lock(self) -> tuple[str, Holder] | None:
        for path in LOCKS:
            holder = locks.holder_of(os.path.join(self.root, path))
            if holder is not None:
                return "/" + path, holder
        return None

    def set_holds(self, hold: Iterable[str], release: Iterable[str], timeout: float) -> float:
        """All selections in one call of dpkg, which is repeated while it says that it is locked; see the interface."""
        lines = [f"{name} hold" for name in sorted(hold)] + [f"{name} install" for name in sorted(release)]
        if not lines:
            return 0.0
        start = self.clock()
        while True:
            self._wait(start, timeout)
            result = self.run(self._dpkg("dpkg", "--set-selections"), timeout=_TIMEOUT, input="\n".join(lines) + "\n")
            waited = self.clock() - start
            if result.rc == 0 and not result.timed_out:
                return waited
            if not _LOCK_WORDS.search(result.err):
                raise PackageError(f"setting holds: dpkg --set-selections failed ({result.rc}): {result.err.strip()}")
            if waited >= timeout:
                raise LockHeld(self._holder(result.err), waited, "dpkg")
            self._pause(timeout - waited)

    def _holder(self, message: str) -> Holder:
        """The holder from the lock itself, or else from the pid in dpkg's own words."""
        found = self._lock()
        if found is not None and found[1].pid:
            return found[1]
        match = _LOCK_PID.search(message)
        if not match:
            return Holder(None, None)
        return Holder(int(match.group(1)), locks.command_of(int(match.group(1))))

    def files(self, wanted: Wanted) -> Plan:
        """The preferences file and the exclusions of unattended-upgrades; holds are dpkg's own. See the interface."""
        exclusions = apt_files.unattended(wanted.names, (), wanted.patterns)
        preferences = apt_files.preferences(wanted.blocked)
        return Plan([BlockFile(apt_files.preferences_path(wanted.pin_set), preferences or None),
                     BlockFile(apt_files.auto_upgrades_path(wanted.pin_set), exclusions or None)])

    def leaks(self, hold: Iterable[str], blocked: Iterable[str]) -> list[str]:
        """Holds that dpkg does not show, and blocked names that have a candidate; see the interface."""
        installed = self.installed()
        free = sorted(n for n in set(hold) & set(installed) if not all(p.held for p in installed[n]))
        found = self.candidates(sorted(blocked))
        open_ = sorted(f"{n} ({v})" for n, v in found.items() if v is not None and n not in installed)
        said = [f"{', '.join(free)} cannot be held: dpkg took the selection and does not show it"] if free else []
        if open_:
            said.append(f"the block has no effect for {', '.join(open_)}: another file in /etc/apt/preferences.d, read "
                        "before ours, names the package. Take that pin out")
        return said

    def candidates(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """What apt would install now, asked of ``apt-cache policy``; globs are looked up as names first."""
        wanted: set[str] = set()
        for name in names:
            if "*" in name or "?" in name:
                wanted.update(self._matching(name))
            else:
                wanted.add(name)
        if not wanted:
            return {}
        text = self._call(self._apt("apt-cache", "policy", *sorted(wanted)), "asking apt for candidates")
        found: dict[str, str | None] = {}
        name = ""
        for line in text.splitlines():
            if line and not line.startswith(" "):
                name = line.rstrip(":")
            elif line.strip().startswith("Candidate:"):
                version = line.split(":", 1)[1].strip()
                found[name] = None if version == "(none)" else version
        return found

    def _matching(self, glob: str) -> list[str]:
        pattern = re.compile(re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".") + r"\Z")
        stem = re.split(r"[*?]", glob, maxsplit=1)[0]
        names = self._call(self._apt("apt-cache", "pkgnames", stem), "asking apt for names").split()
        return [name for name in names if pattern.match(name)]

    def manual(self, names: Iterable[str]) -> set[str]:
        """Asked of ``apt-mark showmanual``."""
        wanted = sorted(set(names))
        if not wanted:
            return set()
        return set(self._call(self._apt("apt-mark", "showmanual", *wanted), "asking for manual marks").split())

    def mark(self, manual: Iterable[str], auto: Iterable[str]) -> None:
        """One call of apt-mark a direction."""
        for verb, names in (("manual", sorted(set(manual))), ("auto", sorted(set(auto)))):
            if names:
                self._call(self._apt("apt-mark", verb, *names), f"marking packages as {verb}")
