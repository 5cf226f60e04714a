# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions of apt: one ``apt-get install`` that also removes (``name-``)."""
from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Callable

from .base import PackageError, Runner
from .transaction import Todo, Wish, call, reason, search_path

_FORMAT = "${binary:Package}\\t${Package}\\t${Version}\\t${db:Status-Status}\\t${db:Status-Eflag}\\n"
_GOES = re.compile(r"(?m)^(?:Remv|Purg) (\S+)")
_HALF = ("half-installed", "half-configured", "unpacked", "triggers-awaited", "triggers-pending")
_KEYS = re.compile(r"[EW]: .*(GPG error|OpenPGP signature|NO_PUBKEY)")
_LISTS_LOCKED = re.compile(r"Could not get lock \S*/lists/lock")
_NO_SOURCES = ["-o", "Dir::Etc::SourceList=/dev/null", "-o", "Dir::Etc::SourceParts=/dev/null"]
_FORCE = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]


class AptTransaction:
    """apt-get and dpkg, by ``run``."""

    name = "apt"

    def __init__(self, run: Runner, sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.run, self.sleep, self.clock = run, sleep, clock

    def _rows(self) -> list[list[str]]:
        result = self.run(["dpkg-query", "-W", f"--showformat={_FORMAT}"], timeout=60)
        if result.rc != 0:
            raise PackageError(f"the installed packages cannot be read: {reason(result, ('dpkg-query:',), 'dpkg')}")
        return [fields for line in result.out.splitlines() if len(fields := line.split("\t")) == 5]

    def versions(self) -> Mapping[str, tuple[str, ...]]:
        """See the interface. What is half installed does not count as there."""
        found: dict[str, tuple[str, ...]] = {}
        for full, name, version, status, _flag in self._rows():
            if status in ("installed", "triggers-awaited", "triggers-pending"):
                for one in sorted({full, name}):
                    found[one] = (*found.get(one, ()), version)
        return found

    def broken(self) -> list[str]:
        """See the interface."""
        return sorted(name for _full, name, _version, status, flag in self._rows()
                      if status in _HALF or flag == "reinstreq")

    def refresh(self, wish: Wish) -> None:
        """See the interface. apt-get ends with status 0 where a source did not answer: then it says so in a line."""
        argv = ["apt-get", "update", "--quiet", "-o", "Acquire::Retries=3"]
        end = self.clock() + wish.lock_timeout
        result = call(self.run, argv, timeout=wish.timeout)
        while result.rc != 0 and _LISTS_LOCKED.search(result.err) and self.clock() < end:
            self.sleep(2.0)  # apt's own timeout is for dpkg's lock, not for that of the lists
            result = call(self.run, argv, timeout=wish.timeout)
        said = [line for line in f"{result.out}\n{result.err}".splitlines()
                if line.startswith("E: ") or (line.startswith("W: ") and "Failed to fetch" in line)]
        if result.rc != 0 or result.timed_out or said:
            why = (said or [f"E: {_why(result)}"])[0][3:]
            # apt calls a repository that another key signed "not signed", and names the key in a warning before
            keys = [line[3:] for line in f"{result.out}\n{result.err}".splitlines() if _KEYS.match(line)]
            more = f" ({keys[0]})" if keys and keys[0] != why else ""
            raise PackageError(f"The package lists cannot be fetched: {why}{more}")

    def streams(self) -> Mapping[str, str]:
        """apt has none."""
        return {}

    def has_stream(self, name: str, stream: str) -> bool:
        """apt has none."""
        return False

    def duplicates(self, names: Mapping[str, str | None]) -> Mapping[str, tuple[str, ...]]:
        """dpkg never has two versions of a name."""
        return {}

    def _argv(self, todo: Todo, wish: Wish, *options: str) -> list[str]:
        # files come by their path: apt takes name and version from them
        alone = _NO_SOURCES if wish.only_files else []
        given = {_name_of(path) for path in todo.files}
        specs = [f"{name}={version}" if version else name for name, version in sorted(todo.install.items())
                 if name not in given]
        files = [path for path in todo.files if _name_of(path) in todo.install]
        reinstall = ["--reinstall"] if todo.reinstall else []
        recommends = [] if wish.recommends else ["--no-install-recommends"]
        purge = ["--purge"] if wish.purge else []
        purge += ["--download-only", "--allow-change-held-packages"] if wish.fetch else []
        # apt gives dpkg a PATH of its own, whatever the environment says
        path = ["-o", f"DPkg::Path={search_path(wish)}"] if wish.search else []
        return ["apt-get", *alone, *path, *options, *recommends, *purge, "--allow-downgrades", *reinstall,
                "-o", f"DPkg::Lock::Timeout={int(wish.lock_timeout)}", *_FORCE, "install",
                *files, *specs, *todo.reinstall, *(f"{name}-" for name in todo.remove)]

    def forecast(self, todo: Todo, wish: Wish) -> list[str]:
        """See the interface."""
        options = ["--simulate", *(["--allow-change-held-packages"] if wish.held else [])]
        result = call(self.run, self._argv(todo, wish, *options), timeout=300)
        if result.rc != 0:
            raise PackageError(f"apt cannot make this transaction: {_why(result)}")
        return [name.partition(":")[0] for name in _GOES.findall(result.out)]

    def carry_out(self, todo: Todo, wish: Wish) -> None:
        """See the interface. An interrupted transaction is finished by dpkg itself, then by apt."""
        if todo.repair:
            # cut off while it was unpacked: apt would look for the very file that dpkg has half of, and finds no source
            halves = [full for full, _name, _version, _status, flag in self._rows() if flag == "reinstreq"]
            if halves:
                self._do(["dpkg", "--remove", "--force-remove-reinstreq", "--force-depends", *halves], wish,
                         "dpkg cannot take out what it has half unpacked")
            if todo.remove:
                self._do(self._argv(Todo(remove=todo.remove), wish, "--yes"), wish, "apt failed")
            self._do(["dpkg", "--configure", "-a", "--force-confdef", "--force-confold"], wish, "dpkg cannot finish",
                     ". Remove the kernel or driver that does not build (apt-get purge), then run this again")
            self._do(["apt-get", "--yes", "--no-install-recommends", "--fix-broken", *_FORCE, "install"], wish,
                     "apt cannot mend")
        if todo.install or todo.reinstall or (todo.remove and not todo.repair):
            self._do(self._argv(todo, wish, "--yes"), wish, "apt failed")

    def _do(self, argv: list[str], wish: Wish, what: str, remedy: str = "") -> None:
        result = call(self.run, argv, timeout=wish.timeout, wish=wish)
        if result.rc != 0 or result.timed_out:
            raise PackageError(f"{what}: {_why(result)}{remedy}")


def _why(result: object) -> str:
    return reason(result, ("E:", "dpkg: error", "Error!"), "apt-get")


def _name_of(path: str) -> str:
    """The package of a file name: name_version_arch.deb."""
    return path.rpartition("/")[2].partition("_")[0]
