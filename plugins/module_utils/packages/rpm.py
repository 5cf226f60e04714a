# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dnf and zypper have in common: the rpm database, its locks, and holds that stand in files."""
from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable

from .. import atomic
from . import locks
from .base import BlockFile, Holder, Package, PackageError, Plan, Runner, Wanted
from .books import Book, is_glob

RPM_LOCKS = ("usr/lib/sysimage/rpm/.rpm.lock", "var/lib/rpm/.rpm.lock")
_FORMAT = "%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}-%{RELEASE}\\t%{ARCH}\\n"
_TIMEOUT = 120.0
_PUT_BACK = "kernel"     # set_holds is kernel_stage's: the comment above them is that of the set they came from


class Rpm(locks.Patient):
    """Base of both backends. ``run`` starts programs, ``root`` is the tree worked on."""

    name = "rpm"
    programs: tuple[str, ...] = ()       # what a pid in one of the pid files must be, not to be stale
    pid_files: tuple[str, ...] = ()

    def __init__(self, run: Runner, root: str = "/", sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic, proc: str = "/proc") -> None:
        super().__init__(sleep, clock)
        self.run = run
        self.root = root
        self.proc = proc
        self.names: set[str] = set()      # what is installed, as of the last look
        self._packages: dict[str, list[Package]] = {}

    # to be said by each

    def books(self) -> list[Book]:
        """The files in which packages are locked here; each of them is needed."""
        raise NotImplementedError

    def extra_files(self, wanted: Wanted, texts: dict[str, str | None]) -> list[BlockFile]:
        """Files besides the books; ``texts`` are the books' as they will be, by path, which may be changed further."""
        return []

    @property
    def hold_word(self) -> str:
        """As the first book calls it."""
        return self.books()[0].word

    @property
    def block_word(self) -> str:
        """The same word: these managers keep out and keep back alike."""
        return self.hold_word

    # helpers

    def path(self, path: str) -> str:
        """``path`` in the tree."""
        return os.path.join(self.root, path.lstrip("/"))

    def text(self, path: str) -> str | None:
        """The text of a file of the tree, None when it is absent."""
        return atomic.read_text(self.path(path))

    def call(self, argv: Sequence[str], what: str) -> str:
        """The output of a program. Raises PackageError with its own words."""
        result = self.run(list(argv), timeout=_TIMEOUT)
        if result.timed_out:
            raise PackageError(f"{what}: {argv[0]} did not answer within {_TIMEOUT:.0f} s")
        if result.rc != 0:
            words = result.err.strip() or result.out.strip()
            raise PackageError(f"{what}: {' '.join(argv[:3])} failed ({result.rc}): {words}")
        return str(result.out)

    def _entries(self, book: Book, text: str | None) -> list[str]:
        try:
            return book.entries(text or "")
        except ValueError as exc:
            raise PackageError(f"locked packages cannot be read: {exc}") from exc

    # the interface

    def installed(self) -> Mapping[str, list[Package]]:
        """Installed packages by name, each version of those that stand side by side."""
        argv = ["rpm", "-qa", "--queryformat", _FORMAT]
        if self.root != "/":
            argv += ["--root", self.root]
        found: dict[str, list[Package]] = {}
        for line in self.call(argv, "reading the installed packages").splitlines():
            fields = line.split("\t")
            if len(fields) != 4:
                continue
            name, epoch, version, arch = fields
            evr = version if epoch in ("0", "", "(none)") else f"{epoch}:{version}"
            found.setdefault(name, []).append(Package(name, f"{name}-{evr}.{arch}", evr, False))
        self.names = set(found)
        books = [(book, _Index(book, self._entries(book, self.text(book.path)))) for book in self.books()]
        self._packages = {}
        for name, packages in found.items():
            held = bool(books) and all(book.is_held(index.about(name), packages) for book, index in books)
            self._packages[name] = [Package(p.name, p.full, p.version, held) for p in packages]
        return self._packages

    def _lock(self) -> tuple[str, Holder] | None:
        for path in RPM_LOCKS:
            holder = locks.holder_of(self.path(path))
            if holder is not None:
                return "/" + path, holder
        for path in self.pid_files:
            pid = (self.text(path) or "").strip()
            if not pid.isdigit() or int(pid) == os.getpid():
                continue
            command = locks.command_of(int(pid), self.proc)
            if command and any(program in command for program in self.programs):
                return path, Holder(int(pid), command)
        return None

    def set_holds(self, hold: Iterable[str], release: Iterable[str], timeout: float) -> float:
        """Lock and free installed packages by their full names; see the interface.

        Freed are the entries for what is installed, whoever made them: who calls knows that they are to go.
        """
        waited = self.wait_for_lock(timeout)
        by_full = {p.full: p for packages in self.installed().values() for p in packages}
        keep = {by_full[full].name for full in hold if full in by_full and not by_full[full].held}
        free = {by_full[full].name for full in release if full in by_full and by_full[full].held}
        for book in self.books():
            text = self.text(book.path) or ""
            there = self._entries(book, text)
            add = [e for name in keep for e in book.hold(self._packages[name]) if e not in there]
            drop = [e for name in free for e in book.hold(self._packages[name]) if e in there]
            if add or drop:
                mode = atomic.mode_of(self.path(book.path)) or 0o644
                atomic.write(self.path(book.path), book.edit(text, drop, add, _PUT_BACK), mode)
        return waited

    def files(self, wanted: Wanted) -> Plan:
        """The books with our entries in them; see the interface."""
        texts: dict[str, str | None] = {}
        ours: dict[str, list[str]] = {}
        for book in self.books():
            text = texts.get(book.path, self.text(book.path))
            texts[book.path], ours[book.path] = self._edited(book, text, wanted)
        for path in set(wanted.recorded) - set(texts):      # the way of holding has changed since: tidy up behind it
            former = self.former_book(path)
            if former is not None:
                texts[path], _none = self._edited(former, self.text(path), Wanted(
                    wanted.pin_set, recorded=wanted.recorded, others=wanted.others))
        extra = self.extra_files(wanted, texts)
        shared = [BlockFile(path, text, atomic.mode_of(self.path(path)) or 0o644, shared=True)
                  for path, text in texts.items()]
        return Plan([*shared, *extra], {path: entries for path, entries in ours.items() if entries})

    def former_book(self, path: str) -> Book | None:
        """A book that is no longer used here, by its path."""
        return None

    def _edited(self, book: Book, text: str | None, wanted: Wanted) -> tuple[str | None, list[str]]:
        """(the text with this set's entries as wanted, those of them that are ours)."""
        there = self._entries(book, text)
        recorded, others = set(wanted.recorded.get(book.path, ())), set(wanted.others.get(book.path, ()))
        need = {e for name in wanted.hold for e in book.hold(self._packages[name])}
        need |= {e for name in wanted.blocked for e in book.block(name)}
        ours = {e for e in need if e in recorded or e in others or e not in there}
        drop = (recorded & set(there)) - need - others
        add = need - set(there)
        if not drop and not add:
            return text, sorted(ours)
        again = (recorded & need & set(there)) - others     # all of ours stand together
        return book.edit(text or "", sorted(drop | again), sorted(add | again), wanted.pin_set), sorted(ours)

    def leaks(self, hold: Iterable[str], blocked: Iterable[str]) -> list[str]:
        """What other entries of the same files let in all the same."""
        installed = self.installed()
        said = []
        for book in self.books():
            entries = self._entries(book, self.text(book.path))
            index = _Index(book, entries)
            for name in sorted(set(hold) & set(installed)):
                opens = book.opens(index.about(name), installed[name])
                if opens:
                    said.append(f"{name} may still move: {book.path} has {', '.join(opens)}, which is not ours. Take "
                                "it out there, or leave the package out of the set")
                elif not book.is_held(index.about(name), installed[name]):
                    said.append(f"{name} is not held: {book.path} does not have it after it was written")
            missing = [n for n in sorted(blocked) if not set(book.block(n)) & set(entries)]
            if missing:
                said.append(f"{', '.join(missing)} may still come in: {book.path} does not have it after the change")
        return said


class _Index:
    """The entries of a book by the name that they are about; patterns are looked through for each name."""

    def __init__(self, book: Book, entries: Iterable[str]) -> None:
        self._book = book
        self._entries = list(entries)
        # NAME-VERSION.* is a name: the star stands for the architecture
        self._stems = [entry for entry in self._entries
                       if is_glob(re.sub(r"\.\*$", "", entry.split(" ", 1)[0])) or "\n" in entry]
        self._rest = [entry for entry in self._entries if entry not in set(self._stems)]

    def about(self, name: str) -> list[str]:
        """The entries about a name."""
        near = [entry for entry in self._rest if name in entry]
        return [entry for entry in [*near, *self._stems] if self._book.concerns(entry, name)]
