# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of grub.cfg that are ours: each is also written by a file in /etc/grub.d, so that a new menu has it again."""
from __future__ import annotations

import re
import shlex

from ..facts import grub
from .loader import BootError

LOST_PATH = "/etc/grub.d/01_baremetal_nvidia"
TRIAL_PATH = "/etc/grub.d/42_baremetal_nvidia_trial"
_FIRST_HEADER = "00_header"
_WITHOUT = ("savedefault", "recordfail")    # both write the environment; neither is for an entry that starts once
_ARGUMENTS = re.compile(r"^(\s*(?:linux|linuxefi|linux16)\s+\S+)(.*)$")


def lost(entry: str) -> str:
    """Commands for a host whose environment block got lost: the default starts, and not the first one of the menu."""
    return ('if [ -z "${saved_entry}" -a "${boot_once}" != "true" ]; then\n'
            f"   set default={_quoted(entry)}\nfi\n")


def script(body: str) -> str:
    """A file of /etc/grub.d that puts ``body`` into the menu."""
    return ("#!/bin/sh\nexec tail -n +4 $0\n"
            "# Managed by baremetal.nvidia: changes by hand are undone by its next run.\n" + body)


def has_place(text: str) -> bool:
    """Whether a grub.cfg was made by grub-mkconfig, so that a part can stand before its entries."""
    return f"### END /etc/grub.d/{_FIRST_HEADER} ###\n" in text


def put(text: str, path: str, body: str | None) -> str:
    """``text`` of a grub.cfg with the part that file ``path`` writes set to ``body``; None takes it out."""
    name = path.rsplit("/", 1)[-1]
    begin, end = f"### BEGIN /etc/grub.d/{name} ###\n", f"### END /etc/grub.d/{name} ###\n"
    start = text.find(begin)
    if start >= 0:
        stop = text.find(end, start)
        if stop < 0:
            raise BootError(f"grub.cfg has no end of the part of {path}: run grub-mkconfig")
        before, after = text[:start], text[stop + len(end):].removeprefix("\n")
    else:
        header = f"### END /etc/grub.d/{_FIRST_HEADER} ###\n"
        at = text.find(header)
        if name < "10" and at < 0:
            return text
        cut = at + len(header) if name < "10" else len(text)
        if body is None:
            return text
        before, after = text[:cut] + "\n", text[cut:].removeprefix("\n")
    if body is None:
        return before.removesuffix("\n") + ("\n" if after else "") + after
    return f"{before}{begin}{body}{end}\n{after}"


def trial(text: str, entry: grub.Entry, entry_id: str, arguments: str) -> str:
    """The menu entry of ``text`` once more, with an id and a title of its own and more arguments for the kernel."""
    if entry.lines is None:
        raise BootError(f"the entry {entry.path} does not stand in grub.cfg")
    first, *body = text.splitlines()[entry.lines[0]:entry.lines[1]]
    lines = [_header(first, entry_id, f"{entry.title} (trial boot)")]
    added = False
    for line in body[:-1]:
        if line.strip() in _WITHOUT:
            continue
        found = _ARGUMENTS.match(line)
        if found:
            added = True
            line = found.group(1) + with_arguments(found.group(2), arguments)
        lines.append("\t" + line.strip())
    if not added:
        raise BootError(f"the entry {entry.path} starts no Linux kernel directly (Xen?): it cannot be tried")
    return "\n".join([*lines, "}", ""])


def with_arguments(line: str, arguments: str) -> str:
    """A kernel command line with more arguments: at its end, or before what belongs to init."""
    head, mark, rest = line.partition(" -- ")
    return f"{head.rstrip()} {arguments}{mark}{rest}"


def _header(line: str, entry_id: str, title: str) -> str:
    words = shlex.split(line.strip().rstrip("{"))
    kept: list[str] = []
    skip = False
    for word in words[2:]:
        if skip or word.startswith("--id="):
            skip = False
        elif word in ("$menuentry_id_option", "--id"):
            skip = True
        else:
            kept.append(word if re.fullmatch(r"[-$\w.,=+]+", word) else _quoted(word))
    return " ".join(["menuentry", _quoted(title), *kept, "$menuentry_id_option", _quoted(entry_id), "{"])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
