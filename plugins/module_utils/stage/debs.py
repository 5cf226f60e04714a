# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's and Ubuntu's packages: what a transaction would move, the former packages kept, and the way back.

Former versions are packed again from what is installed, since an archive keeps only the newest; the packages that an
update of a kernel replaces (metas, the build programs of headers) are small.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..packages import families
from .errors import StageError
from .program import TIMEOUT, Program, Runner
from .snapshot import at

_FORMAT = r"${binary:Package}\t${Version}\t${db:Status-Abbrev}\n"
_INST = re.compile(r"^Inst (?P<name>\S+)(?: \[(?P<old>[^\]]+)\])? \((?P<new>\S+)")
_REMV = re.compile(r"^Remv (\S+)")
_SCRIPTS = ("preinst", "postinst", "prerm", "postrm", "config", "templates", "triggers", "shlibs", "symbols",
            "conffiles")
_OUR_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "BAREMETAL_NVIDIA_ALLOW": "1"}
_CONF = ("--force-confdef", "--force-confold")


class Debs(Program):
    """dpkg of the tree ``root``. ``shims`` is the directory whose programs stand in for update-grub."""

    manager = "apt"

    def __init__(self, run: Runner, root: str = "/", shims: str | None = None) -> None:
        super().__init__(run, _OUR_ENVIRONMENT, shims)
        self.root = root

    def packages(self) -> dict[str, str]:
        """Everything that dpkg has of a package, by name: version and state (``ii``, ``hi``, ``iU``)."""
        found = {}
        for line in self._call(["dpkg-query", "-W", f"--showformat={_FORMAT}"], "reading the packages").splitlines():
            name, version, state = line.split("\t")
            if state.strip() not in ("un", "rc", "pn", "hn"):
                found[name] = f"{version} {state.strip()[1:2]}"
        return found

    def moves(self, wanted: Mapping[str, str | None]) -> dict[str, tuple[str | None, str]]:
        """What installing ``wanted`` would move, by apt's own resolver: name -> (former, new).

        Raises StageError where it would remove something, or bring in a kernel that was not asked for.
        """
        specs = [f"{name}={version}" if version else name for name, version in sorted(wanted.items())]
        text = self._call(["apt-get", "-s", "-q", "-o", "APT::Get::allow-change-held-packages=true",
                           "--no-install-recommends", "install", *specs], "asking apt what would move")
        found: dict[str, tuple[str | None, str]] = {}
        for line in text.splitlines():
            match, gone = _INST.match(line), _REMV.match(line)
            if gone:
                raise StageError(f"apt would remove {gone.group(1)} for {', '.join(specs)}: nothing is taken out for a "
                                 "kernel. Put the dependency right first")
            if match:
                found[match["name"]] = (match["old"], match["new"])
        more = sorted(name for name in found if name not in wanted and families.kernel_part(name) in ("image", "meta"))
        if more:
            raise StageError(f"apt would bring in {', '.join(more)} as well, for which nothing was proved")
        return found

    @staticmethod
    def lost(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
        """Packages that are gone."""
        return sorted(set(before) - set(now))

    def keep(self, moved: Mapping[str, tuple[str | None, str]], into: str) -> dict[str, str]:
        """Pack what will be replaced again, from its files; name -> path of the package."""
        kept = {}
        for name, (old, _new) in moved.items():
            if old is not None:
                kept[name] = self._repack(name, old, into)
        return kept

    def _repack(self, name: str, version: str, into: str) -> str:
        tree = os.path.join(into, f"{name.replace(':', '_')}.tree")
        shutil.rmtree(tree, ignore_errors=True)
        os.makedirs(os.path.join(tree, "DEBIAN"), mode=0o755)
        control = self._call(["dpkg-query", "-W", "-f", "${Package}", name], "reading a package") and self._call(
            ["dpkg-query", "--status", name], "reading a package")
        self._control(control, os.path.join(tree, "DEBIAN/control"))
        plain = name.split(":")[0]
        for script in _SCRIPTS:
            for stem in (name, plain):
                source = at(self.root, f"/var/lib/dpkg/info/{stem}.{script}")
                if os.path.isfile(source):
                    shutil.copy2(source, os.path.join(tree, "DEBIAN", script))
                    break
        for path in self._call(["dpkg-query", "-L", name], "reading a package's files").splitlines():
            self._copy(path, tree)
        target = os.path.join(into, f"{plain}.deb")
        self._call(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, target], f"packing {name} {version} again")
        shutil.rmtree(tree)
        return target

    @staticmethod
    def _control(status: str, target: str) -> None:
        """The control file is the status without what dpkg adds; conffiles are a file of their own."""
        lines, skipping = [], False
        for line in status.splitlines():
            if not line.startswith(" "):
                skipping = line.startswith(("Status:", "Conffiles:", "Config-Version:"))
            if not skipping:
                lines.append(line)
        with open(target, "w", encoding="utf-8") as handle:
            handle.write("\n".join(lines) + "\n")

    def _copy(self, path: str, tree: str) -> None:
        source, target = at(self.root, path), os.path.join(tree, path.lstrip("/"))
        if path in ("/.", "/") or path.startswith(("diverted", "package diverts", "locally diverted")):
            return
        if os.path.isdir(source) and not os.path.islink(source):
            os.makedirs(target, exist_ok=True)
            os.chmod(target, os.stat(source).st_mode & 0o7777)
        elif os.path.lexists(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)

    def own(self, data: Mapping[str, Any]) -> set[str]:
        """What of the packages the transaction of snapshot ``data`` moves: named by apt, or of the kernel.

        All else came or went by somebody else's hand: a cut-off run may be days old when it is taken back.
        """
        moved = set(data["moved"])
        return {name for name in {*data["packages"], *self.packages()}
                if name in moved or name.partition(":")[0] in moved or data["release"] in name}

    def back(self, before: Mapping[str, str], former: Mapping[str, str], own: Collection[str]) -> list[str]:
        """Former versions in, what of ``own`` came in out, half-done packages finished; what was done, as lines.

        Works on whatever a cut-off transaction left: dpkg itself, unlike apt, does not mind.
        """
        done = []
        now = self.packages()
        again = [path for name, path in former.items() if _differs(name, before, now) and os.path.exists(path)]
        if again:
            self._call(["dpkg", *_CONF, "--force-downgrade", "--force-depends", "--force-hold", "-i", *again],
                       "putting former packages back", TIMEOUT)
            done += [f"{os.path.basename(path)[:-len('.deb')]} is back at its former version" for path in again]
        came = sorted(name for name in now if name not in before and name in own)
        if came:
            self._call(["dpkg", "--force-depends", "--force-remove-reinstreq", "--force-hold", "--purge", *came],
                       "taking out what came in", TIMEOUT)
            done += [f"{name} is out" for name in came]
        half = sorted(name for name, state in self.packages().items() if not state.endswith(" i"))
        if half:
            self._call(["dpkg", *_CONF, "--configure", "-a"], "finishing half-configured packages", TIMEOUT)
            done += [f"{name} is configured" for name in half]
        return done

    def wrong(self) -> list[str]:
        """Packages that are not whole."""
        return sorted(f"{name} ({state})" for name, state in self.packages().items() if not state.endswith(" i"))

    def installed(self, wanted: Mapping[str, str | None]) -> list[str]:
        """Those of ``wanted`` that are not installed at their version."""
        now = {name.split(":")[0]: state for name, state in self.packages().items()}
        return sorted(name for name, version in wanted.items()
                      if now.get(name, "").partition(" ")[2] != "i" or version not in (None, now[name].split(" ")[0]))

    def manual(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that count as installed by hand."""
        return sorted(self._call(["apt-mark", "showmanual", *names], "reading marks").split()) if names else []

    def mark(self, before: Mapping[str, Any]) -> list[str]:
        """Marks as they were."""
        names = [name for name in before["moved"] if name in before["packages"]]
        now, was = set(self.manual(names)), set(before["manual"])
        for verb, which in (("manual", was - now), ("auto", (now - was) & set(names))):
            if which:
                self._call(["apt-mark", verb, *sorted(which)], "setting marks")
        return [f"marks of {', '.join(sorted(now ^ was))} are as they were"] if now != was and names else []


def _differs(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a package is another than before. apt leaves out the architecture that dpkg puts behind shared ones."""
    return any(now.get(full) != state for full, state in before.items() if full == name or full.startswith(f"{name}:"))
