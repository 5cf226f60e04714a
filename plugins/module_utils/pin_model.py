# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pin is asked for, the steps to it, and how they are told."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .packages.base import BlockFile


@dataclass(frozen=True)
class Request:
    """What is asked for. ``packages`` and ``deny`` may hold globs, ``patterns`` are regular expressions over the whole
    name of what is installed; ``lifted`` names stay in the set but are free."""

    pin_set: str = "kernel"
    present: bool = True
    packages: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    manual: tuple[str, ...] = ()
    lifted: tuple[str, ...] = ()
    why: str = ""
    lock_timeout: float = 300.0


@dataclass
class Outcome:
    """What was (or, in check mode, would be) done, and what is held now."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    held: list[dict[str, Any]] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    waited: float = 0.0


@dataclass
class Steps:
    """The difference between host and request."""

    wanted: set[str]                 # installed names that shall be held by this set
    blocked: set[str]                # names and globs that shall have no candidate
    hold: set[str]
    release: set[str]
    foreign: set[str]                # held by people
    mark: set[str]
    unmark: set[str]
    files: list[tuple[BlockFile, str | None]]     # those that differ, with the present content
    entries: dict[str, list[str]]    # what is ours afterwards in files that people write too, by path


def actions(steps: Steps) -> list[str]:
    """One line a thing that is done."""
    lines = [f"hold {name}" for name in sorted(steps.hold)] + [f"release {name}" for name in sorted(steps.release)]
    lines += [f"{'remove' if file.content is None else 'write'} {file.path}" for file, _current in steps.files]
    return lines + [f"mark {n} manual" for n in sorted(steps.mark)] + [f"mark {n} auto" for n in sorted(steps.unmark)]


def _lines(names: Iterable[str]) -> str:
    return "".join(f"{name}\n" for name in sorted(names))


def diff(held: set[str], steps: Steps) -> list[dict[str, str]]:
    """What ``--diff`` shows: the holds as a list, each file, the marks."""
    parts = [("package holds", _lines(held), _lines((held | steps.hold) - steps.release)),
             ("marked as installed by hand", _lines(steps.unmark), _lines(steps.mark))]
    parts += [(file.path, current or "", file.content or "") for file, current in steps.files]
    return [{"before_header": title, "after_header": title, "before": before, "after": after}
            for title, before, after in parts if before != after]
