# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dnf 4 and dnf 5: versionlock where it works, exclusions in dnf.conf where it does not, both beside PackageKit.

dnf-automatic follows both, since it reads the same configuration and loads the same plugins.
"""
from __future__ import annotations

import configparser
import glob
import os
from collections.abc import Iterable, Mapping

from .. import atomic
from . import dnf_conf, families
from .base import BlockFile, Wanted
from .books import Book, VersionLockList, VersionLockToml
from .rpm import Rpm

_PLUGIN_CONF = "/etc/dnf/plugins/versionlock.conf"
_PLUGINS = ("usr/lib/python3*/site-packages/dnf-plugins/versionlock.py",
            "usr/lib/python3*/dist-packages/dnf-plugins/versionlock.py")
_DNF4 = ("usr/bin/dnf-3", "usr/bin/dnf4")
_DROP_INS = ("/usr/share/dnf5/libdnf.conf.d", "/etc/dnf/libdnf5.conf.d")


class Dnf(Rpm):
    """The backend for Red Hat's systems and their kin. A host with both dnf 4 and dnf 5 is pinned for both."""

    name = "dnf"
    programs = ("dnf", "yum", "packagekitd")
    pid_files = ("/var/cache/dnf/metadata_lock.pid", "/var/lib/dnf/rpmdb_lock.pid", "/run/yum.pid")

    def has5(self) -> bool:
        """Say whether libdnf5 works here."""
        return os.path.exists(self.path("/usr/bin/dnf5"))

    def has4(self) -> bool:
        """Say whether dnf 4 does; where only ``dnf`` is there, it is that unless it is dnf 5 by another name."""
        if any(os.path.exists(self.path(path)) for path in _DNF4):
            return True
        return os.path.exists(self.path("/usr/bin/dnf")) and not self.has5()

    def lock_list(self) -> str | None:
        """The file that dnf 4's versionlock plugin reads, None where the plugin is absent or switched off."""
        if not any(glob.glob(self.path(pattern)) for pattern in _PLUGINS):
            return None
        parser = configparser.ConfigParser()
        try:
            parser.read_string(self.text(_PLUGIN_CONF) or "")
            if not parser.getboolean("main", "enabled", fallback=True):
                return None
        except (configparser.Error, ValueError):
            return None
        return parser.get("main", "locklist", fallback=None) or None

    def books(self) -> list[Book]:
        """One for each dnf."""
        books: list[Book] = []
        if self.has4():
            path = self.lock_list()
            if path:
                books.append(VersionLockList(path))
            if not path or (self.names & dnf_conf.WITHOUT_PLUGINS and not self.has5()):
                books.append(dnf_conf.Excludes())
        if self.has5():
            books.append(VersionLockToml())
        return books

    def former_book(self, path: str) -> Book | None:
        """Exclusions after the plugin came, and its list after it went."""
        if path == dnf_conf.PATH:
            return dnf_conf.Excludes()
        return VersionLockList(path) if path.endswith(".list") else None

    def extra_files(self, wanted: Wanted, texts: dict[str, str | None]) -> list[BlockFile]:
        """How many kernels may stand side by side: dnf spares the running one only, and throws out the oldest."""
        parts = {name: families.kernel_part(name) for name in self._packages}
        kernels = max([len(self._packages[name]) for name, part in parts.items() if part == "image"], default=0)
        pinned = any(parts.get(name) in ("image", "meta") for name in wanted.hold)
        about = pinned or (wanted.pin_set == "kernel" and not wanted.hold)
        if not about:
            return []
        main = texts.get(dnf_conf.PATH, self.text(dnf_conf.PATH)) or ""
        limit = dnf_conf.limit_of(main)
        only5 = not self.has4()
        inner = None
        if not pinned:
            main = dnf_conf.restore_limit(main)
        elif only5 and limit is None:
            mine = self._other_limit()
            inner = dnf_conf.drop_in() if mine is None or not dnf_conf.enough(mine, kernels) else None
        elif limit is None or not dnf_conf.enough(limit, kernels):
            main = dnf_conf.raise_limit(main)
        if main or texts.get(dnf_conf.PATH) is not None or self.text(dnf_conf.PATH) is not None:
            texts[dnf_conf.PATH] = main
        return [BlockFile(dnf_conf.DROP_IN, inner)] if self.has5() else []

    def _other_limit(self) -> int | None:
        """What dnf 5's drop-ins say, but for ours."""
        files = {os.path.basename(p): p for directory in _DROP_INS
                 for p in sorted(glob.glob(os.path.join(self.path(directory), "*.conf")))}
        files.pop(os.path.basename(dnf_conf.DROP_IN), None)
        limits = [dnf_conf.limit_of(atomic.read_text(files[name]) or "") for name in sorted(files)]
        return next((one for one in reversed(limits) if one is not None), None)

    def _program(self) -> list[str]:
        return ["dnf5" if self.has5() and not self.has4() else "dnf", "-q", "-y"]

    def candidates(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """The newest version each name could be installed in now, from the cached lists, with locks in force."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        argv = [*self._program(), "-C", "repoquery", "--available", "--latest-limit=1", "--qf", "%{name}|%{evr}\\n"]
        found: dict[str, str | None] = {}
        for line in self.call([*argv, *wanted], "asking dnf for candidates").splitlines():
            name, mark, evr = line.strip().partition("|")
            if mark:
                found[name] = evr
        return found

    def manual(self, names: Iterable[str]) -> set[str]:
        """Asked of ``dnf repoquery --userinstalled``."""
        wanted = sorted(set(names))
        if not wanted:
            return set()
        argv = [*self._program(), "-C", "repoquery", "--userinstalled", "--qf", "%{name}\\n", *wanted]
        return set(self.call(argv, "asking dnf what a person asked for").split()) & set(wanted)

    def mark(self, manual: Iterable[str], auto: Iterable[str]) -> None:
        """One call of ``dnf mark`` a direction."""
        five = self.has5() and not self.has4()
        for verb, names in (("user" if five else "install", sorted(set(manual))),
                            ("dependency" if five else "remove", sorted(set(auto)))):
            if names:
                self.call([*self._program(), "-C", "mark", verb, *names], f"marking packages ({verb})")
