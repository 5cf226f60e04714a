# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where metrics come from: which there are, and by which labels hosts and workloads are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from . import catalogue

Kind = Literal["cluster", "dcgm", "textfile"]


@dataclass(frozen=True, slots=True)
class Source:
    """A source of metrics.

    kind: an operator's exporter in a cluster, a host's dcgm-exporter, or the collector of gpu_monitoring.
    where: the label of the host. honor: whether the exporter's own labels pod and namespace are kept (honorLabels).
    """

    kind: Kind
    metrics: frozenset[str]
    where: str = "instance"
    honor: bool = False
    job: str = "nvidia-dcgm-exporter"
    labels: Mapping[str, str] = field(default_factory=dict)    # what every alert gets besides its severity

    @property
    def pod(self) -> str:
        """Return the label that names the pod which uses a GPU."""
        return "pod" if self.honor else "exported_pod"

    @property
    def namespace(self) -> str:
        """Return the label that names the namespace of that pod."""
        return "namespace" if self.honor else "exported_namespace"

    @property
    def clocks(self) -> str:
        """Return the name under which the reasons of the clocks are collected."""
        before = catalogue.CLOCKS_BEFORE
        return before if before in self.metrics else catalogue.CLOCKS

    def fill(self, text: str) -> str:
        """Return an expression or annotation with this source's names in it."""
        for mark, value in (("@where@", self.where), ("@clocks@", self.clocks), ("@pod@", self.pod),
                            ("@namespace@", self.namespace), ("@job@", self.job)):
            text = text.replace(mark, value)
        return text
