# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be done with containerd's configuration on one host: pure, from texts to a decision.

``decide`` is what the planner calls with facts (whose texts have their secrets masked), ``work_out`` is what it rests
on and what the action calls with the files themselves. Neither raises on any content. How the files then look, byte
for byte, is ``editor``'s part.
"""
from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .diff import differences, report
from .edits import MARKER, FileEdit, new_text, outcome, parsed, put
from .generation import (
    CRI_V2,
    DROP_IN_NAME,
    HANDLER,
    MAIN_PATH,
    RUNTIME_PATH,
    RUNTIME_V3,
    Generation,
    generation,
    runtime_plugin,
)
from .merge import Loaded, Problem, cri, file_version, glob_regex, load, resolve_import, says_something, table_at
from .owners import Owner
from .owners import owner as owner_of
from .toml_text import Path
from .want import Refusal, Wanted, wanted

_ERRORS = ("invalid_toml", "version_too_high", "drop_in_newer", "missing_import", "plugin_names", "mixed_versions",
           "default_unknown", "overridden", "unexpected_type", "shadowed", "side_effect")


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

    strategy: str  # drop_in|edit|none
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

    @property
    def restart(self) -> bool:
        """Whether containerd has to read its files again."""
        return bool(self.edits)

    @property
    def drop_in(self) -> str | None:
        """The text of the drop-in, where a new one is written."""
        for edit in self.edits:
            if edit.path == self.drop_in_path and edit.document is not None:
                return new_text(edit.document)
        return None

    def as_dict(self) -> dict[str, Any]:
        """The form that stands in the plan, JSON-serialisable."""
        return {
            "version": self.version, "config_version": self.config_version, "plugin": self.plugin,
            "strategy": self.strategy, "owner": self.owner, "path": self.path, "drop_in_path": self.drop_in_path,
            "drop_in": self.drop_in, "files": [edit.path for edit in self.edits], "restart": self.restart,
            "runtime_path": self.runtime_path, "default_runtime": self.default_runtime, "refused": self.refused,
            "low_level_runtime": self.low_level_runtime, "differences": report(list(self.differences)),
        }


def decide(containers: Mapping[str, Any] | None, *, default_runtime: str | None = None,
           runtime_path: str = RUNTIME_PATH, version: str | None = None) -> Decision:
    """Decide from ``facts["containers"]``. ``version`` counts where no containerd is installed yet."""
    containerd = table_at(containers, ("containerd",))
    config = table_at(containerd, ("config",))
    main = _text(config.get("path")) or MAIN_PATH
    files: dict[str, str] = {path: text for path, text in table_at(config, ("drop_ins",)).items()
                             if isinstance(text, str) and isinstance(path, str)}
    if isinstance(config.get("text"), str):
        files[main] = config["text"]
    return work_out(files, main, _text(containerd.get("version")) or version, owner=_text(containerd.get("owner")),
                    default_runtime=default_runtime, runtime_path=runtime_path)


def work_out(files: Mapping[str, str], main: str, version: str | None, *, owner: str | None = "host",
             default_runtime: str | None = None, runtime_path: str = RUNTIME_PATH) -> Decision:
    """Decide from the files themselves (path: text, the main file absent if it is not there)."""
    return _Work(files, main, version, owner_of(owner), default_runtime, runtime_path).decision()


class _Work:
    """One decision in the making: what is collected on the way."""

    def __init__(self, files: Mapping[str, str], main: str, version: str | None, who: Owner,
                 default_runtime: str | None, runtime_path: str) -> None:
        self.files = dict(files)
        self.main, self.version, self.who = main, version, who
        self.default_runtime, self.runtime_path = default_runtime, runtime_path
        self.drop_in = posixpath.join(posixpath.dirname(main), "conf.d", DROP_IN_NAME)
        self.notes: list[Note] = []
        self.config_version: int | None = None
        self.loaded: Loaded | None = None

    def decision(self) -> Decision:
        gen = generation(self.version)
        try:
            if gen is None:
                raise Refusal("unknown_version", f"the version of containerd ({self.version!r}) is not known",
                              "see that `containerd --version` answers on the host")
            if self.who.name == "host" or self.who.drop_in:
                return self._ours(gen)
            return self._theirs(gen)
        except Refusal as refusal:
            severity = "error" if refusal.kind in _ERRORS and self.who.name in ("host", "operator") else "warning"
            if self.who.makes_handler and refusal.kind == "owner_leaves":
                severity = "info" if self.who.name == "operator" else "warning"
            self._note(refusal.kind, severity, refusal.summary, refusal.remedy)
            return self._made("none", refused=str(refusal))

    # -- somebody else's file ------------------------------------------------------------------------------------

    def _theirs(self, gen: Generation) -> Decision:
        loaded = self._load(gen)
        broken = [problem for problem in loaded.problems if problem.kind != "mixed_versions"]
        if broken:
            raise Refusal(broken[0].kind, broken[0].text, f"{self.who.title} writes these files: "
                          + self.who.way_out(self.runtime_path))
        try:
            want = wanted(cri(loaded), gen, self.default_runtime, self.runtime_path)
        except Refusal as refusal:
            raise Refusal("owner_leaves", f"{self.main} is written by {self.who.title}: {refusal.summary}",
                          refusal.remedy) from refusal
        handler = ("containerd", "runtimes", HANDLER)
        if any(path == handler for path, _value in want.sets):
            raise Refusal("owner_leaves", f"{self.main} is written by {self.who.title} and has no runtime {HANDLER}; "
                          "it is left as it is", self.who.way_out(self.runtime_path))
        for path, value in want.sets:
            binary = path[-1] == "BinaryName"
            if path[: len(handler)] == handler and not (binary and self.who.name == "operator"):
                found = _at(cri(loaded), path)
                self._note("runtime_differs", "warning", f"the runtime {HANDLER} in {self.main}, which "
                           f"{self.who.title} writes, has {'.'.join(path[3:])} = {found!r} and should have {value!r}"
                           + (", the one of the installed toolkit" if binary else f", as {want.copied_from} has"),
                           self.who.way_out(self.runtime_path))
        return self._made("none", want=want)

    # -- ours ----------------------------------------------------------------------------------------------------

    def _ours(self, gen: Generation) -> Decision:
        loaded = self._load(gen)
        stale = self._stale(loaded, gen)
        if stale:
            loaded = self._without(loaded, gen)
            self._note(stale.kind, "warning", f"{stale.text}; it is written anew in the version of {self.main}",
                       "keep the tool that wrote it (the operator's toolkit: RUNTIME_CONFIG_SOURCE=file) from doing so "
                       "again")
        self._check(loaded, gen)
        version = self._file_version(loaded, gen)
        self.config_version = version
        want = wanted(table_at(loaded.effective, ("plugins", runtime_plugin(version))), gen, self.default_runtime,
                      self.runtime_path)
        base: Path = ("plugins", runtime_plugin(version))
        sets = tuple(((*base, *path), value) for path, value in want.sets)
        if not sets and not stale:
            self._orphans(loaded)
            return self._made("none", want=want)
        if gen.deep_merge:
            strategy, edits = "drop_in", self._drop_in_edits(loaded, sets, version, bool(stale))
        else:
            strategy, edits = "edit", self._in_place(loaded, base, sets, version, gen)
        after = self._after(edits, gen)
        self._prove(loaded, after, gen, version)
        self._orphans(after)
        return self._made(strategy, want=want, edits=edits,
                          changed=tuple(differences(loaded.effective, after.effective)))

    def _stale(self, loaded: Loaded, gen: Generation) -> Problem | None:
        """A drop-in at our own path that keeps containerd 2.x from starting: it is ours to mend."""
        if not gen.deep_merge or len({problem.path for problem in loaded.fatal}) != 1:
            return None
        problem = loaded.fatal[0]
        mends = ("drop_in_newer", "version_too_high", "missing_import")
        if problem.path == self.drop_in and (problem.kind in mends or MARKER in self.files.get(self.drop_in, "")):
            return problem
        return None

    def _without(self, loaded: Loaded, gen: Generation) -> Loaded:
        """What is in force once the stale drop-in says nothing. Refuses if more than the main file would come alive."""
        rest = {path: text for path, text in self.files.items() if path != self.drop_in}
        mended = load(rest, self.main, gen, {self.drop_in: {"version": self._file_version(loaded, gen)}})
        alone = load({path: rest[path] for path in rest if path == self.main}, self.main, gen)
        problem = loaded.fatal[0]
        moved = [path for path, _old, _new in differences(alone.effective, mended.effective)]
        if any(path[0] not in ("version", "imports") for path in moved):
            raise Refusal(problem.kind, problem.text, _REMEDIES.get(problem.kind, "").format(
                main=self.main, version=gen.new_version, path=problem.path))
        return mended

    def _check(self, loaded: Loaded, gen: Generation) -> None:
        """Refuse what cannot be changed without guessing."""
        for problem in (*loaded.fatal, *loaded.problems):
            raise Refusal(problem.kind, problem.text, _REMEDIES.get(problem.kind, "correct it by hand").format(
                main=self.main, version=gen.new_version, path=problem.path))
        document = loaded.documents.get(self.main, {})
        plugins = document.get("plugins") if isinstance(document.get("plugins"), dict) else {}
        if file_version(document) < 2 and self._has_meaning(document, gen):
            if any("." in name for name in plugins or {}):
                raise Refusal("long_names_without_version", f"{self.main} has no version line, so containerd reads it "
                              "as version 1 and ignores its tables with full plugin ids",
                              f"put `version = 2` at the top of {self.main}")
            if gen.deep_merge:
                reason = ("ignores its CRI part" if not gen.migrates_each else "converts it at each start")
                raise Refusal("no_version",
                              f"{self.main} has no version line or version 1: containerd {gen.name} {reason}",
                              f"write it as version {gen.new_version} (`containerd config migrate` shows how)")
            self._note("no_version", "warning", f"{self.main} has no version line, or version 1, and is read as "
                       "version 1, which containerd 2 does not do any more",
                       "write it as version 2, with full plugin ids")
        holders = [path for path in loaded.order
                   if runtime_plugin(loaded.version) in table_at(loaded.documents[path], ("plugins",))]
        if not gen.deep_merge and len(holders) > 1:
            self._note("cri_hidden", "warning", f"{holders[-1]} has the CRI plugin's table, so containerd "
                       f"{self.version} does not read the one in {holders[-2]}",
                       f"bring both together in {self.main}")
        if gen.deep_merge and file_version(document) == 2:
            for path in loaded.order:
                if RUNTIME_V3 in table_at(loaded.documents[path], ("plugins",)):
                    raise Refusal("shadowed", f"{path} has version 2 and a table {RUNTIME_V3} of version 3, which "
                                  f"hides what {CRI_V2} says", f"bring its settings under {CRI_V2}")

    def _file_version(self, loaded: Loaded, gen: Generation) -> int:
        document = loaded.documents.get(self.main, {})
        return file_version(document) or (1 if self._has_meaning(document, gen) else gen.new_version)

    def _has_meaning(self, document: Mapping[str, Any], gen: Generation) -> bool:
        """Whether a version line decides what the document means: in 2.x only where plugins are named."""
        if not gen.deep_merge:
            return says_something(document)
        return says_something({name: document.get(name, []) for name in ("plugins", "disabled_plugins",
                                                                         "required_plugins")})

    def _drop_in_edits(self, loaded: Loaded, sets: tuple[tuple[Path, Any], ...], version: int,
                       stale: bool) -> tuple[FileEdit, ...]:
        edits: list[FileEdit] = []
        root: FileEdit | None = None
        patterns = self._patterns(loaded)
        if not any(matches(self.drop_in) for matches in patterns.values()):
            if not self.who.drop_in:
                root = self._root_edit(loaded, version)
            else:
                self.drop_in = self._their_folder(patterns)
        elif self.main in self.files and not file_version(loaded.documents.get(self.main, {})) and not self.who.drop_in:
            root = FileEdit(self.main, version=version)  # says nothing yet: its version decides what the drop-in means
        if self.drop_in in loaded.order and not stale:
            edits.append(FileEdit(self.drop_in, sets=sets))
        else:
            document: dict[str, Any] = {"version": version}
            for path, value in sets:
                put(document, path, value)
            edits.append(FileEdit(self.drop_in, document=document))
            if self.drop_in in self.files and parsed(self.files[self.drop_in]) == document:
                edits.pop()  # it lies there as it should and is only not imported
        return tuple(edits if root is None else [*edits, root])

    def _root_edit(self, loaded: Loaded, version: int) -> FileEdit:
        folder = posixpath.dirname(self.drop_in)
        beside = {path for path in self.files if path.startswith(folder + "/") and path.endswith(".toml")
                  and path != self.drop_in and path not in loaded.order}
        entry = f"{folder}/*.toml"
        for narrower in (f"{folder}/{DROP_IN_NAME.replace('.toml', '*.toml')}", self.drop_in):
            if any(glob_regex(entry).match(path) for path in beside):
                entry = narrower  # other files lie there that nothing imports: they stay out
        document = loaded.documents.get(self.main, {})
        if self.main not in self.files:
            return FileEdit(self.main, document={"version": version, "imports": [entry]})
        return FileEdit(self.main, imports=entry, version=None if file_version(document) else version)

    def _patterns(self, loaded: Loaded) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in loaded.order:
            names = loaded.documents[path].get("imports")
            for name in names if isinstance(names, list) else []:
                if isinstance(name, str):
                    pattern = resolve_import(path, name)
                    found[pattern] = glob_regex(pattern).match if "*" in pattern else pattern.__eq__
        return found

    def _their_folder(self, patterns: Mapping[str, Any]) -> str:
        for pattern, matches in patterns.items():
            candidate = posixpath.join(posixpath.dirname(pattern), DROP_IN_NAME)
            if "*" in pattern and "*" not in candidate and matches(candidate):
                return candidate
        raise Refusal("owner_leaves", f"{self.main} is written by {self.who.title} and imports no folder: an edit "
                      "would be lost at its next run", self.who.way_out(self.runtime_path))

    def _in_place(self, loaded: Loaded, base: Path, sets: tuple[tuple[Path, Any], ...], version: int,
                  gen: Generation) -> tuple[FileEdit, ...]:
        holders = [path for path in loaded.order if base[1] in table_at(loaded.documents[path], ("plugins",))]
        target = holders[-1] if holders else self.main
        if self.who.name != "host":
            raise Refusal("owner_leaves", f"{self.main} is written by {self.who.title}; an edit would be lost at its "
                          "next run, and on this containerd a drop-in would replace the whole CRI table",
                          self.who.way_out(self.runtime_path))
        if target not in (self.main, self.drop_in):
            raise Refusal("cri_redefined", f"{target} has the CRI plugin's table, and containerd {self.version} takes "
                          f"it instead of the one in {self.main}",
                          f"bring the settings of {base[1]} together in {self.main} and take them out of {target}")
        if self.main not in self.files and target == self.main:
            document: dict[str, Any] = {"version": version}
            for path, value in sets:
                put(document, path, value)
            return (FileEdit(self.main, document=document),)
        said = file_version(loaded.documents[target]) or self._has_meaning(loaded.documents[target], gen)
        return (FileEdit(target, sets=sets, version=None if said else version),)

    def _after(self, edits: tuple[FileEdit, ...], gen: Generation) -> Loaded:
        made = {edit.path: outcome(edit, self.files.get(edit.path)) for edit in edits}
        return load(self.files, self.main, gen, made)

    def _prove(self, before: Loaded, after: Loaded, gen: Generation, version: int) -> None:
        """The outcome must be in force and nothing else may have moved, or nothing is written."""
        base: Path = ("plugins", runtime_plugin(version))
        if after.problems:
            raise Refusal("side_effect", f"the change would leave this: {after.problems[0].text}", "correct it by hand")
        left = wanted(table_at(after.effective, base), gen, self.default_runtime, self.runtime_path).sets
        if left:
            path = (*base, *left[0][0])
            later = [name for name in after.order if _has(after.documents[name], path)]
            raise Refusal("overridden", f"{later[-1] if later else self.main} decides {'.'.join(left[0][0])} and is "
                          f"read after {self.drop_in}", "take the setting out there")
        for path, old, _new in differences(before.effective, after.effective):
            ours = path[:1] in (("version",), ("imports",)) or _our_setting(path, base)
            if not ours:
                raise Refusal("side_effect", f"the change would also move {'.'.join(path)} (now {old!r})",
                              "correct the files by hand")

    # -- common --------------------------------------------------------------------------------------------------

    def _load(self, gen: Generation) -> Loaded:
        self.loaded = load(self.files, self.main, gen)
        self.config_version = self.loaded.version
        if self.main not in self.files or not self._has_meaning(self.loaded.documents.get(self.main, {}), gen):
            self.config_version = file_version(self.loaded.documents.get(self.main, {})) or gen.new_version
        return self.loaded

    def _orphans(self, after: Loaded) -> None:
        for path in sorted(set(self.files) - set(after.order) - {self.main}):
            if "runtimes" in self.files[path]:
                self._note("orphan_drop_in", "warning",
                           f"{path} is imported by nothing, so containerd does not read it",
                           f"remove it; what counts is in {self.main} and the files it imports")

    def _note(self, kind: str, severity: str, summary: str, remedy: str) -> None:
        self.notes.append(Note(kind, severity, "containerd", summary, remedy))

    def _made(self, strategy: str, *, want: Wanted | None = None, edits: tuple[FileEdit, ...] = (),
              changed: tuple[tuple[Path, Any, Any], ...] = (), refused: str | None = None) -> Decision:
        plugin = None if self.config_version is None else runtime_plugin(self.config_version)
        return Decision(
            strategy=strategy, owner=self.who.name, version=self.version, config_version=self.config_version,
            plugin=plugin, path=self.main, drop_in_path=self.drop_in, runtime_path=self.runtime_path, refused=refused,
            default_runtime=want.default_runtime if want else None, copied_from=want.copied_from if want else None,
            low_level_runtime=want.low_level if want else None, edits=edits, differences=changed,
            notes=tuple(self.notes))


_REMEDIES = {
    "invalid_toml": "correct {path} by hand; nothing is written until it parses",
    "missing_import": "remove the entry from `imports`, or put the file back",
    "version_too_high": "bring {path} to the version of the containerd that is installed",
    "drop_in_newer": "bring {path} to the version of {main}, or remove it",
    "mixed_versions": "give all files the version of {main}",
    "cri_disabled": "take it out of disabled_plugins (Docker's package ships it so), or set gpu_container_runtime: "
                    "none",
    "plugin_names": "write the full plugin id, such as io.containerd.grpc.v1.cri",
}


def _text(item: Any) -> str | None:
    return item if isinstance(item, str) else None


def _our_setting(path: Path, base: Path) -> bool:
    if path[: len(base)] != base:
        return False
    inner = path[len(base):]
    if inner[:2] == ("containerd", "runtimes") and len(inner) > 2:
        return inner[2] == "runc" or inner[2].startswith(HANDLER)
    return inner[:1] in (("enable_cdi",), ("cdi_spec_dirs",)) or inner[:2] == ("containerd", "default_runtime_name")


def _has(document: Any, path: Path) -> bool:
    return _at(document, path) is not None


def _at(document: Any, path: Path) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document
