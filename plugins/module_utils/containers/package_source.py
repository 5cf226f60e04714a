# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One package repository: its key, checked by full fingerprint, its source file, and no second file for it.

The file is a deb822 one of apt, or a .repo file of dnf or zypper.

Everything is worked out first. A key that is not the expected one ends it before anything is written.
"""
from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import HostError
from ..facts import masking
from . import keepers, openpgp, proxies, repo_files, sources

Fetch = Callable[[str], bytes]
Runner = Callable[..., Any]


class SourceError(HostError):
    """A repository cannot be set up; the message names the thing, the reason and the way out."""


@dataclass(frozen=True)
class Key:
    """A repository key: where it comes from, where it lies, and the fingerprint it must have."""

    path: str
    fingerprint: str
    url: str | None = None
    content: str | None = None


@dataclass(frozen=True)
class Wish:
    """A source file, and what it needs. ``replaces``: addresses that this repository takes the place of."""

    path: str
    content: str
    key: Key | None = None
    retired_keys: tuple[str, ...] = ()
    remove_duplicates: bool = True
    replaces: tuple[str, ...] = ()
    proxy: str | None = None

    @property
    def is_rpm(self) -> bool:
        """Whether the file is one of dnf or zypper."""
        return self.path.endswith(".repo")


@dataclass
class Outcome:
    """What was done, or would be."""

    actions: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # for the diff
    after: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything differed."""
        return bool(self.actions)


