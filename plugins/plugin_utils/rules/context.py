# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule looks at: the host, the wishes, the matrix and what has been decided so far."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from ..model.cluster import Cluster
from ..model.decisions import ContainerdDecision, CudaDecision, DriverDecision, KernelDecision, ToolkitDecision
from ..model.facts import UNKNOWN, Maybe
from ..model.host import Gpu, Host
from ..model.operator import OperatorDecision
from ..model.version import DriverVersion
from ..model.wishes import Wishes

#: Where the kernel is that of the machine below: nothing is loaded from in there.
SHARED_KERNEL = frozenset(("lxc", "lxc-libvirt", "openvz", "systemd-nspawn", "docker", "podman", "container", "wsl"))


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU with what the matrix knows of it; ``product`` is None for an id that no row has."""

    gpu: Gpu
    product: Any
    architecture: Any

    @property
    def label(self) -> str:
        """Return ``10de:1db5 (Tesla V100)`` for messages."""
        ident = self.gpu.id if isinstance(self.gpu.id, str) else "a GPU without an id"
        name = getattr(self.product, "name", None)
        return f"{ident} ({name})" if name else ident


@dataclass(frozen=True, slots=True)
class Candidate:
    """A driver that could be there: one version of one branch, in one flavour, from one source, by one method."""

    branch: str
    version: str | None
    flavour: str
    source: str
    method: str
    series: Any
    packages: Any
    versions: dict[str, str | None]
    predicted: bool
    missing: tuple[str, ...] = ()
    fabric: dict[str, str | None] = field(default_factory=dict)
    fabric_missing: tuple[str, ...] = ()
    installed: bool = False

    @property
    def parsed(self) -> DriverVersion | None:
        """Return the version to compare with, None if it is not known."""
        return DriverVersion(self.version) if self.version else None

    @property
    def label(self) -> str:
        """Return ``580.173.02 (open)`` for messages."""
        return f"{self.version or 'R' + self.branch} ({self.flavour})"


@dataclass(frozen=True, slots=True)
class Installed:
    """The driver that is on the host, as far as packages, modules and libraries tell."""

    version: str
    branch: str
    flavour: str | None
    source: str | None
    method: str | None
    series: Any = None
    packages: Any = None


@dataclass(slots=True)
class Refusal:
    """A candidate that a rule of severity error excludes, and the words for it."""

    candidate: Candidate
    rule: str
    summary: str


@dataclass(slots=True)
class Context:
    """Everything that the rules of one host look at."""

    name: str
    host: Host
    wishes: Wishes
    matrix: Any
    now: datetime.date
    cards: Maybe[tuple[Card, ...]] = UNKNOWN
    packaging: Any = None
    installed: Installed | None = None
    boot: str | None = None
    waived: frozenset[str] = frozenset()
    borrowed_kernel: bool = False
    candidate: Candidate | None = None
    asked: Candidate | None = None
    left: Refusal | None = None
    refusals: list[Refusal] = field(default_factory=list)
    driver: DriverDecision = field(default_factory=DriverDecision)
    kernel: KernelDecision = field(default_factory=KernelDecision)
    cuda: CudaDecision = field(default_factory=CudaDecision)
    toolkit: ToolkitDecision = field(default_factory=ToolkitDecision)
    containerd: ContainerdDecision = field(default_factory=ContainerdDecision)
    containerd_notes: tuple[Any, ...] = ()
    cluster: Cluster | None = None
    operator: OperatorDecision | None = None
    needs_space: bool = False
    changes: list[Any] = field(default_factory=list)
    pending: list[Any] = field(default_factory=list)

    @property
    def has_gpus(self) -> bool:
        """Say whether there is at least one GPU."""
        return isinstance(self.cards, tuple) and bool(self.cards)

    @property
    def wants_driver(self) -> bool:
        """Say whether the host itself is to have a driver from our hands."""
        return self.has_gpus and self.wishes.driver_owner == "host" and not self.borrowed_kernel

    def uses(self, runtime: str) -> bool:
        """Say whether a container runtime (containerd, docker, crio) is to get the nvidia handler."""
        return runtime in self.wishes.container_runtime

    @property
    def uses_containers(self) -> bool:
        """Say whether any container runtime is to get the nvidia handler."""
        return bool(self.wishes.container_runtime)

    @property
    def toolkit_by_operator(self) -> bool:
        """Say whether the operator's container brings toolkit and runtime handler, and the host leaves them alone."""
        return self.operator is not None and self.operator.toolkit_owner == "operator"
