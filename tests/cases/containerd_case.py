# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a containerd case: a folder with ``before/``, ``facts.yml``, ``want.yml`` and ``expect.yml``.

``run(folder)`` returns what differed, nothing if all is well. The files are computed without a host; what is written is
then held against what ``expect.yml`` says and against what holds in every case (a second run changes nothing, no
setting moves that is not ours, comments stay).
"""
from __future__ import annotations

import pathlib
import posixpath
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import Settings, editor, settings, toml_text
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import decision as deciding
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.diff import ABSENT, differences
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.generation import (
    CRI_V2,
    RUNTIME_V3,
    Generation,
    generation,
    runtime_plugin,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.merge import file_version, load
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.want import Refusal

Files = dict[str, str]


def run(directory: pathlib.Path | str) -> list[str]:
    """What differs from ``expect.yml`` in this case; an empty list is a pass."""
    case = Case(pathlib.Path(directory))
    return case.differences()


def is_case(directory: pathlib.Path | str) -> bool:
    """Whether a folder is a containerd case."""
    folder = pathlib.Path(directory)
    return all((folder / name).is_file() for name in ("facts.yml", "want.yml", "expect.yml"))


class Case:
    """One case: its files before and after."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.expect: dict[str, Any] = yaml.safe_load((folder / "expect.yml").read_text(encoding="utf-8"))
        self.want: dict[str, Any] = yaml.safe_load((folder / "want.yml").read_text(encoding="utf-8"))
        facts = yaml.safe_load((folder / "facts.yml").read_text(encoding="utf-8"))
        self.facts: dict[str, Any] = facts["containers"]["containerd"]
        self.main: str = (self.facts.get("config") or {}).get("path") or "/etc/containerd/config.toml"
        self.before = _read(folder / "before", posixpath.dirname(self.main))
        self.before |= (self.facts.get("config") or {}).get("drop_ins") or {}  # files that lie elsewhere
        self.settings = Settings(**(self.want.get("settings") or {}))

    def compute(self, files: Files) -> tuple[deciding.Decision, dict[str, str | None], str | None]:
        """The decision, the files it writes (None: takes away), and the message of a refusal."""
        decision = deciding.work_out(
            files, self.main, self.facts.get("version"), owner=self.facts.get("owner"),
            default_runtime=(self.want.get("policy") or {}).get("gpu_containerd_default_runtime"),
            runtime_path=self.want["runtime_path"], settings=self.settings, state=self.want.get("state", "present"),
            record=self.want.get("record"))
        try:
            return decision, editor.render(decision, files), decision.refused
        except Refusal as refusal:
            return decision, {}, str(refusal)

    def differences(self) -> list[str]:
        decision, written, refusal = self.compute(self.before)
        gen = generation(self.facts.get("version"))
        found = self._message(decision, refusal)
        if "strategy" in self.expect and decision.strategy != self.expect["strategy"]:
            found.append(f"strategy is {decision.strategy}, expected {self.expect['strategy']}")
        changed = {path: text for path, text in written.items() if self.before.get(path) != text}
        if "restart" in self.expect and decision.restart != self.expect["restart"]:
            found.append(f"restart is {decision.restart}, expected {self.expect['restart']}")
        if refusal and changed:
            found.append(f"refused and yet wrote {', '.join(changed)}")
        foreign = sorted(set(changed) - set(self.expect.get("may_change") or []))
        if foreign:
            found.append(f"changed {', '.join(foreign)}")
        if gen is None:
            return found
        after = {path: text for path, text in {**self.before, **changed}.items() if text is not None}
        if refusal is None:
            found += self._effective(after, gen)
        found += self._files({path: text for path, text in changed.items() if text is not None})
        for path, wanted in (self.expect.get("files") or {}).items():
            if after.get(path) != wanted:
                found.append(f"{path} is {after.get(path)!r}, expected {wanted!r}")
        if changed:
            found += self._untouched(after, gen)
            _again, second, refused = self.compute(after)
            if refused or any(after[path] != text for path, text in second.items()):
                found.append(f"a second run changes {', '.join(second) or 'nothing'} (refused: {refused})")
        for path, wanted in (self.expect.get("comments") or {}).items():
            there = toml_text.comments(after.get(path, ""))
            found += [f"the comment {comment!r} is gone from {path}" for comment in wanted if comment not in there]
        return found

    def _message(self, decision: deciding.Decision, refusal: str | None) -> list[str]:
        found = []
        expected = self.expect.get("refused", False)
        if expected != "optional" and bool(expected) != (refusal is not None):
            found.append(f"refused is {refusal!r}, expected {expected}")
        said = refusal if refusal is not None else " ".join(f"{note.summary} {note.remedy}" for note in decision.notes)
        found += [f"{word!r} is not mentioned in {said!r}" for word in self.expect.get("mentions") or []
                  if str(word).lower() not in said.lower()]
        return found

    def _effective(self, after: Files, gen: Generation) -> list[str]:
        loaded = load(after, self.main, gen)
        found = [f"containerd would not start: {problem.text}" for problem in loaded.fatal]
        expected = self.expect.get("effective") or {}
        for entry in expected.get("contains") or []:
            value = _at(loaded.effective, entry["path"])
            right = entry.get("any_of", [entry.get("value")])
            if value not in right or any(type(value) is not type(item) for item in right if item == value):
                found.append(f"{'.'.join(entry['path'])} is {value!r}, expected {right}")
        found += [f"{'.'.join(path)} is there" for path in expected.get("absent") or []
                  if _at(loaded.effective, path) is not ABSENT]
        return found

    def _files(self, changed: Files) -> list[str]:
        found = []
        version = None
        if self.main in self.before:
            try:
                version = file_version(tomllib.loads(self.before[self.main]))
            except tomllib.TOMLDecodeError:
                version = None
        for path, text in changed.items():
            try:
                document = tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                found.append(f"{path} does not parse: {error}")
                continue
            if version and file_version(document) != version:
                found.append(f"{path} has version {file_version(document)}, {self.main} has {version}")
        return found

    def _untouched(self, after: Files, gen: Generation) -> list[str]:
        expected = self.expect.get("effective") or {}
        exempt = [tuple(entry["path"]) for entry in expected.get("contains") or []]
        exempt += settings.paths(self.settings, {"runc": {}})
        return untouched(self.before, after, self.main, gen, exempt,
                         [tuple(path) for path in expected.get("may_differ") or []])


