# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster as its facts tell it: docs/design.md, section 3. Takes anything, raises nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .facts import UNKNOWN, Maybe, Reader, or_none

_GPU_LABELS = (
    "nvidia.com/gpu.present",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
)
_SYSTEMS = (("ubuntu", "ubuntu"), ("rocky", "rocky"), ("red hat enterprise linux coreos", "rhcos"),
            ("red hat", "rhel"), ("alma", "almalinux"), ("debian", "debian"), ("suse linux enterprise", "sles"))
DRIVER_LABEL = "nvidia.com/gpu.deploy.driver"
TOOLKIT_LABEL = "nvidia.com/gpu.deploy.container-toolkit"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster."""

    name: str
    labels: dict[str, str]
    os_image: str | None
    kernel: str | None
    runtime: str | None
    arch: str | None
    taints: tuple[dict[str, Any], ...]
    has_gpu: bool  # the operator takes it for a node with GPUs
    ours: frozenset[str] = frozenset()  # labels that an earlier run of the role set
    cordoned: bool = False  # by an earlier run of the role, which was cut off

    @property
    def takes_driver(self) -> bool:
        """Say whether the operator's driver would go there: it has GPUs and no label that keeps the driver away."""
        return self.has_gpu and self.labels.get(DRIVER_LABEL) not in ("false", "pre-installed")

    def labelled(self, changes: Mapping[str, str | None]) -> Node:
        """Return the node with labels changed; None takes one away."""
        merged = {**self.labels, **changes}
        return replace(self, labels={key: value for key, value in merged.items() if value is not None})

    @property
    def system(self) -> tuple[str, str] | None:
        """Return the operating system as id and version, ``("ubuntu", "24.04")``; None if nobody could tell."""
        ident = self.labels.get("feature.node.kubernetes.io/system-os_release.ID")
        version = self.labels.get("feature.node.kubernetes.io/system-os_release.VERSION_ID")
        if ident and version:
            return ident, version
        found = re.search(r"([0-9]+(?:\.[0-9]+)?)", self.os_image or "")
        name = (self.os_image or "").lower()
        known = next((short for word, short in _SYSTEMS if word in name), None)
        return (known, found.group(1)) if known and found else None


