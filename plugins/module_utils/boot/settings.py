# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes new menus follow the saved entry, and keeps a new kernel from making itself the default. Pure text."""
from __future__ import annotations

import re
from dataclasses import dataclass

from ..facts import boot, grub
from ..facts.tree import Tree

SNIPPET_PATH = "/etc/default/grub.d/zz-baremetal-nvidia.cfg"
DEFAULTS_PATH = "/etc/default/grub"
SYSCONFIG_PATH = "/etc/sysconfig/kernel"
_WANTED = {"GRUB_DEFAULT": "saved", "GRUB_SAVEDEFAULT": "false"}
# a line of ours in a file of somebody else stands below one of these, so that what was there can come back
_FORMER = "# before baremetal.nvidia: "
_ADDED = "# added by baremetal.nvidia:"
_OURS = ("UPDATEDEFAULT=no", *(f"{key}={value}" for key, value in _WANTED.items()))


@dataclass(frozen=True)
class Edit:
    """A file as it is (None: absent) and as it is to be."""

    path: str
    before: str | None
    after: str


def snippet() -> str:
    """The file in /etc/default/grub.d: the default comes from the environment block, and a choice at the console
    does not become the default."""
    return ("# Managed by baremetal.nvidia (module boot_default): changes by hand are undone by its next run.\n"
            "GRUB_DEFAULT=saved\nGRUB_SAVEDEFAULT=false\n")


def menu_edits(tree: Tree) -> list[Edit]:
    """The edits after which grub-mkconfig writes a menu that follows the saved entry. Raises OSError."""
    if boot.snippets_count(tree):
        before = _text(tree, SNIPPET_PATH)
        return [] if before == snippet() else [Edit(SNIPPET_PATH, before, snippet())]
    before = _text(tree, DEFAULTS_PATH)
    after = before or ""
    for key, value in _WANTED.items():
        is_there = grub.settings([after]).get(key)
        if is_there != value and not (key == "GRUB_SAVEDEFAULT" and is_there is None):    # absent is false
            after = assign(after, key, value)
    return [] if after == before else [Edit(DEFAULTS_PATH, before, after)]


def moves_default(tree: Tree) -> bool:
    """Whether GRUB_DEFAULT is something that a new menu would follow instead of the saved entry. Raises OSError."""
    return boot.grub_settings(tree).get("GRUB_DEFAULT") not in (None, "", _WANTED["GRUB_DEFAULT"])


def update_default_edits(tree: Tree, bls: bool) -> list[Edit]:
    """The edit after which installing a kernel does not change the default (UPDATEDEFAULT of EL). Raises OSError."""
    before = _text(tree, SYSCONFIG_PATH)
    value = grub.settings([before or ""]).get("UPDATEDEFAULT")
    if value == "no" or (value is None and not (bls and tree.isdir("/etc/sysconfig"))):
        return []
    return [Edit(SYSCONFIG_PATH, before, assign(before or "", "UPDATEDEFAULT", "no"))]


def own_edits(tree: Tree) -> list[Edit]:
    """The edits after which files of others are as before ours. Raises OSError."""
    found = []
    for path in (DEFAULTS_PATH, SYSCONFIG_PATH):
        before = _text(tree, path)
        after = restored(before or "")
        if before is not None and after != before:
            found.append(Edit(path, before, after))
    return found


def assign(text: str, key: str, value: str) -> str:
    """Shell assignments with ``key`` set to ``value``: where it stands last, else at the end. Other lines stay.

    A comment above it says what stood there.
    """
    lines = text.splitlines()
    at = [index for index, line in enumerate(lines) if re.match(rf"\s*(export\s+)?{key}=", line)]
    if at:
        noted = at[-1] > 0 and lines[at[-1] - 1].startswith((_FORMER, _ADDED))
        lines[at[-1]:at[-1] + 1] = [*([] if noted else [_FORMER + lines[at[-1]]]), f"{key}={value}"]
    else:
        lines += [_ADDED, f"{key}={value}"]
    return "\n".join(lines) + "\n"


def restored(text: str) -> str:
    """``text`` as it was before ``assign``. A line that somebody changed since then stays."""
    if _FORMER not in text and _ADDED not in text:
        return text
    lines: list[str] = []
    kept = text.splitlines()
    while kept:
        line = kept.pop(0)
        ours = bool(kept) and kept[0] in _OURS
        if line.startswith(_FORMER):
            if ours:
                kept.pop(0)
                lines.append(line[len(_FORMER):])
        elif line == _ADDED:
            if ours:
                kept.pop(0)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n" if lines else ""


def _text(tree: Tree, path: str) -> str | None:
    return tree.text_exact(path)
