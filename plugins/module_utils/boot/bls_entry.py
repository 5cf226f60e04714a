# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trial's entry where entries are files (BLS): a copy beside the kernel's own, below all others in GRUB's order."""
from __future__ import annotations

from ..facts import bls, grub
from ..facts.tree import Tree
from .loader import TRIAL_BLS, BootError
from .sections import with_arguments


def path(name: str) -> str:
    """The file of an entry."""
    return f"{bls.GRUB_DIRECTORY}/{name}.conf"


def is_one(file: str) -> bool:
    """Whether a path is that of a trial's entry."""
    return file.startswith(bls.GRUB_DIRECTORY) and file.endswith(f"{TRIAL_BLS}.conf")


def left(tree: Tree) -> list[str]:
    """The files of trial entries that are there. Raises OSError."""
    return [one for one in tree.glob(bls.GRUB_DIRECTORY, "*.conf") if is_one(one)]


def trial(tree: Tree, entry: grub.Entry, arguments: str) -> tuple[str, str]:
    """Name and text of the trial's entry for the kernel that ``entry`` starts. Raises BootError, OSError."""
    source = entry.id or ""
    text = tree.text(path(source), 65536)
    if text is None:
        raise BootError(f"{path(source)} is not there")
    name = f"{source.rsplit('-', 2)[0] if source.count('-') > 1 else source}-{TRIAL_BLS}"
    if bls.compare_names(name, source) >= 0:
        raise BootError(f"the name of {path(source)} sorts below that of a trial's entry ({name}): GRUB would take the "
                        "trial for the newest kernel")
    lines = []
    done = False
    for line in text.splitlines():
        key, _mark, value = line.strip().partition(" ")
        if key == "title":
            line = f"title {value.strip()} (trial boot)"
        elif key == "options" and not done:
            line, done = f"options {with_arguments(value.strip(), arguments)}", True
        lines.append(line)
    if not done:
        lines.append(f"options {arguments}")
    return name, "\n".join(lines) + "\n"
