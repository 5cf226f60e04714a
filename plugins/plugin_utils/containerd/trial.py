# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the host's own containerd before anything is put in place: what to lay out for it, and how to read its answer."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import tomllib

from . import toml_text
from .diff import differences, dotted
from .generation import CRI_V1, CRI_V2, HANDLER, RUNTIME_V3, Generation
from .merge import load, table_at
from .toml_text import Path
from .want import Refusal

PLACEHOLDER = "@FOLDER@"
_PLUGINS = (RUNTIME_V3, CRI_V2, CRI_V1)


def tree(files: Mapping[str, str], main: str, gen: Generation) -> dict[str, str]:
    """The files as they are read, under new names in one folder, with their imports turned towards it."""
    order = [path for path in load(files, main, gen).order if path != main]
    names = {path: f"{number:03d}.toml" for number, path in enumerate(order, 1)}
    laid = {names[path]: with_imports(files[path], []) for path in order}
    laid["config.toml"] = with_imports(files.get(main, ""), [f"{PLACEHOLDER}/{name}" for name in names.values()])
    return laid


def with_imports(text: str, imports: list[str]) -> str:
    """A text with other imports, all else as it stands."""
    line = f"imports = {toml_text.value(imports)}"
    for statement in toml_text.statements(text):
        if statement.kind in ("header", "array_header"):
            break
        if statement.kind == "pair" and toml_text.pair_path(text, statement) == ("imports",):
            return text[: statement.start] + line + text[statement.end :]
    return f"{line}\n{text}" if imports else text


def judge(before: Mapping[str, Any] | None, after: Mapping[str, Any], runtime_path: str | None,
          asked: Collection[Path] = ()) -> None:
    """Compare what containerd prints for the files as they are and as they shall be.

    Each is ``{rc, out, why}`` of ``containerd config dump``; ``before`` is None where the present files are broken.
    ``runtime_path`` is None where the runtime shall be gone; ``asked`` are further settings that may move.
    Raises Refusal when it cannot read the new ones, does not know the runtime, or when anything else moves.
    """
    if after["rc"] != 0:
        raise Refusal("trial", f"containerd cannot read the new configuration: {after['why']}", "nothing was written")
    new = _parsed(after)
    binary = next((item for name in _PLUGINS if (item := _binary(new, name)) is not None), None)
    if runtime_path is None and any(_handler(new, name) for name in _PLUGINS):
        raise Refusal("trial", f"the new configuration still has the runtime {HANDLER}", "nothing was written")
    if runtime_path is not None and binary != runtime_path:
        raise Refusal("trial", f"containerd reads the new configuration, and the runtime {HANDLER} has the program "
                      f"{binary!r} in it, not {runtime_path!r}", "nothing was written")
    if before is None or before["rc"] != 0:
        return
    moved = [path for path, _old, _new in differences(_parsed(before), new)
             if path[0] not in ("version", "imports") and not _ours(path) and path not in asked]
    if moved:
        raise Refusal("trial", f"with the new configuration containerd would also change {dotted(moved[0])}",
                      "nothing was written; this is worth a report")


def _parsed(dump: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return tomllib.loads(dump["out"])
    except (ValueError, RecursionError) as error:
        raise Refusal("trial", f"what containerd printed is not valid TOML: {error}", "nothing was written") from error


def _handler(printed: Mapping[str, Any], plugin: str) -> dict[str, Any]:
    return table_at(printed, ("plugins", plugin, "containerd", "runtimes", HANDLER))


def _binary(printed: Mapping[str, Any], plugin: str) -> Any:
    return table_at(_handler(printed, plugin), ("options",)).get("BinaryName")


def _ours(path: tuple[str, ...]) -> bool:
    if path[0] != "plugins" or len(path) < 3 or path[1] not in _PLUGINS:
        return False
    inner = path[2:]
    if inner[:2] == ("containerd", "runtimes") and len(inner) > 2:
        return inner[2] == "runc" or inner[2].startswith(HANDLER)
    return inner[:1] == ("enable_cdi",) or inner[:2] == ("containerd", "default_runtime_name")
