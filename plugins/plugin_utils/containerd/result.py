# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for, and what a decision about containerd's configuration consists of."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import removal
from .diff import report
from .edits import FileEdit, new_text
from .generation import RUNTIME_PATH
from .settings import NONE, Settings
from .toml_text import Path


@dataclass(frozen=True)
class Ask:
    """What containerd is to be like."""

    default_runtime: str | None = None
    runtime_path: str = RUNTIME_PATH
    settings: Settings = NONE
    state: str = "present"  # present|absent: whether the runtime is to be there
    record: Mapping[str, Mapping[str, Any]] | None = None  # what was set on this host before, by file


@dataclass(frozen=True)
class Note:
    """Something a person should know: thing, reason (both in ``summary``) and way out."""

    kind: str
    severity: str  # error|warning|info
    subject: str
    summary: str
    remedy: str


@dataclass(frozen=True)
class Decision:
    """What to do, why not, and what a person should know."""

    strategy: str  # drop_in|edit|remove|detect|none
    owner: str
    version: str | None  # of containerd
    config_version: int | None
    plugin: str | None
    path: str
    drop_in_path: str
    runtime_path: str
    default_runtime: str | None = None
    copied_from: str | None = None
    low_level_runtime: str | None = None
    refused: str | None = None
    edits: tuple[FileEdit, ...] = ()
    differences: tuple[tuple[Path, Any, Any], ...] = ()
    notes: tuple[Note, ...] = field(default_factory=tuple)
    again: bool = False  # the files are right and its owner has not read them yet
    units: tuple[str, ...] = ()  # what is restarted: the first of these that is there
    disturbs: bool = False  # the owner restarts containerd by itself when a file of ours appears
    program: str = "containerd"
    settings: Settings = NONE
    base: Mapping[str, str] = field(default_factory=dict)  # texts that the edits start from, where these differ
    trial: str | None = None  # the main file of what containerd is asked to read before anything is placed

    @property
    def restart(self) -> bool:
        """Whether containerd has to read its files again."""
        return bool(self.edits) or bool(self.base) or self.again

    @property
    def paths(self) -> list[str]:
        """The files that change."""
        return list(dict.fromkeys([*(edit.path for edit in self.edits), *self.base]))

    @property
    def drop_in(self) -> str | None:
        """The text of the drop-in, where a new one is written."""
        for edit in self.edits:
            if edit.path == self.drop_in_path and edit.document is not None:
                return new_text(edit.document)
        return None

    def records(self, files: Mapping[str, str]) -> dict[str, Any]:
        """What the host is to remember of the edits, by file, so that they can be taken back."""
        if self.strategy == "remove":
            return {}
        return {edit.path: removal.note(edit, self.base.get(edit.path, files.get(edit.path))) for edit in self.edits}

    def as_dict(self) -> dict[str, Any]:
        """The form that stands in the plan, JSON-serialisable."""
        return {
            "version": self.version, "config_version": self.config_version, "plugin": self.plugin,
            "strategy": self.strategy, "owner": self.owner, "path": self.path, "drop_in_path": self.drop_in_path,
            "drop_in": self.drop_in, "files": self.paths, "restart": self.restart,
            "runtime_path": self.runtime_path, "default_runtime": self.default_runtime, "refused": self.refused,
            "low_level_runtime": self.low_level_runtime, "differences": report(list(self.differences)),
            "units": list(self.units), "disturbs": self.disturbs, "program": self.program,
        }
