# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package files in a directory: what each is, and which of them a wish needs when nothing may come from elsewhere.

Needed is what provides a dependency that nothing installed provides, or provides in another version than is asked
for. The manager itself then judges the versions; this only finds the files for it.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .base import PackageError, Runner
from .transaction import call, reason

_SEPARATOR = "\x1f"
_NAME = re.compile(r"^\s*([^\s(:]+)(?::\w+)?\s*(?:\(\s*([<>=]+)\s*([^)\s]+)\s*\))?")
_RPM_QUERY = (f"N{_SEPARATOR}%{{NAME}}{_SEPARATOR}%|EPOCH?{{%{{EPOCH}}:}}:{{}}|%{{VERSION}}-%{{RELEASE}}\\n"
              f"[P{_SEPARATOR}%{{PROVIDENAME}}\\n][P{_SEPARATOR}%{{FILENAMES}}\\n]"
              f"[R{_SEPARATOR}%{{REQUIRENAME}}{_SEPARATOR}%{{REQUIREFLAGS:depflags}}{_SEPARATOR}%{{REQUIREVERSION}}\\n]")


@dataclass(frozen=True)
class File:
    """One package file. ``needs``: groups of alternatives, each (name, whether a version is asked for)."""

    path: str
    name: str
    version: str
    provides: frozenset[str] = frozenset()
    needs: tuple[tuple[tuple[str, bool], ...], ...] = field(default=())


def plain(version: str) -> str:
    """A version without its epoch."""
    return version.partition(":")[2] or version


def labels(one: File) -> tuple[str, ...]:
    """The names by which a file may be asked for: one of several kernels' packages of rpm has its version in it."""
    if not one.path.endswith(".rpm"):
        return (one.name,)
    label = f"{one.name}-{plain(one.version)}"
    return one.name, label, f"{label}.{one.path.rpartition('.rpm')[0].rpartition('.')[2]}"


def read(paths: Iterable[str], run: Runner, manager: str) -> list[File]:
    """What the files are. Raises PackageError for one that is no package of this manager's kind."""
    return [_deb(path, run) if manager == "apt" else _rpm(path, run) for path in paths]


def _deb(path: str, run: Runner) -> File:
    fields_of = ["Package", "Version", "Provides", "Depends", "Pre-Depends"]
    result = call(run, ["dpkg-deb", "--field", path, *fields_of], timeout=120)
    if result.rc != 0:
        raise PackageError(f"{path} cannot be read: {reason(result, ('dpkg-deb:',), 'dpkg-deb')}")
    fields: dict[str, str] = {}
    for line in result.out.splitlines():
        head, mark, rest = line.partition(":")
        if mark and not line.startswith(" "):
            fields[head.lower()] = rest.strip()
    needs = [_alternatives(group) for key in ("pre-depends", "depends") for group in fields.get(key, "").split(",")]
    provided = {one[0] for group in fields.get("provides", "").split(",") for one in _alternatives(group)}
    return File(path, fields["package"], fields["version"], frozenset({fields["package"], *provided}),
                tuple(group for group in needs if group))


def _alternatives(group: str) -> tuple[tuple[str, bool], ...]:
    return tuple((match.group(1), match.group(2) is not None) for one in group.split("|")
                 if (match := _NAME.match(one)) is not None)


def _rpm(path: str, run: Runner) -> File:
    result = call(run, ["rpm", "-qp", "--queryformat", _RPM_QUERY, path], timeout=120)
    rows = [line.split(_SEPARATOR) for line in result.out.splitlines() if _SEPARATOR in line]
    if result.rc != 0 or not rows or rows[0][0] != "N":
        raise PackageError(f"{path} cannot be read: {reason(result, ('error:',), 'rpm')}")
    needs = [((row[1], bool(row[3])),) for row in rows if row[0] == "R" and len(row) > 3
             and not row[1].startswith(("rpmlib(", "config("))]
    return File(path, rows[0][1], rows[0][2], frozenset({rows[0][1], *(row[1] for row in rows if row[0] == "P")}),
                tuple(dict.fromkeys(needs)))


def provided(names: Iterable[str], run: Runner, manager: str) -> set[str]:
    """Those of ``names`` that something installed provides."""
    asked = sorted(set(names))
    if manager == "apt":
        result = call(run, ["dpkg-query", "-W", "-f", "${db:Status-Status}|${Package}|${Provides}\\n"], timeout=120)
        there = set()
        for line in result.out.splitlines():
            status, name, given = [*line.split("|", 2), "", ""][:3]
            if status in ("installed", "triggers-awaited", "triggers-pending"):
                there |= {name, *(one[0] for group in given.split(",") for one in _alternatives(group))}
        return there & set(asked)
    return {name for name in asked if call(run, ["rpm", "-q", "--whatprovides", name], timeout=60).rc == 0}


def chosen(
    wanted: Mapping[str, str | None], files: list[File], installed: Mapping[str, tuple[str, ...]], run: Runner,
    manager: str,
) -> dict[str, File]:
    """The files that ``wanted`` needs, by name. Raises PackageError, naming what lacks, with nothing done."""
    by_name: dict[str, list[File]] = {}
    for one in files:
        for name in labels(one):
            by_name.setdefault(name, []).append(one)
    found: dict[str, File] = {}
    for name, version in wanted.items():
        fitting = [one for one in by_name.get(name, ()) if version is None or plain(one.version) == plain(version)]
        if not fitting:
            has = ", ".join(one.version for one in by_name.get(name, ())) or "none of it"
            raise PackageError(f"{name} {version or ''}".strip() + f" is not among the package files ({has}). Nothing "
                               "was touched. Put it into the directory, with its checksum")
        found[name] = fitting[0]
    here = provided({word for one in files for group in one.needs for word, _exact in group}, run, manager)
    queue = list(found.values())
    while queue:
        one = queue.pop(0)
        for group in one.needs:
            file = _for(group, files, found, installed, here)
            if isinstance(file, File):
                found[file.name] = file
                queue.append(file)
            elif file is False:
                words = " or ".join(word for word, _exact in group)
                raise PackageError(f"{one.name} {one.version} needs {words}, which is neither installed nor among the "
                                   "package files. Nothing was touched. Put it into the directory, with its checksum")
    return found


def _for(group: tuple[tuple[str, bool], ...], files: list[File], found: Mapping[str, File],
         installed: Mapping[str, tuple[str, ...]], here: set[str]) -> File | bool:
    """The file that a dependency needs; True where it is met, False where nothing meets it."""
    words = [word for word, _exact in group]
    if any(word in one.provides for one in found.values() for word in words):
        return True
    offers = [one for one in files if any(word in one.provides for word in words)]
    met = [word for word in words if word in here]
    if met:
        # installed in another version than the directory has it: what asks for a version may mean that one
        moved = [one for one in offers if any(exact for word, exact in group if word == one.name)
                 and one.name in installed and one.version not in installed[one.name]]
        return moved[0] if moved else True
    return offers[0] if offers else False
