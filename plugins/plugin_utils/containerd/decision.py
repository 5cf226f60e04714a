# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be done with containerd's configuration on one host: pure, from texts to a decision.

``decide`` is what the planner calls with facts (whose texts have their secrets masked), ``work_out`` is what it rests
on and what the action calls with the files themselves. Neither raises on any content. How the files then look, byte
for byte, is ``editor``'s part.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import theirs
from .generation import MAIN_PATH, RUNTIME_PATH, generation
from .merge import table_at
from .owners import Owner
from .owners import owner as owner_of
from .result import Ask, Decision, Note
from .settings import NONE, Settings
from .want import Refusal
from .work import Work

__all__ = ["Decision", "Note", "decide", "work_out"]

_ERRORS = ("invalid_toml", "version_too_high", "drop_in_newer", "missing_import", "plugin_names", "mixed_versions",
           "default_unknown", "overridden", "unexpected_type", "shadowed", "side_effect", "registry_mirrors", "no_nri")


def decide(containers: Mapping[str, Any] | None, *, default_runtime: str | None = None,
           runtime_path: str = RUNTIME_PATH, version: str | None = None, settings: Settings = NONE,
           state: str = "present", record: Mapping[str, Any] | None = None) -> Decision:
    """Decide from ``facts["containers"]``. ``version`` is the one that is to be there, where it is another one."""
    containerd = table_at(containers, ("containerd",))
    config = table_at(containerd, ("config",))
    main = _text(config.get("path")) or MAIN_PATH
    files: dict[str, str] = {path: text for path, text in table_at(config, ("drop_ins",)).items()
                             if isinstance(text, str) and isinstance(path, str)}
    if isinstance(config.get("text"), str):
        files[main] = config["text"]
    return work_out(files, main, version or _text(containerd.get("version")), owner=_text(containerd.get("owner")),
                    default_runtime=default_runtime, runtime_path=runtime_path, settings=settings, state=state,
                    record=record)


def work_out(files: Mapping[str, str], main: str, version: str | None, *, owner: str | None = "host",
             default_runtime: str | None = None, runtime_path: str = RUNTIME_PATH, settings: Settings = NONE,
             state: str = "present", record: Mapping[str, Any] | None = None) -> Decision:
    """Decide from the files themselves (path: text, the main file absent if it is not there)."""
    ask = Ask(default_runtime, runtime_path, settings, state, record)
    who = owner_of(owner)
    if who.name == "k0s" and main in files and not theirs.managed_by_k0s(files[main]):
        who = owner_of("k0s, by hand")  # the person took the file over
    return _decision(Work(files, main, version, who, ask))


def _decision(work: Work) -> Decision:
    gen = generation(work.version)
    who: Owner = work.who
    try:
        if gen is None:
            raise Refusal("unknown_version", f"the version of containerd ({work.version!r}) is not known",
                          "see that `containerd --version` answers on the host")
        if work.ask.state == "absent":
            return work.taken_out(gen)
        return work.ours(gen) if who.host_like else theirs.decide(work, gen)
    except Refusal as refusal:
        severity = "error" if refusal.kind in _ERRORS and (who.host_like or who.name == "operator") else "warning"
        if who.makes_handler and refusal.kind == "owner_leaves":
            severity = "info" if who.name == "operator" else "warning"
        work.note(refusal.kind, severity, refusal.summary, refusal.remedy)
        return work.made("none", refused=str(refusal))


def _text(item: Any) -> str | None:
    return item if isinstance(item, str) else None
