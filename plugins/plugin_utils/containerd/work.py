# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on the files of one containerd: what is wrong with them, which edits give it what is asked, and the proof."""
from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from . import editing, removal, settings
from .diff import differences
from .edits import MARKER, FileEdit, outcome, parsed, put
from .generation import CRI_NAMES, CRI_V2, DROP_IN_NAME, HANDLER, RUNTIME_V3, Generation, runtime_plugin
from .merge import Loaded, Problem, file_version, glob_regex, load, resolve_import, says_something, table_at
from .owners import Owner
from .result import Ask, Decision, Note
from .toml_text import Path
from .want import Refusal, Wanted, wanted


class Work:
    """One decision in the making: what is collected on the way."""

    def __init__(self, files: Mapping[str, str], main: str, version: str | None, who: Owner, ask: Ask) -> None:
        self.files = dict(files)
        self.main, self.version, self.who, self.ask = main, version, who, ask
        self.drop_in = posixpath.join(posixpath.dirname(main), "conf.d", DROP_IN_NAME)
        self.trial: str | None = main
        self.notes: list[Note] = []
        self.base: dict[str, str] = {}
        self.config_version: int | None = None
        self.loaded: Loaded | None = None

    # -- ours ----------------------------------------------------------------------------------------------------

    def ours(self, gen: Generation) -> Decision:
        """The decision for files that are ours to edit."""
        before = self._cri_on(gen)
        loaded = self.load(gen)
        stale = self._stale(loaded, gen)
        if stale:
            loaded = self._without(loaded, gen)
            self.note(stale.kind, "warning", f"{stale.text}; it is written anew in the version of {self.main}",
                      "keep the tool that wrote it (the operator's toolkit: RUNTIME_CONFIG_SOURCE=file) from doing so "
                      "again")
        self._check(loaded, gen)
        version = self._file_version(loaded, gen)
        self.config_version = version
        want, sets = self.needs(loaded.effective, version, gen)
        base: Path = ("plugins", runtime_plugin(version))
        if not sets and not stale:
            self._orphans(loaded)
            moved = tuple(differences(before.effective, loaded.effective)) if before else ()
            return self.made("edit" if self.base else "none", want=want, changed=moved)
        if gen.deep_merge:
            strategy, edits = "drop_in", self._drop_in_edits(loaded, sets, version, bool(stale))
        else:
            strategy, edits = "edit", self._in_place(loaded, base, sets, version, gen)
        after = self._after(edits, gen)
        self._prove(loaded, after, gen, version)
        self._orphans(after)
        return self.made(strategy, want=want, edits=edits,
                         changed=tuple(differences((before or loaded).effective, after.effective)))

    def _cri_on(self, gen: Generation) -> Loaded | None:
        """Take the CRI plugin out of the main file's ``disabled_plugins`` where that is asked for.

        The work then goes on with that text. Returns what was in force before, None where nothing was in the way.
        """
        if not self.ask.settings.cri or self.main not in self.files:
            return None
        document = parsed(self.files[self.main])
        names = document.get("disabled_plugins") if document else None
        if not isinstance(names, list) or not set(CRI_NAMES) & {name for name in names if isinstance(name, str)}:
            return None
        before = load(self.files, self.main, gen)
        rest = [name for name in names if name not in CRI_NAMES]
        text = editing.set_top(self.files[self.main], "disabled_plugins", rest, self.main)
        self.base = {self.main: text}
        self.files[self.main] = text
        return before

    def needs(self, effective: Mapping[str, Any], version: int,
              gen: Generation) -> tuple[Wanted, tuple[tuple[Path, Any], ...]]:
        """What is asked for and not in force, as (path, value)."""
        base: Path = ("plugins", runtime_plugin(version))
        asked = settings.missing(effective, version, gen, self.ask.settings) if self.ask.settings else []
        with_them = settings.applied(effective, asked) if asked else effective
        want = wanted(table_at(with_them, base), gen, self.ask.default_runtime, self.ask.runtime_path)
        runc = (*base, "containerd", "runtimes", "runc")
        named = any(path == runc for path, _value in asked)
        ours = [((*base, *path), value) for path, value in want.sets if not (named and (*base, *path) == runc)]
        return want, (*asked, *ours)

    # -- the way back ----------------------------------------------------------------------------------------------

    def taken_out(self, gen: Generation) -> Decision:
        """The decision that takes out what is ours. In files of another owner only what is known to be ours counts."""
        loaded = self.load(gen)
        for problem in loaded.problems:
            if problem.kind == "invalid_toml" and MARKER not in self.files[problem.path]:
                raise Refusal(problem.kind, problem.text, _REMEDIES[problem.kind].format(path=problem.path))
        for where in self.who.places(self.main, self.files):
            self.drop_in = where
        edits = removal.edits(self.files, loaded, self.main, self.drop_in, self.ask.record,
                              self.ask.runtime_path if self.who.host_like else "")
        if not edits:
            return self.made("none")
        after = self._after(edits, gen)
        new = [problem for problem in after.problems if problem not in loaded.problems]
        if new:
            raise Refusal("side_effect", f"without the runtime there were this: {new[0].text}", "correct it by hand")
        for plugin in table_at(after.effective, ("plugins",)).values():
            if table_at(plugin, ("containerd",)).get("default_runtime_name") == HANDLER:
                raise Refusal("default_nvidia", f"the default runtime in {self.main} is {HANDLER}, by a setting that "
                              "is not ours; without the runtime no pod would start", "set default_runtime_name first")
        if self.who.folder or any(edit.path not in (*loaded.order, self.drop_in) for edit in edits):
            self.trial = None  # the owner makes its own file from these first
        return self.made("remove", edits=edits, changed=tuple(differences(loaded.effective, after.effective)))

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
            self.note("no_version", "warning", f"{self.main} has no version line, or version 1, and is read as "
                      "version 1, which containerd 2 does not do any more",
                      "write it as version 2, with full plugin ids")
        holders = [path for path in loaded.order
                   if runtime_plugin(loaded.version) in table_at(loaded.documents[path], ("plugins",))]
        if not gen.deep_merge and len(holders) > 1:
            self.note("cri_hidden", "warning", f"{holders[-1]} has the CRI plugin's table, so containerd "
                      f"{self.version} does not read the one in {holders[-2]}",
                      f"bring both together in {self.main}")
        for path in loaded.order if gen.deep_merge else ():
            old = file_version(loaded.documents[path]) == 2 or file_version(document) == 2
            if old and RUNTIME_V3 in table_at(loaded.documents[path], ("plugins",)):
                raise Refusal("shadowed", f"{path} has version 2 and a table {RUNTIME_V3} of version 3, which "
                              f"hides what {CRI_V2} says", f"bring its settings under {CRI_V2}")

    def _file_version(self, loaded: Loaded, gen: Generation) -> int:
        document = loaded.documents.get(self.main, {})
        if self._has_meaning(document, gen) or loaded.version > 1:  # without a line: what the imports have
            return loaded.version
        return gen.new_version

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
            mine = file_version(loaded.documents[self.drop_in]) or 1
            edits.append(FileEdit(self.drop_in, sets=settings.renamed(sets, mine) if mine < version else sets))
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

    def imports_a_folder(self, loaded: Loaded) -> bool:
        """Whether the main file imports a folder in which a file of ours is read."""
        return any("*" in pattern and "*" not in posixpath.dirname(pattern) and matches(
            posixpath.join(posixpath.dirname(pattern), DROP_IN_NAME)) for pattern, matches in
            self._patterns(loaded).items())

    def _their_folder(self, patterns: Mapping[str, Any]) -> str:
        for pattern, matches in patterns.items():
            candidate = posixpath.join(posixpath.dirname(pattern), DROP_IN_NAME)
            if "*" in pattern and "*" not in candidate and matches(candidate):
                return candidate
        raise Refusal("owner_leaves", f"{self.main} is written by {self.who.title} and imports no folder: an edit "
                      "would be lost at its next run", self.who.way_out(self.ask.runtime_path))

    def _in_place(self, loaded: Loaded, base: Path, sets: tuple[tuple[Path, Any], ...], version: int,
                  gen: Generation) -> tuple[FileEdit, ...]:
        holders = [path for path in loaded.order if base[1] in table_at(loaded.documents[path], ("plugins",))]
        target = holders[-1] if holders else self.main
        if not self.who.host_like:
            raise Refusal("owner_leaves", f"{self.main} is written by {self.who.title}; an edit would be lost at its "
                          "next run, and on this containerd a drop-in would replace the whole CRI table",
                          self.who.way_out(self.ask.runtime_path))
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
        made = {edit.path: outcome(edit, self.files.get(edit.path)) for edit in edits if not edit.delete}
        gone = {edit.path for edit in edits if edit.delete}
        rest = {path: text for path, text in self.files.items() if path not in gone}
        return load(rest, self.main, gen, made)

    def _prove(self, before: Loaded, after: Loaded, gen: Generation, version: int) -> None:
        """The outcome must be in force and nothing else may have moved, or nothing is written."""
        base: Path = ("plugins", runtime_plugin(version))
        if after.problems:
            raise Refusal("side_effect", f"the change would leave this: {after.problems[0].text}", "correct it by hand")
        _want, left = self.needs(after.effective, version, gen)
        if left:
            path = left[0][0]
            later = [name for name in after.order if _has(after.documents[name], path)]
            raise Refusal("overridden", f"{later[-1] if later else self.main} decides {'.'.join(path[2:])} and is "
                          f"read after {self.drop_in}", "take the setting out there")
        asked = set(settings.paths(self.ask.settings, table_at(after.effective, (*base, "containerd", "runtimes"))))
        for path, old, _new in differences(before.effective, after.effective):
            ours = path[:1] in (("version",), ("imports",)) or _our_setting(path, base) or path in asked
            if not ours:
                raise Refusal("side_effect", f"the change would also move {'.'.join(path)} (now {old!r})",
                              "correct the files by hand")

    # -- common --------------------------------------------------------------------------------------------------

    def load(self, gen: Generation) -> Loaded:
        self.loaded = load(self.files, self.main, gen)
        self.config_version = self.loaded.version
        if self.main not in self.files or not self._has_meaning(self.loaded.documents.get(self.main, {}), gen):
            self.config_version = self._file_version(self.loaded, gen)
        return self.loaded

    def _orphans(self, after: Loaded) -> None:
        for path in sorted(set(self.files) - set(after.order) - {self.main}):
            if "runtimes" in self.files[path]:
                self.note("orphan_drop_in", "warning",
                          f"{path} is imported by nothing, so containerd does not read it",
                          f"remove it; what counts is in {self.main} and the files it imports")

    def note(self, kind: str, severity: str, summary: str, remedy: str) -> None:
        self.notes.append(Note(kind, severity, "containerd", summary, remedy))

    def made(self, strategy: str, *, want: Wanted | None = None, edits: tuple[FileEdit, ...] = (),
             changed: tuple[tuple[Path, Any, Any], ...] = (), refused: str | None = None,
             again: bool = False) -> Decision:
        plugin = None if self.config_version is None else runtime_plugin(self.config_version)
        return Decision(
            strategy=strategy, owner=self.who.name, version=self.version, config_version=self.config_version,
            plugin=plugin, path=self.main, drop_in_path=self.drop_in, runtime_path=self.ask.runtime_path,
            refused=refused, default_runtime=want.default_runtime if want else None,
            copied_from=want.copied_from if want else None,
            low_level_runtime=want.low_level if want else None, edits=edits, differences=changed,
            notes=tuple(self.notes), again=again, units=self.who.units, disturbs=self.who.disturbs,
            program=self.who.program, trial=self.trial, settings=self.ask.settings,
            base=self.base)


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
