# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts that were stored earlier, read from the controller: one file, or a directory with one file a host."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SUFFIXES = (".json", ".yml", ".yaml")


class StoredFactsError(ValueError):
    """Stored facts that cannot be used: names the file and what is wrong."""


def read(path: str, host: str) -> dict[str, Any]:
    """Return the facts of ``host`` stored at ``path``.

    A directory holds HOST.json, HOST.yml or HOST.yaml. A file holds the facts of one host, or a mapping of host names
    to facts. The facts may stand alone or under gpu_facts or ansible_facts.gpu_facts, as a module or fact cache
    wrote them.
    """
    place = pathlib.Path(path).expanduser()
    if place.is_dir():
        candidates = [place / f"{host}{suffix}" for suffix in SUFFIXES]
        found = next((item for item in candidates if item.is_file()), None)
        if found is None:
            raise StoredFactsError(
                f"gpu_facts_file: no facts of {host} in {place} (looked for "
                f"{', '.join(item.name for item in candidates)}). "
                f"Store them there, or leave the host out with --limit."
            )
        place = found
    elif not place.is_file():
        raise StoredFactsError(f"gpu_facts_file: {place} is neither a file nor a directory on the controller.")
    content = _parse(place)
    if isinstance(content.get(host), dict):
        content = content[host]
    for key in ("ansible_facts", "gpu_facts"):
        if isinstance(content.get(key), dict):
            content = content[key]
    if not _looks_like_facts(content):
        raise StoredFactsError(
            f"gpu_facts_file: {place} holds no facts of {host}: expected what baremetal.nvidia.gpu_facts returned "
            f"(keys os, kernel, gpus, packages), found {', '.join(sorted(map(str, content))[:6]) or 'nothing'}."
        )
    return content


def _parse(place: pathlib.Path) -> dict[str, Any]:
    try:
        text = place.read_text(encoding="utf-8")
        content = json.loads(text) if place.suffix == ".json" else yaml.load(text, Loader=_LOADER)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise StoredFactsError(f"gpu_facts_file: {place} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise StoredFactsError(f"gpu_facts_file: {place} holds a {type(content).__name__}, not a mapping.")
    return content


def _looks_like_facts(content: dict[str, Any]) -> bool:
    return any(key in content for key in ("os", "kernel", "gpus", "packages", "driver"))
