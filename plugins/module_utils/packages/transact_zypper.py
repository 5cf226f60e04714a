# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions of zypper: one ``zypper install`` that also removes (``-name``).

Without ``--force-resolution`` zypper asks how to solve a conflict and, not being answered, ends with status 0 and
nothing done. With it a package that needs what goes is taken out too, which the forecast shows.

Source: zypper(8), section Exit codes.
"""
from __future__ import annotations

import html
import re

from ..state import DIRECTORY
from .base import PackageError, Runner
from .transact_rpm import Gone, RpmTransaction, as_asked, chosen_files
from .transaction import Todo, Wish, call, reason

_GOOD = (0, 100, 101, 102, 103, 106)  # done; the others say what is to be patched, restarted, or was not refreshed
# Never made: zypper finds no repository there. With --disable-repositories it would not find the package files either,
# which it takes for one of its own.
_NO_REPOSITORIES = f"{DIRECTORY}/no-repositories"
_MARKS = ("Problem", "No provider", "Solution", "File conflict", "error", "Error", "Locked", "'")
_REMOVED = re.compile(r"<to-remove>(.*?)</to-remove>", re.DOTALL)
_SOLVABLE = re.compile(r"<solvable ([^>]*)>")
_ATTRIBUTE = re.compile(r"\b(type|name|edition|arch)=\"([^\"]*)\"")
_TEXT = re.compile(r"<message type=\"error\">(.*?)</message>|<description>(.*?)</description>", re.DOTALL)


class ZypperTransaction(RpmTransaction):
    """zypper, by ``run``."""

    name = "zypper"

    def __init__(self, run: Runner) -> None:
        super().__init__(run)

    def refresh(self, wish: Wish) -> None:
        """See the interface. Keys are rpm's already; one that is not is refused, as nobody is asked."""
        result = call(self.run, ["zypper", "--non-interactive", "refresh"], timeout=wish.timeout, env=_lock(wish))
        if result.rc not in _GOOD or result.rc == 106 or result.timed_out:
            raise PackageError(f"The package lists cannot be fetched: {reason(result, _MARKS, 'zypper')}")

    def _argv(self, todo: Todo, wish: Wish, *options: str) -> list[str]:
        files = chosen_files(todo, self.run)
        specs = [files.get(name) or (f"{name}={version}" if version else name)
                 for name, version in sorted(todo.install.items())]
        recommends = "--recommends" if wish.recommends else "--no-recommends"
        force = ["--force"] if todo.reinstall else []
        force += ["--download-only"] if wish.fetch else []
        force += ["--allow-unsigned-rpm"] if files else []  # the digests of the files were looked at
        alone = ["--reposd-dir", _NO_REPOSITORIES] if wish.only_files else []
        return ["zypper", "--non-interactive", "--no-refresh", *alone, *options, "install",
                "--auto-agree-with-licenses",
                "--oldpackage", "--force-resolution", "--no-confirm", recommends, *force, *specs, *todo.reinstall,
                *(f"-{spec}" for spec in self._specs(todo.remove))]

    def _specs(self, names: tuple[str, ...]) -> list[str]:
        """As zypper takes them: NAME=VERSION for one of several versions."""
        labels = {f"{one.name}-{one.version}{arch}": f"{one.name}={one.version}"
                  for one in (self._all() if any(re.search(r"-\d", name) for name in names) else ())
                  for arch in ("", f".{one.arch}")}
        return [labels.get(name, name) for name in names]

    def forecast(self, todo: Todo, wish: Wish) -> list[str]:
        """See the interface."""
        if wish.held or not (todo.install or todo.remove or todo.reinstall):
            return []  # zypper has no way to look past locks
        argv = self._argv(todo, wish, "--xmlout")
        argv.insert(argv.index("install") + 1, "--dry-run")
        result = call(self.run, argv, timeout=600, env=_lock(wish))
        if result.rc not in _GOOD or result.timed_out:
            said = [html.unescape(next(filter(None, match))).rstrip(".") for match in _TEXT.findall(result.out)]
            raise PackageError("zypper cannot make this transaction: "
                               f"{'; '.join(said[:4]) or reason(result, _MARKS, 'zypper')}. No package was touched")
        part = _REMOVED.search(result.out)
        rows = [dict(_ATTRIBUTE.findall(row)) for row in _SOLVABLE.findall(part.group(1))] if part else []
        return [as_asked(Gone(row.get("name", ""), row.get("edition", ""), row.get("arch", "")), todo.remove)
                for row in rows if row.get("type") == "package"]

    def carry_out(self, todo: Todo, wish: Wish) -> None:
        """See the interface."""
        if todo.duplicates:
            self.erase(todo.duplicates, wish.timeout)
        if todo.install or todo.remove or todo.reinstall:
            result = call(self.run, self._argv(todo, wish), timeout=wish.timeout, env=_lock(wish), wish=wish)
            if result.rc not in _GOOD or result.timed_out:
                raise PackageError(f"zypper failed: {reason(result, _MARKS, 'zypper')}")


def _lock(wish: Wish) -> dict[str, str]:
    return {"ZYPP_LOCK_TIMEOUT": str(int(wish.lock_timeout))}
