# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A set of packages at exact versions, in one transaction. Logic of module ``package_set``, for any package manager.

The managers' own Ansible modules install or remove; none does both at once, and a driver that is taken out before the
new one is in leaves a host without one. They also need the manager's Python bindings, which a newer interpreter on an
older system does not have. So this starts the managers' programs.

First what would happen is asked for. A transaction that takes out a package nobody named is refused. Afterwards the
host is read again: a manager that says "done" and has not done it is not believed.
"""
from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Protocol

from .. import atomic
from ..checksum import sha256_of
from ..run import PATH
from .base import PackageError, Runner

POLICY = "usr/sbin/policy-rc.d"
DENY = "#!/bin/sh\n# baremetal.nvidia: no service is started while packages are changed\nexit 101\n"
# Maintainer scripts ask nothing and restart nothing: systemctl takes itself for offline and only enables and disables.
ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "SYSTEMD_OFFLINE": "1",
               "BAREMETAL_NVIDIA_ALLOW": "1"}


@dataclass(frozen=True)
class Wish:
    """What is to be there. ``packages``: name → exact version, None for whatever is offered."""

    packages: Mapping[str, str | None]
    remove: tuple[str, ...] = ()
    reinstall: tuple[str, ...] = ()  # packages whose files are not as the package brings them
    streams: Mapping[str, str] = field(default_factory=dict)  # module → stream (dnf); "" for none
    files: Mapping[str, str | None] = field(default_factory=dict)  # package file on the host → its SHA-256
    only_files: bool = False  # nothing comes from a repository; of the files those come too that are needed
    may_go: str | None = None  # regular expression of names that may go with those that are removed
    recommends: bool = False
    purge: bool = False  # settings of what is removed go too (dpkg alone keeps them)
    search: tuple[str, ...] = ()  # directories in which package scripts find programs before the system's
    held: bool = False  # the forecast of check mode is made while our holds stand: it looks past them
    untried: bool = False  # check mode does not ask the manager: what offers the packages is not there yet
    fetch: bool = False  # only fetch what the transaction needs
    timeout: float = 3600.0
    lock_timeout: float = 300.0


@dataclass(frozen=True)
class Todo:
    """The difference between host and wish."""

    install: Mapping[str, str | None] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    reinstall: tuple[str, ...] = ()
    streams: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    duplicates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name → versions that have to go
    repair: bool = False  # the manager has something of an interrupted transaction to finish first

    def __bool__(self) -> bool:
        return bool(self.install or self.remove or self.reinstall or self.streams or self.duplicates or self.repair)


@dataclass
class Outcome:
    """What was done, or in check mode would be."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    before: dict[str, str | None] = field(default_factory=dict)
    after: dict[str, str | None] = field(default_factory=dict)
    waited: float = 0.0
    former: dict[str, Any] | None = None  # what was kept of what it replaced


class Manager(Protocol):
    """What one package manager does of a transaction; see the files beside this one."""

    name: str
    run: Runner

    def refresh(self, wish: Wish) -> None:
        """Fetch the package lists. Raises PackageError with the manager's own reason."""

    def versions(self) -> Mapping[str, tuple[str, ...]]:
        """The installed versions of every package, by name; also by name with version where several can be there."""

    def broken(self) -> list[str]:
        """Packages that an interrupted transaction left half installed."""

    def streams(self) -> Mapping[str, str]:
        """The module streams that are switched on."""

    def has_stream(self, name: str, stream: str) -> bool:
        """Whether a repository offers the stream."""

    def duplicates(self, names: Mapping[str, str | None]) -> Mapping[str, tuple[str, ...]]:
        """Versions of these packages that a cut-off transaction left beside the newer one."""

    def forecast(self, todo: Todo, wish: Wish) -> list[str]:
        """The names that the transaction would take out. Raises PackageError where it cannot be made."""

    def carry_out(self, todo: Todo, wish: Wish) -> None:
        """Make the transaction. Raises PackageError with the manager's own reason."""