@dataclass(frozen=True, slots=True)
class DriverObject:
    """An NVIDIADriver object."""

    name: str
    spec: dict[str, Any]
    ours: bool = False  # made by the role

    @property
    def selector(self) -> dict[str, str]:
        """Return the node selector; an empty one takes every node with a GPU."""
        given = self.spec.get("nodeSelector")
        return {str(key): str(value) for key, value in given.items()} if isinstance(given, Mapping) else {}

    @property
    def is_default(self) -> bool:
        """Say whether it is the default of 26.7, which stands back behind each other one."""
        return self.spec.get("default") is True

    def takes(self, node: Node) -> bool:
        """Say whether the selector matches a node with GPUs."""
        return node.takes_driver and all(node.labels.get(key) == value for key, value in self.selector.items())


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """What is known of the cluster, and the chart values that a person asks for; two are the same if they are one.

    Read once, it serves the plans of all nodes: what is worked out from it is kept with it.
    """

    version: str | None = None
    nodes: tuple[Node, ...] = ()
    crds: Maybe[dict[str, Any]] = UNKNOWN
    installed: str | None = None
    installed_values: dict[str, Any] = field(default_factory=dict)
    drivers: tuple[DriverObject, ...] = ()
    values: dict[str, Any] | None = None
    config_maps: dict[str, dict[str, Any]] = field(default_factory=dict)
    prometheuses: tuple[dict[str, Any], ...] = ()
    gpu_nodes: tuple[Node, ...] = field(init=False, default=())
    _by_name: dict[str, Node] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index the nodes."""
        object.__setattr__(self, "gpu_nodes", tuple(node for node in self.nodes if node.has_gpu))
        for node in reversed(self.nodes):
            self._by_name.setdefault(node.name.split(".")[0], node)
        for node in reversed(self.nodes):
            self._by_name[node.labels.get("kubernetes.io/hostname") or node.name] = node
            self._by_name[node.name] = node

    @property
    def asked(self) -> dict[str, Any]:
        """Return the values that a person asks for; nobody asked means those that are installed."""
        return self.installed_values if self.values is None else self.values

    def node_of(self, host: str) -> Node | None:
        """Return the node that a host is: by name, or the only one with GPUs."""
        found = self._by_name.get(host) or self._by_name.get(host.split(".")[0])
        return found or (self.gpu_nodes[0] if len(self.gpu_nodes) == 1 else None)

    def nodes_of(self, hosts: Iterable[str]) -> dict[str, str]:
        """Return the nodes that hosts are, by name; a host that is none is left out.

        Beside hosts of other clusters a guess (the short name, the only node with GPUs) is right for one of them at
        most: it counts where nobody else could be that node.
        """
        listed = list(hosts)
        sure = {host: self._by_name[host].name for host in listed if host in self._by_name}
        guessed = {host: node.name for host in listed if host not in sure and (node := self.node_of(host)) is not None}
        times = Counter([*sure.values(), *guessed.values()])
        return {**sure, **{host: name for host, name in guessed.items() if times[name] == 1}}


def read(cluster: object) -> Cluster | None:
    """Return the view of a cluster, None where there is none; what was read already is returned as it is."""
    if isinstance(cluster, Cluster):
        return cluster
    if not isinstance(cluster, Mapping):
        return None
    reader = Reader(cluster)
    version = reader.get("version")
    values = reader.table("values")
    installed = or_none(reader.text("operator.version"))
    return Cluster(
        version=str(version).removeprefix("v") if isinstance(version, (str, float, int)) else None,
        nodes=_nodes(reader),
        crds=reader.table("crds"),
        installed=_release(installed),
        installed_values=or_none(reader.table("operator.values")) or {},
        drivers=_drivers(reader),
        values=values if isinstance(values, dict) else None,
        config_maps={name: dict(data) for name, data in (or_none(reader.table("config_maps")) or {}).items()
                     if isinstance(data, Mapping)},
        prometheuses=tuple(dict(one) for one in _list(reader, "prometheuses") if isinstance(one, Mapping)),
    )


def _release(text: str | None) -> str | None:
    return None if text is None else text if text.startswith("v") else f"v{text}"


def _list(reader: Reader, path: str) -> list[Any]:
    value = reader.get(path)
    return list(value) if isinstance(value, (list, tuple)) else []


def _texts(table: object) -> dict[str, str]:
    if not isinstance(table, Mapping):
        return {}
    if isinstance(table, dict) and set(map(type, table.values())) <= {str} and set(map(type, table)) <= {str}:
        return table
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in table.items()}


def _nodes(reader: Reader) -> tuple[Node, ...]:
    found = []
    for index, row in enumerate(_list(reader, "nodes")):
        here = Reader(row)
        labels = _texts(here.get("labels"))
        found.append(Node(
            name=or_none(here.text("name")) or f"#{index}",
            labels=labels,
            os_image=or_none(here.text("os_image")),
            kernel=or_none(here.text("kernel")),
            runtime=or_none(here.text("runtime")),
            arch=or_none(here.text("arch")) or labels.get("kubernetes.io/arch"),
            taints=tuple(dict(one) for one in _list(here, "taints") if isinstance(one, Mapping)),
            has_gpu=_has_gpu(labels, or_none(here.table("allocatable")) or {}),
            ours=frozenset(map(str, _list(here, "ours"))),
            cordoned=here.get("cordoned") is True,
        ))
    return tuple(found)


def _has_gpu(labels: Mapping[str, str], allocatable: Mapping[str, Any]) -> bool:
    if labels.get("nvidia.com/gpu.deploy.operands") == "false":
        return False
    if any(labels.get(label) == "true" for label in _GPU_LABELS):
        return True
    return any(name.startswith("nvidia.com/") for name in allocatable)


def _drivers(reader: Reader) -> tuple[DriverObject, ...]:
    found = []
    for index, row in enumerate(_list(reader, "drivers")):
        here = Reader(row)
        name = or_none(here.text("name")) or or_none(here.text("metadata.name")) or f"#{index}"
        found.append(DriverObject(name, or_none(here.table("spec")) or {}, here.get("ours") is True))
    return tuple(found)
