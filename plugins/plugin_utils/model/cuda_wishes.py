# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be asked for about CUDA on the host itself: toolkits, and a Python environment with a framework.

Each function returns the checked value in its plain type, or raises :class:`~.containers.Fault`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .containers import Fault

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
PYTORCH_INDEX = "https://download.pytorch.org/whl"
_TOOLKIT = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]{1,3})?\Z")
_FRAMEWORK = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?\Z")
_SERIES = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}\Z")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?([=<>!~]=?[A-Za-z0-9.*+!_-]+)?\Z")
_PYTHON = re.compile(r"(python3(\.[0-9]{1,2})?|/[A-Za-z0-9/._+-]+)\Z")
_KEYS = ("path", "framework", "version", "cuda", "python", "index_url", "packages")
_QUOTED = 'a version as text, such as "12.8": quote it'


def toolkits(name: str, value: Any) -> list[str]:
    """Return the CUDA toolkits that are asked for, each series once."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (list, tuple)):
        raise Fault(name, value, 'a list of versions, such as ["12.8", "13.0"]')
    found: dict[str, str] = {}
    for index, one in enumerate(value):
        text = toolkit(f"{name}[{index}]", one)
        series = ".".join(text.split(".")[:2])
        if series in found:
            raise Fault(f"{name}[{index}]", one, f"one of each series; {found[series]} is there already")
        found[series] = text
    return list(found.values())


def toolkit(name: str, value: Any) -> str:
    """Return one version of a toolkit."""
    if not isinstance(value, str) or not _TOOLKIT.match(value):
        raise Fault(name, value, _QUOTED)
    return str(value)


def environment(name: str, value: Any) -> dict[str, Any]:
    """Return a Python environment that is asked for, with what may be left out filled in."""
    if not isinstance(value, Mapping):
        raise Fault(name, value, "a mapping with path, framework and version")
    for key in value:
        if key not in _KEYS:
            raise Fault(f"{name}.{key}", value[key], f"one of the keys {', '.join(_KEYS)}")
    framework = {"torch": "pytorch"}.get(str(value.get("framework")), value.get("framework"))
    if framework not in FRAMEWORKS:
        raise Fault(f"{name}.framework", value.get("framework"), f"one of {', '.join(FRAMEWORKS)}")
    version, cuda, python = value.get("version"), value.get("cuda"), value.get("python", "python3")
    if not isinstance(version, str) or not _FRAMEWORK.match(version):
        raise Fault(f"{name}.version", version, 'a version as text, such as "2.7" or "2.7.1": quote it')
    if cuda is not None and (not isinstance(cuda, str) or not _SERIES.match(cuda)):
        raise Fault(f"{name}.cuda", cuda, _QUOTED)
    if not isinstance(python, str) or not _PYTHON.match(python) or ".." in python:
        raise Fault(f"{name}.python", python, "an interpreter, such as python3, python3.11 or /usr/bin/python3.11")
    return {"path": _path(f"{name}.path", value.get("path")), "framework": framework, "version": version,
            "cuda": cuda, "python": python, "index_url": _index(f"{name}.index_url", value.get("index_url")),
            "packages": _packages(f"{name}.packages", value.get("packages") or [])}


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"(/[A-Za-z0-9][A-Za-z0-9._+-]*){2,}", value):
        raise Fault(name, value, "an absolute path of at least two parts, such as /opt/torch")
    if value.split("/")[1] in ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "tmp") or (
            re.match(r"/(usr|var)/(?!local/|lib/[a-z]+/|opt/)", value)):
        raise Fault(name, value, "a folder of its own below /opt, /srv, /home or /usr/local")
    return value


def _index(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"(https?|file)://[^\s'\"]+", value):
        raise Fault(name, value, "the address of a package index")
    return value.rstrip("/")


def _packages(name: str, value: Any) -> list[str]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (list, tuple)):
        raise Fault(name, value, 'a list of requirements, such as ["torchvision==0.22.1"]')
    for index, one in enumerate(value):
        if not isinstance(one, str) or not _REQUIREMENT.match(one):
            raise Fault(f"{name}[{index}]", one, "a requirement of pip, such as torchvision==0.22.1")
    return list(value)