class Transaction:
    """One run of the module. ``wait`` waits for the manager's lock and returns the seconds it took."""

    def __init__(self, manager: Manager, wait: Callable[[float], float], root: str = "/") -> None:
        self.manager, self.wait, self.root = manager, wait, root

    def todo(self, wish: Wish) -> Todo:
        """What differs."""
        there = self.manager.versions()
        half = self.manager.broken()
        streams = self.manager.streams() if wish.streams else {}
        other = {name: stream for name, stream in wish.streams.items() if streams.get(name, "") != stream}
        install = {
            name: version
            for name, version in wish.packages.items()
            if name not in there or (version is not None and version not in there[name])
        }
        return Todo(
            install=install,
            remove=tuple(sorted(name for name in wish.remove if name in there or name in half)),
            reinstall=tuple(sorted(name for name in wish.reinstall if name in there and name not in install)),
            # where nothing is switched on and a mirror has no streams, there is nothing to switch
            streams={name: stream for name, stream in other.items()
                     if name in streams or self.manager.has_stream(name, stream)},
            files=tuple(wish.files) if install else (),
            duplicates=self.manager.duplicates(wish.packages),
            repair=bool(half),
        )

    def from_files(self, wish: Wish) -> Wish:
        """Where only files count: their own versions, and with them what they need of the other files."""
        if not wish.only_files:
            return wish
        from . import directory  # it asks the managers' programs as this file does

        self._see_files(wish)
        files = directory.read(wish.files, self.manager.run, self.manager.name)
        there = self.manager.versions()
        exact = {(one.name, directory.plain(one.version)): one.version for one in files}
        packages = {name: exact.get((name, directory.plain(version)), version) if version else None
                    for name, version in wish.packages.items()}
        lacking = {name: version for name, version in packages.items()
                   if name not in there or (version is not None and version not in there[name])}
        found = directory.chosen(lacking, files, there, self.manager.run, self.manager.name) if lacking else {}
        more = {name: one.version for name, one in found.items()}
        return replace(wish, packages={**packages, **more},
                       files={one.path: wish.files[one.path] for one in found.values()})

    def run(self, wish: Wish, check: bool, guard: Callable[[], None] = lambda: None) -> Outcome:
        """Bring the packages to what is wished. Raises PackageError. ``guard`` looks once more just before it."""
        wrong = set(wish.packages) & set(wish.remove)
        if wrong:
            raise PackageError(f"packages and remove both name {', '.join(sorted(wrong))}: a package goes or it stays")
        self._see_files(wish)
        todo = self.todo(wish)
        before = self._picture(wish)
        outcome = Outcome(changed=bool(todo), actions=_actions(todo, before), before=before, after=dict(before))
        if not todo:
            if self._denial_is_left():  # by a run that was killed after its last package
                outcome.changed = True
                outcome.actions.append(f"let package scripts start services again (/{POLICY})")
                if not check:
                    allow_services(self.root)
            return outcome
        if check:
            if not (todo.repair or todo.duplicates or wish.untried):
                self._refuse_unasked(todo, replace(wish, held=True))
            outcome.after.update(todo.install)
            outcome.after.update(dict.fromkeys(todo.remove))
            return outcome
        outcome.waited = self.wait(wish.lock_timeout)
        if wish.fetch:
            self._fetch(todo, wish, outcome)
            return outcome
        guard()
        with self._services_denied():
            if todo.repair or todo.duplicates:
                goes = todo.remove if set(todo.remove) & set(self.manager.broken()) else ()
                if goes:  # what does not configure, and is not wanted, is not configured first
                    self._refuse_unasked(Todo(remove=goes), wish)
                self.manager.carry_out(Todo(remove=goes, duplicates=todo.duplicates, repair=todo.repair), wish)
                todo = replace(self.todo(wish), repair=False)
            if todo:
                self._refuse_unasked(todo, wish)
                self.manager.carry_out(todo, wish)
        outcome.after = self._picture(wish)
        self._verify(wish)
        return outcome

    def _fetch(self, todo: Todo, wish: Wish, outcome: Outcome) -> None:
        """Have the manager fetch what the transaction needs. Nothing on the host differs by it, so nothing changed."""
        outcome.changed, outcome.actions = False, []
        if todo.repair or todo.duplicates or not (todo.install or todo.reinstall):
            return  # what is half installed is finished first, and fetches for itself
        wish = replace(wish, held=True)  # nothing moves, so no hold is in the way
        self._refuse_unasked(todo, wish)
        self.manager.carry_out(todo, wish)

    @staticmethod
    def _see_files(wish: Wish) -> None:
        """See that each package file is there and is the one that was meant, before anything is done."""
        for path, wanted in wish.files.items():
            if not os.path.isabs(path) or not os.path.isfile(path):
                raise PackageError(f"{path} is not a file of this host; files need absolute paths")
            found = sha256_of(path) if wanted else None
            if wanted and found != wanted.lower():
                raise PackageError(f"{path} has the SHA-256 {found}, expected is {wanted}: it is not the file that was "
                                   "meant. Nothing was touched")

    def _picture(self, wish: Wish) -> dict[str, str | None]:
        there = self.manager.versions()
        return {name: ", ".join(there[name]) if name in there else None
                for name in sorted({*wish.packages, *wish.remove, *wish.reinstall})}

    def _refuse_unasked(self, todo: Todo, wish: Wish) -> None:
        goes = self.manager.forecast(todo, wish)
        pattern = re.compile(wish.may_go) if wish.may_go else None
        asked = {*todo.remove, *todo.install, *todo.duplicates, *todo.reinstall}
        unasked = [name for name in goes if name not in asked and not (pattern and pattern.fullmatch(name))]
        if unasked:
            raise PackageError(
                f"{self.manager.name} would also take out {', '.join(sorted(unasked))}, which nobody asked for: they "
                f"need {', '.join(todo.remove) or 'what is exchanged'}. No package was touched. Take them out by hand, "
                "or keep what they need"
            )

    def _verify(self, wish: Wish) -> None:
        left = self.todo(wish)
        if left.install or left.remove or left.duplicates or left.repair:
            wrong = [f"{name} is not at {version or 'any version'}" for name, version in left.install.items()]
            wrong += [f"{name} is still there" for name in (*left.remove, *left.duplicates)]
            wrong += [f"{name} is half installed" for name in self.manager.broken()]
            raise PackageError(f"{self.manager.name} ended without an error, but {'; '.join(wrong[:6])}")

    def _denial_is_left(self) -> bool:
        return self.manager.name == "apt" and denied(self.root)

    @contextlib.contextmanager
    def _services_denied(self) -> Iterator[None]:
        """policy-rc.d, which Debian's scripts ask. A file of the host's own is respected; one of ours always goes."""
        path = os.path.join(self.root, POLICY)
        if self.manager.name != "apt":
            yield
            return
        if atomic.read_text(path) is None:
            atomic.write(path, DENY, mode=0o755)
        try:
            yield
        finally:
            if denied(self.root):
                allow_services(self.root)


