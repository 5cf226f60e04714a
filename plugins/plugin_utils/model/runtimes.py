# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtimes of a host and its container toolkit, as its facts tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .facts import UNKNOWN, Maybe, Reader


@dataclass(frozen=True, slots=True)
class Engine:
    """Docker or CRI-O: its version, whether it runs, and what its files say of runtimes."""

    version: Maybe[str]
    active: Maybe[bool]
    runtimes: Maybe[dict[str, Any]]
    default_runtime: Maybe[str]
    cdi: Maybe[bool]


@dataclass(frozen=True, slots=True)
class Containers:
    """The container runtimes and the container toolkit."""

    containerd: Maybe[str]
    active: Maybe[bool]
    socket: Maybe[str]
    owner: Maybe[str]
    config_text: Maybe[str]
    config_path: Maybe[str]
    drop_ins: Maybe[dict[str, Any]]
    gpu_containers: Maybe[float]
    detachable: Maybe[float]
    docker: Maybe[Engine]
    crio: Maybe[Engine]
    toolkit: Maybe[str]
    toolkit_mode: Maybe[str]
    toolkit_config: Maybe[dict[str, Any]]
    runc: Maybe[str]
    cdi: Maybe[tuple[tuple[Maybe[str], Maybe[str]], ...]]
    dev_char_missing: Maybe[float]

    def engine(self, name: str) -> Maybe[Engine]:
        """Return Docker or CRI-O by its name; None where it is not there."""
        return self.docker if name == "docker" else self.crio


def read_containers(reader: Reader) -> Containers:
    """Return the view of the containers; takes anything, raises nothing."""
    cdi = reader.rows("containers.cdi")
    running = reader.number("containers.gpu.running")
    return Containers(
        containerd=reader.text("containers.containerd.version"),
        active=reader.flag("containers.containerd.active"),
        socket=reader.text("containers.containerd.socket"),
        owner=reader.text("containers.containerd.owner"),
        config_text=_config_text(reader),
        config_path=reader.text("containers.containerd.config.path"),
        drop_ins=reader.table("containers.containerd.config.drop_ins"),
        gpu_containers=reader.number("containers.containerd.gpu_containers") if running is UNKNOWN else running,
        detachable=reader.number("containers.gpu.detachable"),
        docker=_engine(reader, "docker"),
        crio=_engine(reader, "crio"),
        toolkit=reader.text("containers.toolkit.version"),
        toolkit_mode=reader.text("containers.toolkit.mode"),
        toolkit_config=reader.table("containers.toolkit.config"),
        runc=reader.text("containers.runc"),
        cdi=tuple((row.text("path"), row.text("driver")) for row in cdi) if isinstance(cdi, tuple) else cdi,
        dev_char_missing=reader.number("containers.dev_char.missing"),
    )


def _engine(reader: Reader, name: str) -> Maybe[Engine]:
    here = reader.table(f"containers.{name}")
    if not isinstance(here, dict):
        return here
    base = f"containers.{name}"
    return Engine(
        version=reader.text(f"{base}.version"),
        active=reader.flag(f"{base}.active"),
        runtimes=reader.table(f"{base}.config.runtimes"),
        default_runtime=reader.text(f"{base}.config.default_runtime"),
        cdi=reader.flag(f"{base}.config.cdi"),
    )


def _config_text(reader: Reader) -> Maybe[str]:
    value = reader.get("containers.containerd.config.text")
    return value if value is None or isinstance(value, str) else UNKNOWN
