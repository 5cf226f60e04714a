# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The look at running GPU containers right before systemd's units are reloaded."""

from __future__ import annotations

import json
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import engines
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import guard

ID = "c" * 64
NAMED = {"linux": {"devices": [{"path": "/dev/nvidia0"}]}}


def container(root: pathlib.Path) -> None:
    for path, text in {"proc/7/comm": "python3\n", "proc/7/cgroup": f"0::/cri-containerd-{ID}.scope\n",
                       "proc/1/comm": "init\n"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "proc/7/fd").mkdir()
    (root / "proc/7/fd/3").symlink_to("/dev/nvidia0")


def test_no_container_no_refusal(tmp_path):
    guard.refuse_under_gpu_containers(str(tmp_path))


def test_a_container_by_the_legacy_hook_refuses(tmp_path):
    container(tmp_path)
    with pytest.raises(guard.ReloadRefused, match=r"1 running containers would lose.*_reload_allowed") as told:
        guard.refuse_under_gpu_containers(str(tmp_path))
    assert told.value.count == 1 and "CDI" in str(told.value)


def test_one_by_cdi_does_not(tmp_path):
    container(tmp_path)
    spec = tmp_path / f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps(NAMED))
    guard.refuse_under_gpu_containers(str(tmp_path))


def test_what_cannot_be_told_refuses(tmp_path, monkeypatch):
    def denied(_tree):
        raise PermissionError(13, "needs root", "/proc/7/fd")

    monkeypatch.setattr(engines, "gpu", denied)
    with pytest.raises(guard.ReloadRefused, match="cannot be told"):
        guard.refuse_under_gpu_containers(str(tmp_path))
