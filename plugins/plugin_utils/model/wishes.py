# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy of one host as attributes, for the code that decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Wishes:
    """The checked policy; the attribute ``driver_branch`` is the variable ``gpu_driver_branch`` and so on."""

    driver_branch: str
    driver_version: str | None
    driver_flavour: str
    driver_source: str
    driver_method: str
    driver_variant: str
    driver_repository: Mapping[str, Any] | None
    driver_offline: Mapping[str, Any] | None
    driver_runfile: str
    driver_owner: str
    operator_version: str | None
    operator_monitoring: str
    sharing: list[dict[str, Any]]
    cuda: str | None
    frameworks: Mapping[str, str]
    cuda_toolkit: list[str]
    cuda_toolkit_default: str | None
    cuda_toolkit_source: str
    python_env: Mapping[str, Any] | None
    kernel_policy: str
    kernel_release: str | None
    kernel_keep: int
    kernel_guard: bool
    kernel_modules_waived: list[str]
    kernel_trial_timeout: int
    kernel_trial_fallback_reboot: bool
    kernel_trial_panic: int
    kernel_watchdog: str
    toolkit_version: str | None
    toolkit_repository: Mapping[str, Any] | None
    proxy: str | None
    fabricmanager_repository: Mapping[str, Any] | None
    toolkit_offline: Mapping[str, Any] | None
    toolkit_config: Mapping[str, Any]
    container_runtime: tuple[str, ...]
    container_mode: str
    container_hardened: bool
    docker_default_runtime: str | None
    crio_default_runtime: str | None
    containerd_default_runtime: str | None
    containerd_state: str
    containerd_source: str
    containerd_version: str | None
    containerd_repository: Mapping[str, Any] | None
    containerd_archive: Mapping[str, Any] | None
    containerd_sandbox_image: str | None
    containerd_registry_config_path: str | None
    containerd_registry_hosts: Mapping[str, Any]
    containerd_systemd_cgroup: bool | None
    driver_module_options: Mapping[str, Mapping[str, Any]]
    driver_peermem: bool
    mok_password: bool | None
    reboot_allowed: bool
    containerd_restart_allowed: bool
    daemon_reload_allowed: bool
    processes_may_stop: bool
    drain_tasks: str
    undrain_tasks: str
    pending_fails: bool
    findings_waived: list[dict[str, Any]]
    matrix_overlay: list[Any]
    cache_max_age: int
    matrix_max_age: int

    @property
    def driver_is_asked(self) -> bool:
        """Say whether branch or version of the driver are given."""
        return self.driver_branch != "auto" or self.driver_version is not None


_NAMES = tuple((field.name, f"gpu_{field.name}") for field in fields(Wishes))


def wishes(checked: Mapping[str, Any]) -> Wishes:
    """Return the view of a policy that :func:`.policy.validate` has checked."""
    return Wishes(**{name: checked[variable] for name, variable in _NAMES})
