# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose containerd it is, and what to set there instead of editing a file that somebody else writes."""
from __future__ import annotations

from dataclasses import dataclass

from .generation import HANDLER, RUNTIME_TYPE


@dataclass(frozen=True)
class Owner:
    """Who writes the configuration. ``drop_in``: whether a file in an imported folder of ours survives."""

    name: str
    title: str
    drop_in: bool = False
    makes_handler: bool = False  # finds the toolkit by itself, or brings its own
    remedy: str = ""

    def way_out(self, runtime_path: str) -> str:
        """What the person sets there."""
        return self.remedy.replace("@PATH@", runtime_path)


_OWNERS = (
    Owner("host", "this host"),
    Owner("kubespray", "kubespray", drop_in=True, remedy=(
        "set in Kubespray's inventory: containerd_additional_runtimes: [{name: " + HANDLER + ", type: " + RUNTIME_TYPE
        + ", engine: \"\", root: \"\", options: {BinaryName: '\"@PATH@\"', SystemdCgroup: \"true\"}}], and run its "
        "cluster.yml with the tag container-engine")),
    Owner("operator", "the GPU Operator's toolkit", makes_handler=True, remedy=(
        "leave it to the operator (toolkit.enabled=true, RUNTIME_CONFIG_SOURCE=file), or set toolkit.enabled=false "
        "there and let this collection write it")),
    Owner("k3s", "k3s", makes_handler=True, remedy=(
        "k3s writes the handler by itself when it finds @PATH@ at its start: install the toolkit and restart k3s; for "
        "other options write /var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.tmpl (config.toml.tmpl for a "
        "version 2 file) with {{ template \"base\" . }}")),
    Owner("rke2", "RKE2", makes_handler=True, remedy=(
        "RKE2 writes the handler by itself when it finds @PATH@ at its start: install the toolkit and restart "
        "rke2-agent or rke2-server; for other options write /var/lib/rancher/rke2/agent/etc/containerd/"
        "config-v3.toml.tmpl (config.toml.tmpl for a version 2 file) with {{ template \"base\" . }}")),
    Owner("k0s", "k0s", remedy=(
        "put the runtime " + HANDLER + " with BinaryName @PATH@ into a file of its own in /etc/k0s/containerd.d, "
        "which k0s merges, and restart k0s")),
    Owner("microk8s", "MicroK8s", remedy=(
        "run `microk8s enable nvidia --gpu-operator-driver host`, or add the runtime " + HANDLER + " with BinaryName "
        "@PATH@ to /var/snap/microk8s/current/args/containerd-template.toml and restart MicroK8s")),
)
_BY_NAME = {owner.name: owner for owner in _OWNERS}


def owner(name: str | None) -> Owner:
    """The owner of that name; one that is not known is left alone."""
    return _BY_NAME.get(name or "host") or Owner(str(name), str(name), remedy=f"add the runtime {HANDLER} with "
                                                 "BinaryName @PATH@ by the means of that program")
