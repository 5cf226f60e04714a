# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in packages of other distributions: what distros/*.yml describes, expanded to one object a package.

A template has ``each``: the list (or lists: every combination) whose rows it is filled with. ``if`` takes rows that
have a value for that word alone; ``with`` adds the row of another list whose ``key`` a row names. ``{word}`` in
texts is a row's value; files of distros/files have ``@word@`` instead, since shell has braces of its own.
"""
from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from . import kmodule
from .settings import SHARED, LabError

FOLDER = SHARED / "distros"
RELATIONS = ("pre-depends", "depends", "recommends", "provides", "conflicts", "breaks", "replaces", "obsoletes",
             "supplements")
Row = Mapping[str, Any]


@dataclass
class Package:
    """One stand-in: everything that its file is written from."""

    name: str
    version: str
    arch: str
    archives: list[str]
    summary: str
    section: str
    relations: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    conffiles: list[str] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)
    row: dict[str, Any] = field(default_factory=dict)


def load(system: str) -> dict[str, Any]:
    """The description of a distribution, with that of its family below it: FAMILY.yml, and what FAMILY/ has more."""
    path = FOLDER / f"{system}.yml"
    if not path.exists():
        known = ", ".join(sorted(one.stem for one in FOLDER.glob("*-*.yml")))
        raise LabError(f"distribution {system!r} is unknown; the lab has {known}")
    own: dict[str, Any] = yaml.safe_load(path.read_text())
    family = FOLDER / own["family"]
    parts = [yaml.safe_load(part.read_text()) for part in (family.with_suffix(".yml"), *sorted(family.glob("*.yml")))]
    merged: dict[str, Any] = {}
    for part in (*parts, own):
        together = {key: {**merged.get(key, {}), **part.get(key, {})} for key in ("lists", "values", "contents")}
        listed = [*merged.get("packages", []), *part.get("packages", [])]
        merged = {**merged, **part, **together, "packages": listed}
    return merged


def packages(described: Mapping[str, Any]) -> list[Package]:
    """Every package of a description."""
    found: list[Package] = []
    for template in described["packages"]:
        for row in _rows(template, described):
            found.append(_package(template, row, described))
    return found


def _rows(template: Row, described: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lists = template.get("each", [])
    lists = [lists] if isinstance(lists, str) else lists
    for name in lists:
        if name not in described["lists"]:
            raise LabError(f"{template['name']}: list {name!r} is unknown; known: {', '.join(described['lists'])}")
    for parts in itertools.product(*(described["lists"][name] for name in lists)):
        row = dict(described.get("values", {}))
        for part in parts:
            row.update(part)
        for other, key in template.get("with", {}).items():
            row = {**_find(described["lists"][other], key, row[key], described), **row}
        for word, text in described.get("derived", {}).items():
            if all(need in row for need in re.findall(r"{(\w+)}", text)):
                row.setdefault(word, text.format_map(row))
        if all(row.get(word) for word in _list(template.get("if"))) and not any(
                row.get(word) for word in _list(template.get("unless"))):
            yield row


def _list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _find(rows: list[dict[str, Any]], key: str, wanted: Any, described: Mapping[str, Any]) -> dict[str, Any]:
    for row in rows:
        full = dict(row)
        for word, text in described.get("derived", {}).items():
            if all(need in full for need in re.findall(r"{(\w+)}", text)):
                full.setdefault(word, text.format_map(full))
        if full.get(key) == wanted:
            return full
    raise LabError(f"no row has {key} {wanted!r}")


def _filled(text: str, row: Row, where: str) -> str:
    try:
        return text.format_map(row)
    except KeyError as error:
        raise LabError(f"{where}: {text!r} names {error}, which its rows do not have") from error


def _package(template: Row, row: dict[str, Any], described: Mapping[str, Any]) -> Package:
    name = _filled(template["name"], row, template["name"])

    def fill(text: str) -> str:
        return _filled(text, row, name)

    archives = [fill(word) for word in _list(template.get("in", row.get("in")))]
    if not archives:
        raise LabError(f"{name}: in which archive it is, is not said")
    one = Package(name=name, version=fill(template["version"]), arch=template.get("arch", "native"), archives=archives,
                  summary=fill(template.get("summary", "Stand-in")), section=template.get("section", "kernel"), row=row)
    for relation in RELATIONS:
        if template.get(relation):
            one.relations[relation] = [fill(word) for word in template[relation]]
    for word in _list(template.get("contents")):
        if word not in described["contents"]:
            raise LabError(f"{name}: contents {word!r} are not described")
        _add(one, described["contents"][word], fill)
    _add(one, template, fill)
    return one


def hook(name: str, moment: str) -> str:
    """Shell for a package's script: a test may put a program there that cuts the transaction off at this package."""
    return f"if [ -x /run/standin-hook ]; then /run/standin-hook {name} {moment}; fi\n"


def _add(one: Package, content: Row, fill: Any) -> None:
    for path, text in content.get("files", {}).items():
        one.files[fill(path)] = (fill(text).encode(), 0o755 if "/bin/" in path or "/sbin/" in path else 0o644)
    for path, source in content.get("copies", {}).items():
        mode = 0o755 if "bin/" in path or "scripts/" in path else 0o644
        one.files[fill(path)] = (_source(source, one.row).encode(), mode)
    for path, goal in content.get("links", {}).items():
        one.links[fill(path)] = fill(goal)
    for path, module in content.get("modules", {}).items():
        fields = {key: fill(value) for key, value in module.items() if key != "signed"}
        name = Path(path).name.partition(".")[0]
        data = kmodule.module(name.replace("-", "_"), fill("{release}"), fields, bool(module.get("signed")))
        one.files[fill(path)] = (data, 0o644)
    one.conffiles += [fill(path) for path in content.get("conffiles", [])]
    for kind, source in content.get("scripts", {}).items():
        one.scripts[kind] = one.scripts.get(kind, "") + _source(source, one.row)


def _source(name: str, row: Row) -> str:
    if name == "kmodule.py":
        return Path(kmodule.__file__).read_text()
    path = FOLDER / "files" / name
    text = (path if path.exists() else SHARED / "repository" / "files" / name).read_text()
    text = text.replace("@VERSION@", "@driver@")
    return re.sub(r"@(\w+)@", lambda match: str(row.get(match.group(1), match.group(0))), text)