def denied(root: str = "/") -> bool:
    """Whether a transaction of ours lets no package start a service: one at work, or one that was cut off."""
    return atomic.read_text(os.path.join(root, POLICY)) == DENY


def allow_services(root: str = "/") -> None:
    """Take that away."""
    atomic.remove(os.path.join(root, POLICY))


def _actions(todo: Todo, before: Mapping[str, str | None]) -> list[str]:
    lines = ["finish what an interrupted transaction left"] if todo.repair else []
    for name, versions in sorted(todo.duplicates.items()):
        lines += [f"take {name} {one} out, another version is installed beside it" for one in versions]
    lines += [f"switch module {name} to stream {stream or 'none'}" for name, stream in sorted(todo.streams.items())]
    for name, version in sorted(todo.install.items()):
        was = before.get(name)
        lines.append(f"{'replace' if was else 'install'} {name} {f'{was} by ' if was else ''}{version or 'as offered'}")
    lines += [f"install {name} again" for name in todo.reinstall]
    return lines + [f"remove {name} {before.get(name) or ''}".rstrip() for name in todo.remove]


def search_path(wish: Wish) -> str:
    """Where package scripts look for programs."""
    return ":".join((*wish.search, PATH))


def call(run: Runner, argv: list[str], timeout: float, env: Mapping[str, str] | None = None, wish: Wish | None = None,
         **more: Any) -> Any:
    """Start a manager's program with the environment of all transactions, and the directories that ``wish`` has."""
    first = {"PATH": search_path(wish)} if wish is not None and wish.search else {}
    return run(argv, timeout=timeout, env={**ENVIRONMENT, **first, **(env or {})}, limit=16 * 1024 * 1024, **more)


def reason(result: Any, marks: tuple[str, ...], program: str) -> str:
    """The manager's own words: the lines with one of ``marks``, else the last ones."""
    if result.timed_out:
        return f"{program} did not end in time"
    if result.rc < 0:
        return f"{program} was ended by signal {-result.rc}; run this again to finish what it left"
    lines = [line.strip() for line in f"{result.out}\n{result.err}".splitlines() if line.strip()]
    # dpkg names the package in one line and the reason, a full disk say, in the next
    whole = [f"{line} {after}" if line.endswith(":") and line.startswith("dpkg: error") else line
             for line, after in zip(lines, [*lines[1:], ""])]
    found = list(dict.fromkeys(line.strip() for line in whole if line.startswith(marks)))
    return "; ".join((found or lines)[-6:]) or f"{program} ended with status {result.rc}"
