# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decisions of a plan, one dataclass a subject; ``as_dict`` gives the shape of docs/design.md, section 5."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class DriverDecision:
    """The driver that the host is to have; without ``version`` there is none to be installed from the host's side."""

    owner: str = "host"
    branch: str | None = None
    version: str | None = None
    predicted: bool = False
    flavour: str | None = None
    source: str | None = None
    method: str | None = None
    packages: dict[str, str | None] = field(default_factory=dict)
    prerequisites: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    streams: dict[str, str] = field(default_factory=dict)
    reinstall: list[str] = field(default_factory=list)
    hold: list[str] = field(default_factory=list)
    hold_pattern: str | None = None
    fabricmanager: dict[str, Any] | None = None
    fabric: dict[str, str | None] = field(default_factory=dict)
    repositories: list[dict[str, Any]] = field(default_factory=list)
    mend: list[dict[str, Any]] = field(default_factory=list)
    runfile: dict[str, Any] | None = None
    offline: dict[str, Any] | None = None
    preferences: dict[str, str] | None = None
    components: list[str] = field(default_factory=list)
    source_package: str | None = None
    dkms: dict[str, str] | None = None
    prebuilt: dict[str, dict[str, str]] = field(default_factory=dict)
    module: str | None = None
    kernels: list[str] = field(default_factory=list)
    modprobe: dict[str, str] | None = None
    modules: list[str] = field(default_factory=list)
    files: list[dict[str, str]] = field(default_factory=list)
    initramfs: list[str] = field(default_factory=list)
    services: dict[str, dict[str, Any]] = field(default_factory=dict)
    mok: dict[str, Any] | None = None
    build_mb: int | None = None
    because: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        return _plain(self)


@dataclass(slots=True)
class KernelDecision:
    """The kernels that the host may start and what keeps others away."""

    policy: str = "hold"
    boot: str | None = None
    allowed: list[str] = field(default_factory=list)
    hold: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    manual: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    candidate: dict[str, Any] | None = None
    refused: list[dict[str, str]] = field(default_factory=list)
    stage: dict[str, Any] | None = None
    trial: str = "unavailable"
    trial_reason: str | None = None
    trial_release: str | None = None
    trial_settings: dict[str, Any] | None = None
    commit: str | None = None
    power_cycle: str | None = None
    prune: list[str] = field(default_factory=list)
    prune_packages: list[str] = field(default_factory=list)
    guard: dict[str, Any] | None = None
    boot_default: dict[str, str] | None = None
    auto_upgrades: dict[str, str] | None = None
    preferences: dict[str, str] | None = None
    because: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        return _plain(self)


@dataclass(slots=True)
class CudaDecision:
    """What of CUDA the driver runs, and how the frameworks that are asked for get theirs."""

    native_max: str | None = None
    compat: str | None = None
    frameworks: dict[str, dict[str, Any]] = field(default_factory=dict)
    toolkit: dict[str, Any] | None = None
    environment: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        return _plain(self)


@dataclass(slots=True)
class ToolkitDecision:
    """The container toolkit that the host is to have."""

    version: str | None = None
    predicted: bool = False
    packages: dict[str, str | None] = field(default_factory=dict)
    hold: list[str] = field(default_factory=list)
    repositories: list[dict[str, Any]] = field(default_factory=list)
    runtime_path: str | None = None
    mode: str | None = None
    injection: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    offline: dict[str, Any] | None = None
    cdi: dict[str, Any] | None = None
    dev_char: dict[str, str] | None = None
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    because: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        return _plain(self)


@dataclass(slots=True)
class ContainerdDecision:
    """How containerd learns of the nvidia runtime."""

    version: str | None = None
    packages: dict[str, str | None] = field(default_factory=dict)
    config_version: int | None = None
    plugin: str | None = None
    strategy: str = "none"
    path: str | None = None
    drop_in: str | None = None
    drop_in_path: str | None = None
    files: list[str] = field(default_factory=list)
    owner: str | None = None
    refused: str | None = None
    low_level_runtime: str | None = None
    differences: list[dict[str, Any]] = field(default_factory=list)
    runtime_path: str | None = None
    default_runtime: str | None = None
    restart: bool = False
    units: list[str] = field(default_factory=list)
    disturbs: bool = False
    program: str | None = None
    source: str | None = None
    repositories: list[dict[str, Any]] = field(default_factory=list)
    archive: dict[str, Any] = field(default_factory=dict)
    registry: list[dict[str, str]] = field(default_factory=list)
    hold: list[str] = field(default_factory=list)
    because: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        return _plain(self)


def _plain(decision: Any) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in decision.__dataclass_fields__}
