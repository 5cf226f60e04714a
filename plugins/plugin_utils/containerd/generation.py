# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each line of containerd understands: configuration versions, plugin names, how files are merged.

Source: ``cmd/containerd/server/config/config.go`` (2.x) and ``services/server/config/config.go`` (1.x) of
https://github.com/containerd/containerd, and the output of ``containerd config dump`` of 1.6.20, 1.7.24 and 2.1.9.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

MAIN_PATH = "/etc/containerd/config.toml"
DROP_IN_NAME = "99-nvidia.toml"
RUNTIME_PATH = "/usr/bin/nvidia-container-runtime"
RUNTIME_TYPE = "io.containerd.runc.v2"
HANDLER = "nvidia"

CRI_V1 = "cri"
CRI_V2 = "io.containerd.grpc.v1.cri"
RUNTIME_V3 = "io.containerd.cri.v1.runtime"
IMAGES_V3 = "io.containerd.cri.v1.images"
CRI_NAMES = (CRI_V1, CRI_V2, RUNTIME_V3, IMAGES_V3)

_VERSION = re.compile(r"^\D{0,40}?(\d+)\.(\d+)")


@dataclass(frozen=True)
class Generation:
    """A line of containerd: how it reads its files."""

    major: int
    minor: int
    deep_merge: bool  # False: a later file replaces the whole table of a plugin
    migrates_each: bool  # True: every file is brought up to date by itself, and none may be newer than the main file
    max_version: int  # highest `version` it takes
    new_version: int  # the `version` for a file that is not there yet
    strict_version: bool  # False: a higher version is ignored in silence

    @property
    def name(self) -> str:
        """The line as people write it: ``1.7``."""
        return f"{self.major}.{self.minor}"

    @property
    def sets_enable_cdi(self) -> bool:
        """Only 1.7 knows CDI and has it switched off."""
        return (self.major, self.minor) == (1, 7)


def generation(version: str | None) -> Generation | None:
    """The generation of a containerd version such as ``2.2.7-k3s1``; None if the text is no version."""
    match = _VERSION.match(str(version)) if version else None
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2])
    if major < 2:
        return Generation(major, minor, False, False, 2, 2, (major, minor) >= (1, 7))
    if (major, minor) < (2, 3):
        return Generation(major, minor, True, False, 3, 3, True)
    return Generation(major, minor, True, True, 4, 3, True)


def runtime_plugin(config_version: int) -> str:
    """The id of the plugin that holds the runtimes, in a file of this version."""
    return CRI_V1 if config_version < 2 else CRI_V2 if config_version == 2 else RUNTIME_V3