class PackageSource:
    """Sets up repositories below ``root``. ``fetch`` gets a key from an address, ``run`` starts rpm."""

    def __init__(self, fetch: Fetch, root: str = "/", keep: int = 5, backups: str | None = None,
                 run: Runner | None = None) -> None:
        self.fetch, self.root, self.keep, self.run = fetch, root, keep, run
        self.proxy: str | None = None
        self.backups = backups or self._real(keepers.BACKUPS)

    def _real(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def set(self, wish: Wish, check: bool) -> Outcome:
        """Bring the repository to what is wished. Raises SourceError or openpgp.KeyFault with nothing written."""
        self._sane(wish)
        self.proxy = wish.proxy
        key = self._key(wish.key, wish.is_rpm) if wish.key else None
        trust = [] if wish.is_rpm else self._trust(wish.retired_keys)
        doubles = self._doubles(wish)
        outcome = Outcome()
        if key is not None and wish.key is not None:
            self._write(wish.key.path, key, outcome, f"write key {openpgp.normal(wish.key.fingerprint)} to "
                        f"{wish.key.path}", check)
        for path, left in trust:
            self._take(path, left, outcome, f"take a retired key out of {path}", check)
        for double in doubles:
            text = None if double.text is None else double.text.encode("utf-8", "surrogateescape")
            self._take(double.path, text, outcome, f"take the repository out of {double.path}", check)
        self._proxy(wish, outcome, check)
        self._write(wish.path, wish.content.encode(), outcome, f"write {wish.path}", check, show=True)
        if wish.is_rpm and wish.key is not None:
            self._import(wish.key, outcome, check)
        return outcome

    def _proxy(self, wish: Wish, outcome: Outcome, check: bool) -> None:
        """apt's settings for the repository; those of dnf and zypper stand in its own file."""
        if wish.is_rpm:
            return
        path = proxies.apt_path(wish.path)
        if wish.proxy:
            text = proxies.apt_text(wish.content, wish.proxy)
            self._write(path, text.encode(), outcome, f"have it asked through {wish.proxy} ({path})", check, show=True)
        elif os.path.exists(self._real(path)):
            self._take(path, None, outcome, f"have it asked without a proxy any more ({path})", check)

    def take_out(self, addresses: Sequence[str], keep: str | None, check: bool) -> Outcome:
        """Take repositories out of every file but ``keep``, for any package manager; what is taken out is kept."""
        outcome = Outcome()
        found = sources.duplicates(addresses, keep or "", self.root)
        for folder in repo_files.FOLDERS:
            where = keep if keep and os.path.dirname(keep) == folder else f"{folder}/-"
            found += repo_files.duplicates(addresses, where, self.root)
        for one in found:
            self._take(one.path, None if one.text is None else one.text.encode("utf-8", "surrogateescape"), outcome,
                       f"take the repository out of {one.path}", check)
        return outcome

    def _doubles(self, wish: Wish) -> list[sources.Removal]:
        if not wish.remove_duplicates and not wish.replaces:
            return []
        find, named = sources.duplicates, sources.uris(wish.content, deb822=True)
        if wish.is_rpm:
            find, named = repo_files.duplicates, repo_files.named(wish.content)
        return find([*(named if wish.remove_duplicates else ()), *wish.replaces], wish.path, self.root)

    def _import(self, key: Key, outcome: Outcome, check: bool) -> None:
        """Give rpm the key, so that no transaction has to ask whether to trust it: zypper would refuse."""
        if self.run is None:
            return
        asked = self.run(["rpm", "-q", "gpg-pubkey", "--qf", "%{DESCRIPTION}\\n"], timeout=60)
        # one old key among rpm's own must not make ours look missing at every run
        known = openpgp.readable(asked.out.encode()) if asked.rc == 0 else []
        wanted = openpgp.normal(key.fingerprint)
        if wanted in known:
            return
        outcome.actions.append(f"let rpm trust the key {wanted}")
        outcome.before.append(f"rpm's keys: {len(known)}")
        outcome.after.append(f"rpm's keys: {len(known) + 1}, with {wanted}")
        if check:
            return
        result = self.run(["rpm", "--import", self._real(key.path)], timeout=60)
        if result.rc != 0:
            raise SourceError(f"rpm does not take the key {key.path}: {result.err.strip() or f'status {result.rc}'}")

    def _sane(self, wish: Wish) -> None:
        if wish.is_rpm:
            self._sane_rpm(wish)
            return
        if not wish.path.endswith(".sources"):
            raise SourceError(f"path is {wish.path!r}; a source file of apt has a name that ends in .sources (deb822), "
                              "one of dnf and zypper in .repo")
        if not sources.uris(wish.content, deb822=True):
            raise SourceError(f"content for {wish.path} names no repository: it needs a field URIs")
        lowered = wish.content.lower()
        for word in ("trusted:", "allow-insecure:", "allow-weak:", "allow-downgrade-to-insecure:"):
            if word in lowered:
                raise SourceError(f"content for {wish.path} has the field {word[:-1]}, which switches signature checks "
                                  "off; give the key with its fingerprint instead")
        if wish.key is not None and wish.key.path not in wish.content:
            raise SourceError(f"content for {wish.path} has no Signed-By: {wish.key.path}; a key is for its repository "
                              "alone")

    @staticmethod
    def _sane_rpm(wish: Wish) -> None:
        if os.path.dirname(wish.path) not in repo_files.FOLDERS:
            raise SourceError(f"path is {wish.path!r}; .repo files lie in {' or '.join(sorted(repo_files.FOLDERS))}")
        wrong = repo_files.fault(wish.content, wish.path)
        if wrong is not None:
            raise SourceError(wrong)
        if wish.key is not None and f"file://{wish.key.path}" not in repo_files.keys_named(wish.content):
            raise SourceError(f"content for {wish.path} has no gpgkey=file://{wish.key.path}; a key is for its "
                              "repository alone")

    def _key(self, key: Key, is_rpm: bool = False) -> bytes | None:
        """The keyring to write, or None if the right one lies there."""
        openpgp.normal(key.fingerprint)
        present = keepers.read(self._real(key.path))
        if present is not None:
            try:
                openpgp.verify(present, key.fingerprint, key.path)
                return None
            except openpgp.KeyFault:
                pass
        if key.content is not None:
            content, what = key.content.encode("utf-8", "surrogateescape"), "that was given"
        elif key.url:
            try:
                with proxies.through(self.proxy):
                    content, what = self.fetch(key.url), f"at {key.url}"
            except OSError as error:
                way = f" through the proxy {self.proxy}" if self.proxy else ""
                raise SourceError(f"the key at {key.url} cannot be fetched{way}: {error}; nothing was "
                                  "written") from error
        else:
            raise SourceError(f"there is no key at {key.path} and neither url nor content says where to get it")
        openpgp.verify(content, key.fingerprint, what)
        return openpgp.keyring(content, key.path + ".asc" if is_rpm else key.path)  # rpm takes text alone

    def _trust(self, retired: Sequence[str]) -> list[tuple[str, bytes | None]]:
        """(keyring of the global trust, what is left of it) where a retired key is in it."""
        if not retired:
            return []
        gone = {openpgp.normal(one) for one in retired}
        base = self._real("/etc/apt")
        found: list[tuple[str, bytes | None]] = []
        for real in [os.path.join(base, "trusted.gpg"), *sorted(glob.glob(os.path.join(base, "trusted.gpg.d", "*")))]:
            content = keepers.read(real) if os.path.isfile(real) else None
            if not content:
                continue
            try:
                if not gone & set(openpgp.fingerprints(content)):
                    continue
                left = openpgp.without(content, gone)
            except openpgp.KeyFault:
                continue  # another format: not ours to judge
            path = "/" + os.path.relpath(real, self.root)
            found.append((path, openpgp.keyring(left, path) if left else None))
        return found

    def _write(self, path: str, content: bytes | None, outcome: Outcome, what: str, check: bool,
               show: bool = False) -> None:
        real = self._real(path)
        present = keepers.read(real)
        if content is None or present == content:
            return
        outcome.actions.append(what)
        outcome.before.append(f"{path}:\n{_shown(present, show)}")
        outcome.after.append(f"{path}:\n{_shown(content, show)}")
        if check:
            return
        saved = keepers.backup(real, self.keep, self.backups)
        outcome.backups += [saved] if saved else []
        keepers.replace(real, content, 0o644)

    def _take(self, path: str, left: bytes | None, outcome: Outcome, what: str, check: bool) -> None:
        real = self._real(path)
        present = keepers.read(real)
        outcome.actions.append(what)
        outcome.removed.append(path)
        text = not path.endswith(".gpg")
        outcome.before.append(f"{path}:\n{_shown(present, text)}")
        outcome.after.append(f"{path}:\n{_shown(left, text)}")
        if check:
            return
        saved = keepers.backup(real, self.keep, self.backups)
        outcome.backups += [saved] if saved else []
        if left is None:
            os.unlink(real)
        else:
            keepers.replace(real, left)


def _shown(content: bytes | None, text: bool) -> str:
    if content is None:
        return "absent\n"
    if not text:
        return f"{len(content)} bytes\n"
    return masking.text(content.decode("utf-8", "replace"))
