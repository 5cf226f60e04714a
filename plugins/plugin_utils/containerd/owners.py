# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose containerd it is, where a file of ours survives there, and what to set instead where none does.

Sources: https://docs.k3s.io/advanced (containerd, NVIDIA container runtime), https://docs.rke2.io/advanced,
https://docs.k0sproject.io/stable/runtime/, https://microk8s.io/docs/addon-gpu,
https://kubespray.io (containerd_additional_runtimes).
"""
from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from .generation import DROP_IN_NAME, HANDLER, RUNTIME_TYPE


@dataclass(frozen=True)
class Owner:
    """Who writes the configuration, and the way in that its maker provides."""

    name: str
    title: str
    remedy: str = ""
    host_like: bool = False  # the file is ours to edit
    drop_in: bool = False  # a file of ours in a folder that its main file imports survives
    makes_handler: bool = False  # finds the toolkit by itself, or brings its own
    detects: bool = False  # writes the runtime at its start when it finds the program
    folder: str | None = None  # a folder that it merges by itself, beside containerd's imports
    template: str | None = None  # the file beside the main one that it makes the main one from, and that people edit
    units: tuple[str, ...] = ("containerd.service",)
    disturbs: bool = False  # restarts containerd by itself when a file in the folder changes
    program: str = "containerd"

    def way_out(self, runtime_path: str) -> str:
        """What the person sets there."""
        return self.remedy.replace("@PATH@", runtime_path)

    def places(self, main: str, files: Iterable[str]) -> list[str]:
        """Where a file of ours lies or may lie, beside conf.d of the main file: there, if it is there."""
        if self.folder is not None:
            return [posixpath.join(self.folder, DROP_IN_NAME)]
        folder = posixpath.dirname(main)
        return [path for path in files if posixpath.basename(path) == DROP_IN_NAME
                and posixpath.dirname(posixpath.dirname(path)) == folder]


_RANCHER = (
    "@TITLE@ writes the handler by itself when it finds @PATH@ at its start: install the toolkit and restart @UNIT@; "
    "for other options write /var/lib/rancher/@NAME@/agent/etc/containerd/config-v3.toml.tmpl (config.toml.tmpl for a "
    "version 2 file) with {{ template \"base\" . }}, or, where its file imports config-v3.toml.d, a file in there")


def _rancher(name: str, title: str, unit: str) -> str:
    return _RANCHER.replace("@TITLE@", title).replace("@UNIT@", unit).replace("@NAME@", name)


_OWNERS = (
    Owner("host", "this host", host_like=True),
    Owner("kubespray", "kubespray", drop_in=True, remedy=(
        "set in Kubespray's inventory: containerd_additional_runtimes: [{name: " + HANDLER + ", type: " + RUNTIME_TYPE
        + ", engine: \"\", root: \"\", options: {BinaryName: '\"@PATH@\"', SystemdCgroup: \"true\"}}], and run its "
        "cluster.yml with the tag container-engine")),
    Owner("operator", "the GPU Operator's toolkit", makes_handler=True, remedy=(
        "leave it to the operator (toolkit.enabled=true, RUNTIME_CONFIG_SOURCE=file), or set toolkit.enabled=false "
        "there and let this collection write it")),
    Owner("k3s", "k3s", _rancher("k3s", "k3s", "k3s"), drop_in=True, makes_handler=True, detects=True,
          units=("k3s.service", "k3s-agent.service"), program="/var/lib/rancher/k3s/data/current/bin/containerd"),
    Owner("rke2", "RKE2", _rancher("rke2", "RKE2", "rke2-agent or rke2-server"), drop_in=True, makes_handler=True,
          detects=True, units=("rke2-server.service", "rke2-agent.service"),
          program="/var/lib/rancher/rke2/bin/containerd"),
    Owner("k0s", "k0s", folder="/etc/k0s/containerd.d", disturbs=True, program="/var/lib/k0s/bin/containerd",
          units=("k0sworker.service", "k0scontroller.service"), remedy=(
              "put the runtime " + HANDLER + " with BinaryName @PATH@ into a file of its own in /etc/k0s/containerd.d, "
              "which k0s merges, and restart k0s")),
    Owner("k0s, by hand", "this host", host_like=True, program="/var/lib/k0s/bin/containerd",
          units=("k0sworker.service", "k0scontroller.service")),
    Owner("microk8s", "MicroK8s", template="containerd-template.toml", program="/snap/microk8s/current/bin/containerd",
          units=("snap.microk8s.daemon-containerd.service",), remedy=(
              "run `microk8s enable nvidia --gpu-operator-driver host`, or add the runtime " + HANDLER + " with "
              "BinaryName @PATH@ to /var/snap/microk8s/current/args/containerd-template.toml and restart MicroK8s")),
)
_BY_NAME = {owner.name: owner for owner in _OWNERS}


def owner(name: str | None) -> Owner:
    """The owner of that name; one that is not known is left alone."""
    return _BY_NAME.get(name or "host") or Owner(str(name), str(name), remedy=f"add the runtime {HANDLER} with "
                                                 "BinaryName @PATH@ by the means of that program")
