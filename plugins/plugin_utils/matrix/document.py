# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML documents with the lines of their parts, for error messages.

Documents are read by libyaml's loader where there is one. Lines are looked up only when something is wrong, by
composing the text once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from .errors import MatrixError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str, file: str) -> Any:
    """Parse a document; raises MatrixError with the line of a syntax error."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        raise MatrixError(f"no valid YAML: {what}", file, mark.line + 1 if mark else None) from None


def line_of(text: str, path: tuple[Any, ...]) -> int | None:
    """The line (from 1) of the value at a path, or of the nearest part of the path that is there."""
    node = yaml.compose(text, Loader=_Loader)
    line = node.start_mark.line + 1 if node else None
    for step in path:
        found = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(step):
                    line, found = key.start_mark.line + 1, value
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = node.value[step]
            line = found.start_mark.line + 1
        if found is None:
            return line
        node = found
    return line


def duplicates(text: str) -> Iterator[tuple[str, int]]:
    """Keys that stand twice in one mapping, with the line of the later one. YAML readers drop the earlier silently."""
    stack = [yaml.compose(text, Loader=_Loader)]
    while stack:
        node = stack.pop()
        if isinstance(node, yaml.SequenceNode):
            stack.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.value in seen:
                    yield key.value, key.start_mark.line + 1
                seen.add(key.value)
                stack.append(value)
