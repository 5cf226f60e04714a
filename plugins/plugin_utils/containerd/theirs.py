# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A containerd that belongs to another program: its own way in is taken, and a file that it writes is never edited.

k3s and RKE2 find the toolkit at their start and import a folder from late 2025 on; k0s merges the files of a folder by
itself; MicroK8s makes its file from a template that people edit; Kubespray imports a folder if it was told to.
"""
from __future__ import annotations

import copy
import posixpath
import re
from typing import Any

from .diff import differences
from .edits import FileEdit, parsed, put
from .generation import DROP_IN_NAME, HANDLER, Generation, runtime_plugin
from .merge import Loaded, deep, file_version, load, table_at
from .result import Decision
from .toml_text import Path
from .want import Refusal, Wanted
from .work import Work

_K0S = re.compile(r"\A\s*# k0s_managed=true")
_REMARK = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_BASE = re.compile(r"\{\{-?\s*template\s+\"base\"")


def managed_by_k0s(text: str) -> bool:
    """Whether k0s still writes the file: its first line says so."""
    return _K0S.match(text) is not None


def decide(work: Work, gen: Generation) -> Decision:
    """The decision for a containerd of another owner. Raises Refusal where it is left, with what to set there."""
    loaded = work.load(gen)
    broken = [problem for problem in loaded.problems if problem.kind != "mixed_versions"]
    if broken:
        raise Refusal(broken[0].kind, broken[0].text, f"{work.who.title} writes these files: {_way_out(work)}")
    try:
        want, sets = work.needs(loaded.effective, loaded.version, gen)
    except Refusal as refusal:
        raise Refusal("owner_leaves", f"{work.main} is written by {work.who.title}: {refusal.summary}",
                      refusal.remedy) from refusal
    if not sets:
        return work.made("none", want=want)
    handler = ("plugins", runtime_plugin(loaded.version), "containerd", "runtimes", HANDLER)
    absent = any(path == handler for path, _value in sets)
    if work.who.name == "operator":
        return _told(work, loaded, want, handler, sets, absent)
    if work.who.folder is not None:
        return _merged_folder(work, gen, loaded, want, sets)
    if work.who.template is not None:
        return _template(work, gen, loaded, want)
    beyond = [path for path, _value in sets if path != handler and path[:-1] != handler]
    if work.who.detects and absent and not [path for path in beyond if path[: len(handler)] != handler]:
        return _detected(work, gen, want)
    if work.who.drop_in and gen.deep_merge and work.imports_a_folder(loaded):
        return work.ours(gen)
    return _told(work, loaded, want, handler, sets, absent)


def _way_out(work: Work) -> str:
    return work.who.way_out(work.ask.runtime_path)


def _told(work: Work, loaded: Loaded, want: Wanted, handler: Path, sets: tuple[tuple[Path, Any], ...],
          absent: bool) -> Decision:
    """Nothing is written; what differs is said, with the words of the owner's own settings."""
    if absent:
        raise Refusal("owner_leaves", f"{work.main} is written by {work.who.title} and has no runtime {HANDLER}; it is "
                      "left as it is", _way_out(work))
    for path, value in sets:
        binary = path[-1] == "BinaryName"
        if path[: len(handler)] == handler and not (binary and work.who.name == "operator"):
            found = _at(loaded.effective, path)
            work.note("runtime_differs", "warning", f"the runtime {HANDLER} in {work.main}, which {work.who.title} "
                      f"writes, has {'.'.join(path[5:])} = {found!r} and should have {value!r}"
                      + (", the one of the installed toolkit" if binary else f", as {want.copied_from} has"),
                      _way_out(work))
        elif work.who.name != "operator":
            work.note("setting_differs", "warning", f"{'.'.join(path[2:])} is not {value!r} in {work.main}, which "
                      f"{work.who.title} writes", _way_out(work))
    return work.made("none", want=want)