def untouched(before_files: Files, after_files: Files, main: str, gen: Generation,
              exempt: Iterable[tuple[str, ...]] = (), may_differ: Iterable[tuple[str, ...]] = ()) -> list[str]:
    """Settings that moved and are not ours: holds in every case, whatever it expects."""
    before = load(before_files, main, gen)
    if before.fatal:
        before = load({path: text for path, text in before_files.items() if path == main}, main, gen)
    after = load(after_files, main, gen)
    moved = differences(before.effective, after.effective)
    base = ("plugins", runtime_plugin(file_version(after.documents.get(main, {})) or 1))
    found = []
    exempt = list(exempt)
    for path, old, new in moved:
        handler = path[: len(base) + 3] == (*base, "containerd", "runtimes", "nvidia")
        if old is ABSENT:
            if not _may_be_new(path, base) and path not in exempt:
                found.append(f"new setting {'.'.join(path)}")
        elif path[0] == "imports":
            if not all(entry in (new if new is not ABSENT else []) for entry in old):
                found.append("imports lost an entry")
        elif not handler and path not in exempt and not any(path[: len(p)] == p for p in may_differ):
            found.append(f"{'.'.join(path)} was {old!r} and is {'gone' if new is ABSENT else repr(new)}")
    other = {CRI_V2: (RUNTIME_V3,), RUNTIME_V3: (CRI_V2,)}.get(base[1], (CRI_V2, RUNTIME_V3))
    found += [f"settings of the other version's plugin {path[1]} appear" for path, old, _new in moved
              if old is ABSENT and path[:1] == ("plugins",) and path[1] in other]
    return found


def _may_be_new(path: tuple[str, ...], base: tuple[str, ...]) -> bool:
    if path[0] in ("version", "imports"):
        return True
    inner = path[len(base):] if path[: len(base)] == base else ()
    if inner[:2] == ("containerd", "runtimes") and len(inner) > 2:
        return inner[2] == "runc" or inner[2].startswith("nvidia")
    return inner[:1] in (("enable_cdi",), ("cdi_spec_dirs",)) or inner[:2] == ("containerd", "default_runtime_name")


def _at(document: Any, path: list[str]) -> Any:
    for name in path:
        if not isinstance(document, Mapping) or name not in document:
            return ABSENT
        document = document[name]
    return document


def _read(folder: pathlib.Path, base: str) -> Files:
    if not folder.is_dir():
        return {}
    return {posixpath.join(base, path.relative_to(folder).as_posix()): path.read_bytes().decode("utf-8")
            for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")}


if __name__ == "__main__":
    worst = 0
    for name in sys.argv[1:]:
        differing = run(name)
        print(f"FAIL {name}: {'; '.join(differing)}" if differing else f"PASS {name}")
        worst = worst or int(bool(differing))
    sys.exit(worst)
