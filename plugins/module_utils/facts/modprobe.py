# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""modprobe's configuration: what is blocked, and which file a name stands for.

Source: modprobe.d(5). Files of the same name in a directory named earlier replace the later ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .tree import Tree

DIRECTORIES = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
_NOTHING = re.compile(r"^(?:/usr)?/?(?:s?bin/)?(?:false|true|:)\b")


@dataclass
class Settings:
    """Directives by module name; names are compared with ``-`` and ``_`` alike."""

    blacklisted: set[str] = field(default_factory=set)
    installs: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Take the directives of one file."""
        for line in text.replace("\\\n", " ").splitlines():
            words = line.split("#", 1)[0].split()
            if len(words) >= 2 and words[0] == "blacklist":
                self.blacklisted.add(plain(words[1]))
            elif len(words) >= 3 and words[0] == "install":
                self.installs.setdefault(plain(words[1]), " ".join(words[2:]))
            elif len(words) >= 3 and words[0] == "alias":
                self.aliases.setdefault(plain(words[1]), words[2])

    def blocks(self, module: str) -> bool:
        """Whether udev or modprobe would not load a module by its alias."""
        name = plain(module)
        return (
            name in self.blacklisted
            or self.aliases.get(name) == "off"
            or bool(_NOTHING.match(self.installs.get(name, "")))
        )

    def alias(self, module: str) -> str:
        """The module that is loaded for this name: by alias, or by ``install … modprobe -i X`` (Debian)."""
        name = plain(module)
        if name in self.aliases and self.aliases[name] != "off":
            return self.aliases[name]
        found = re.search(r"modprobe\s+(?:-\S+\s+)*([A-Za-z0-9_-]+)", self.installs.get(name, ""))
        return found.group(1) if found else module


def plain(module: str) -> str:
    return module.replace("-", "_")


def settings(tree: Tree) -> Settings:
    """What the files say together. Raises OSError when one cannot be read."""
    chosen: dict[str, str] = {}
    for directory in DIRECTORIES:
        for path in tree.glob(directory, "*.conf"):
            chosen.setdefault(path.rsplit("/", 1)[-1], path)
    result = Settings()
    for _name, path in sorted(chosen.items()):
        result.add(tree.text(path) or "")
    return result


def blocked_by_cmdline(cmdline: str, module: str) -> bool:
    """``modprobe.blacklist=``, ``module_blacklist=`` and dracut's ``rd.driver.blacklist=`` with the former."""
    for word in cmdline.split():
        key, _mark, value = word.partition("=")
        if key in ("modprobe.blacklist", "module_blacklist") and plain(module) in map(plain, value.split(",")):
            return True
    return False


def of(texts: Iterable[str]) -> Settings:
    """The settings of given texts, in their order."""
    result = Settings()
    for text in texts:
        result.add(text)
    return result
