# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions of dnf: version 4 by ``dnf shell``, version 5 by ``dnf5 do``, which both install and remove at once.

``dnf shell`` goes on after a line that failed: a removal would be made without its installation. So every package is
looked for at its exact version before.

A module stream is two lines in /etc/dnf/modules.d; it is switched first and by itself. Cut off after it, the next run
finds the stream right and the packages not yet.

Source: dnf(8), dnf5-do(8), dnf.conf(5) (module_stream_switch, module_hotfixes, clean_requirements_on_remove).
"""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from ..facts import rpmdb
from ..facts.tree import Tree
from .base import PackageError, Runner
from .transact_rpm import Gone, RpmTransaction, as_asked, chosen_files
from .transaction import Todo, Wish, call, reason

_MARKS = ("Error:", "Error ", "Problem", "No match for argument", "All matches were filtered", "Failed ", " - ", "- ")
_SECTION = re.compile(r"^(Removing|Removing dependent packages|Removing unused dependencies):\s*$")
_DONE = re.compile(r"(?m)^Complete!")
_SKIPS = re.compile(r"(?m)^(Skipping packages|Error:| ?Problem)")
_ROW = re.compile(r"^ (\S+)(?:\s+(\S+)\s+(?:0:)?(\S+)\s)?")
_REST = re.compile(r"^ {2,}(\S+)\s+(?:0:)?(\S+)\s")


class DnfTransaction(RpmTransaction):
    """dnf 4 or 5, whichever the host has."""

    name = "dnf"

    def __init__(self, run: Runner, root: str = "/") -> None:
        super().__init__(run)
        self.root = root
        exists = os.path.exists
        self.is_5 = exists(os.path.join(root, "usr/bin/dnf5")) and not exists(os.path.join(root, "usr/bin/dnf-3"))
        self.program = "dnf5" if self.is_5 else "dnf"

    def streams(self) -> Mapping[str, str]:
        """The streams that are enabled, as /etc/dnf/modules.d has them."""
        tree = Tree(self.root)
        found: dict[str, str] = {}
        for path in tree.glob("/etc/dnf/modules.d", "*.module"):
            for name, keys in rpmdb.sections(tree.text(path) or ""):
                if keys.get("state") == "enabled":
                    found[name] = keys.get("stream", "")
        return found

    def has_stream(self, name: str, stream: str) -> bool:
        """See the interface."""
        argv = [self.program, "--quiet", "--cacheonly", "module", "list", f"{name}:{stream}"]
        result = call(self.run, argv, timeout=300)
        return bool(result.rc == 0)

    def refresh(self, wish: Wish) -> None:
        """See the interface."""
        # without --quiet, which leaves out why: "Status code: 403 for ..."
        argv = [self.program, "--refresh", "--setopt=skip_if_unavailable=False", "makecache"]
        result = call(self.run, argv, timeout=wish.timeout)
        if result.rc != 0 or result.timed_out:
            raise PackageError(f"The package lists cannot be fetched: {reason(result, _MARKS, self.program)}")

    def _options(self, wish: Wish, todo: Todo) -> list[str]:
        options = ["--setopt=clean_requirements_on_remove=False", "--setopt=module_stream_switch=True",
                   "--setopt=best=True", "--setopt=strict=True", "--setopt=skip_broken=False"]
        if not wish.recommends:
            options.append("--setopt=install_weak_deps=False")
        if wish.held:
            options += ["--setopt=disable_excludes=*"] if self.is_5 else ["--disableplugin=versionlock",
                                                                          "--disableexcludes=all"]
        if wish.only_files:
            options += ["--disablerepo=*", "--setopt=localpkg_gpgcheck=False"]  # the digests were looked at
        if todo.streams:  # exact versions are asked for: the filter of a stream has nothing to add
            options.append("--setopt=*.module_hotfixes=True")
        return options

    def _specs(self, todo: Todo) -> list[str]:
        files = chosen_files(todo, self.run)
        return [files.get(name) or (f"{name}-{version}" if version else name)
                for name, version in sorted(todo.install.items())]

    def _see_that_they_are_offered(self, todo: Todo, wish: Wish) -> None:
        specs = [spec for spec in self._specs(todo) if not spec.startswith("/")]
        if not specs:
            return
        argv = [self.program, "--quiet", *self._options(wish, todo), "repoquery", "--available", "--queryformat",
                "%{name}-%{version}-%{release}.%{arch}|%{name}-%{epoch}:%{version}-%{release}|%{name}\\n"]
        argv += [] if self.is_5 else ["--disable-modular-filtering"]
        result = call(self.run, [*argv, *specs], timeout=300)
        if result.rc != 0:
            raise PackageError(f"dnf cannot be asked for {', '.join(specs)}: {reason(result, _MARKS, self.program)}")
        offered = {word for line in result.out.splitlines() for word in line.strip().split("|")}
        offered |= {word.replace("-0:", "-") for word in offered}
        lacking = [spec for spec in specs if spec not in offered]
        if lacking:
            raise PackageError(f"no repository of this host offers {', '.join(lacking)}. No package was touched. "
                               "Refresh the package lists, or see which repository is switched off")

    def _run(self, todo: Todo, wish: Wish, *options: str, timeout: float) -> Any:
        actions = [("remove", list(todo.remove)), ("reinstall", list(todo.reinstall)), ("install", self._specs(todo))]
        base = [self.program, *options, *self._options(wish, todo), "--allowerasing"]
        if self.is_5:
            words = [word for verb, names in actions if names for word in (f"--action={verb}", *names)]
            return call(self.run, [base[0], "do", *base[1:], *words], timeout=timeout, wish=wish)
        lines = [f"{verb} {' '.join(names)}" for verb, names in actions if names]
        return call(self.run, [*base, "shell", "/dev/stdin"], timeout=timeout, wish=wish,
                    input="\n".join([*lines, "run", ""]))

    def forecast(self, todo: Todo, wish: Wish) -> list[str]:
        """See the interface."""
        if not (todo.install or todo.remove or todo.reinstall):
            return []
        self._see_that_they_are_offered(todo, wish)
        result = self._run(todo, wish, "--assumeno", timeout=600)
        text = str(result.out)
        if _SKIPS.search(text) or not re.search(r"(?m)^(Transaction Summary|Nothing to do)|Operation aborted", text):
            raise PackageError(f"dnf cannot make this transaction: {reason(result, _MARKS, self.program)}")
        return [as_asked(one, todo.remove) for one in goes(text)]

    def _fetch(self, todo: Todo, wish: Wish) -> None:
        """Into dnf's own cache, where the transaction finds it."""
        result = self._run(todo, wish, "--assumeyes", "--downloadonly", timeout=wish.timeout)
        if result.rc != 0 or result.timed_out or _SKIPS.search(result.out):
            raise PackageError(f"dnf cannot fetch the packages: {reason(result, _MARKS, self.program)}")

    def carry_out(self, todo: Todo, wish: Wish) -> None:
        """See the interface."""
        if wish.fetch:
            self._fetch(todo, wish)
            return
        if todo.duplicates:
            self.erase(todo.duplicates, wish.timeout)
        for name, stream in sorted(todo.streams.items()):
            words = ["enable", f"{name}:{stream}"] if stream else ["reset", name]
            argv = [self.program, "--assumeyes", "--setopt=module_stream_switch=True", "module", *words]
            result = call(self.run, argv, timeout=600)
            if result.rc != 0:
                raise PackageError(f"dnf cannot switch module {name} to stream {stream or 'none'}: "
                                   f"{reason(result, _MARKS, self.program)}. No package was touched")
        if todo.install or todo.remove or todo.reinstall:
            result = self._run(todo, wish, "--assumeyes", timeout=wish.timeout)
            # dnf shell ends with status 0 whatever became of its lines
            done = result.rc == 0 and not result.timed_out and (self.is_5 or _finished(result.out))
            if not done:
                raise PackageError(f"dnf failed: {reason(result, _MARKS, self.program)}")


def _finished(text: str) -> bool:
    return _DONE.search(text) is not None and _SKIPS.search(text) is None


def goes(text: str) -> list[Gone]:
    """What a table of dnf takes out. What belongs to a long name stands, indented, on the next line."""
    found: list[Gone] = []
    inside = False
    for line in text.splitlines():
        rest = _REST.match(line)
        if _SECTION.match(line):
            inside = True
        elif not line.startswith(" "):
            inside = False
        elif inside and rest and found and not found[-1].version:
            found[-1] = Gone(found[-1].name, rest.group(2), rest.group(1))
        elif inside and (match := _ROW.match(line)):
            found.append(Gone(match.group(1), match.group(3) or "", match.group(2) or ""))
    return found