def _detected(work: Work, gen: Generation, want: Wanted) -> Decision:
    """K3s and RKE2 write the runtime themselves at their next start, unless a template of somebody stands before it.

    Of two templates the one of version 3 counts, with containerd 2; the other one counts where it stands alone.
    """
    folder = posixpath.dirname(work.main)
    names = ("config-v3.toml.tmpl", "config.toml.tmpl") if gen.deep_merge else ("config.toml.tmpl",)
    for name in [one for one in names if posixpath.join(folder, one) in work.files][:1]:
        if not _BASE.search(_REMARK.sub("", work.files[posixpath.join(folder, name)])):
            raise Refusal("owner_leaves", f"{folder}/{name} stands in the place of {work.who.title}'s own template, so "
                          f"it does not write the runtime {HANDLER} that it finds",
                          "begin that file with {{ template \"base\" . }}, or add the runtime there with BinaryName "
                          f"{work.ask.runtime_path}")
    work.note("owner_detects", "info", f"{work.who.title} has no runtime {HANDLER} yet; it writes it at its next "
              f"start, for it finds {work.ask.runtime_path}", f"the plan restarts {work.who.units[0]}")
    return work.made("detect", want=want, again=True)


def _merged_folder(work: Work, gen: Generation, loaded: Loaded, want: Wanted,
                   sets: tuple[tuple[Path, Any], ...]) -> Decision:
    """k0s: one file of ours in the folder that it merges, in the version of what it wrote last."""
    if work.who.folder is None:
        raise ValueError(f"{work.who.title} merges no folder")
    work.drop_in = posixpath.join(work.who.folder, DROP_IN_NAME)
    work.trial = work.drop_in
    document: dict[str, Any] = {"version": _written_version(loaded, gen)}
    for path, value in sets:
        put(document, path, copy.deepcopy(value))
    there = parsed(work.files[work.drop_in]) if work.drop_in in work.files else None
    merged = copy.deepcopy(loaded.effective)
    deep(merged, {name: item for name, item in (there or {}).items() if name == "plugins"})
    _want, left = work.needs(merged, loaded.version, gen)
    if not left:
        return work.made("drop_in", want=want, again=True)  # it lies there and has not been read yet
    full = copy.deepcopy(there) if there else {}
    deep(full, document)
    deep(merged, {"plugins": full.get("plugins", {})})
    _want, left = work.needs(merged, loaded.version, gen)
    if left:
        raise Refusal("overridden", f"{work.drop_in} cannot say {'.'.join(left[0][0][2:])}", _way_out(work))
    edit = FileEdit(work.drop_in, sets=sets) if there else FileEdit(work.drop_in, document=document)
    return work.made("drop_in", want=want, edits=(edit,), changed=tuple(differences(loaded.effective, merged)))


def _written_version(loaded: Loaded, gen: Generation) -> int:
    """The version of the file that has the CRI plugin's table, else of the main one, else what this line writes."""
    for path in reversed(loaded.order):
        document = loaded.documents[path]
        version = file_version(document)
        if version and table_at(document, ("plugins", runtime_plugin(version))):
            return version
    return (file_version(loaded.documents[loaded.order[0]]) if loaded.order else 0) or gen.new_version


def _template(work: Work, gen: Generation, loaded: Loaded, want: Wanted) -> Decision:
    """MicroK8s: its template is edited in place; it makes its file from that at the next start of its containerd."""
    if work.who.template is None:
        raise ValueError(f"{work.who.title} has no template")
    path = posixpath.join(posixpath.dirname(work.main), work.who.template)
    if path not in work.files:
        raise Refusal("owner_leaves", f"{work.main} is written by {work.who.title} and has no runtime {HANDLER}; the "
                      f"template {path} cannot be read", _way_out(work))
    template = load({path: work.files[path]}, path, gen)
    if template.problems:
        raise Refusal("owner_leaves", template.problems[0].text, _way_out(work))
    _wanted, sets = work.needs(template.effective, template.version, gen)
    work.trial = path
    if not sets:
        return work.made("edit", want=want, again=True)
    edits = (FileEdit(path, sets=sets),)
    after = copy.deepcopy(template.effective)
    for where, value in sets:
        put(after, where, copy.deepcopy(value))
    return work.made("edit", want=want, edits=edits, changed=tuple(differences(template.effective, after)))


def _at(document: Any, path: Path) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document
