# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that the collection manages on a host: one list, read by the facts (drift) and by whoever cleans up."""

from __future__ import annotations

STATE_DIRECTORY = "/var/lib/baremetal-nvidia"
STATE_FILE = "/var/lib/baremetal-nvidia/state.json"
TRIAL_CONF = "/var/lib/baremetal-nvidia/trial.conf"
TRIAL_RESULT = "/var/lib/baremetal-nvidia/trial"

# While a kernel comes in: how it is undone; the files of /boot as they were, the former packages, and what stands in
# for the programs that write the boot menu.
STAGE_JOURNAL = "/var/lib/baremetal-nvidia/stage.json"
STAGE_KEPT = "/boot/.baremetal-nvidia-stage"
STAGE_PACKAGES = "/var/lib/baremetal-nvidia/stage"
STAGE_SHIMS = "/var/lib/baremetal-nvidia/stage-bin"
STAGE_PATHS: tuple[str, ...] = (STAGE_JOURNAL, STAGE_KEPT, STAGE_PACKAGES, STAGE_SHIMS)

# Always reported: null when absent.
PATHS: tuple[str, ...] = (
    "/etc/modprobe.d/baremetal-nvidia.conf",
    "/etc/modules-load.d/baremetal-nvidia.conf",
    "/etc/udev/rules.d/71-baremetal-nvidia-nodes.rules",
    "/etc/systemd/system/nvidia-persistenced.service.d/baremetal-nvidia.conf",
    "/etc/apt/preferences.d/baremetal-nvidia",
    "/etc/apt/apt.conf.d/52baremetal-nvidia",
    "/etc/default/grub.d/zz-baremetal-nvidia.cfg",
    "/etc/containerd/conf.d/99-nvidia.toml",
    "/etc/systemd/system/nvidia-cdi-refresh.service.d/baremetal-nvidia.conf",
    "/etc/udev/rules.d/71-baremetal-nvidia-dev-char.rules",
)

# Reported when there: names are chosen by what is configured.
PATTERNS: tuple[str, ...] = (
    "/usr/sbin/policy-rc.d",
    "/etc/apt/sources.list.d/baremetal-nvidia-*.sources",
    "/etc/apt/preferences.d/baremetal-nvidia-*",
    "/etc/apt/keyrings/baremetal-nvidia-*",
    "/etc/apt/apt.conf.d/51baremetal-nvidia-*-proxy",
    "/etc/yum.repos.d/baremetal-nvidia-*.repo",
    "/etc/zypp/repos.d/baremetal-nvidia-*.repo",
    "/etc/grub.d/*baremetal_nvidia*",
    "/etc/systemd/system/baremetal-nvidia-trial*.service",
    "/etc/systemd/system/baremetal-nvidia-metrics.*",
    "/etc/systemd/system/baremetal-nvidia-dcgm-exporter.service",
    "/etc/systemd/system/nvidia-dcgm-exporter.service.d/baremetal-nvidia.conf",
    "/etc/containerd/certs.d/*/hosts.toml",
    "/etc/profile.d/baremetal-nvidia-*.sh",
    "/etc/baremetal-nvidia/*.env",
)

# Reported only on hosts of that family, as elsewhere nobody would look for them.
APT_ONLY: tuple[str, ...] = (
    "/etc/apt/preferences.d/baremetal-nvidia",
    "/etc/apt/apt.conf.d/52baremetal-nvidia",
)
