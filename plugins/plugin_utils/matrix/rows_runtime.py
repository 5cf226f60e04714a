# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows about container runtimes, Kubernetes and the GPU Operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .kinds import Date, Dotted, Flag, Integer, Number, Text, Version, Word
from .row import Row

Component = Literal["nvidia-container-toolkit", "containerd", "runc", "gpu-operator", "dcgm", "dcgm-exporter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitRelease(Row):
    """A release of nvidia-container-toolkit."""

    version: Dotted
    date: Date | None = None
    facts: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cve(Row):
    """A vulnerability of a component. fixed: first fixed release per line; None = not known."""

    id: Word
    component: Component
    fixed: tuple[Dotted, ...] | None
    affected: Text | None = None
    affected_from: Dotted | None = None
    operator_fixed: Dotted | None = None
    cvss: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerdLine(Row):
    """A line of containerd releases."""

    release: Dotted
    status: Text
    start: Date
    eol: Date
    eol_precision: Literal["day", "month"] = "day"
    latest: Dotted | None = None
    config_version: Integer  # highest config version it accepts
    cdi: Literal["none", "off", "on"]  # off = there, but not by default


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesRelease(Row):
    """A minor release of Kubernetes."""

    version: Dotted
    released: Date
    maintenance_from: Date
    eol: Date
    latest: Dotted | None = None
    containerd: tuple[Dotted, ...] = ()  # oldest supported release per containerd line
    cri: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DistroPackage(Row):
    """A runtime package in a distribution's archive."""

    os: Text
    suite: Word
    package: Word
    version: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Row):
    """Something to know about a component from a version on, for findings and reports."""

    component: Word
    version: Dotted | None = None
    fact: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRelease(Row):
    """A release of the GPU Operator."""

    version: Dotted
    date: Date
    default_driver: Version
    drivers: Mapping[Word, tuple[Version, ...]] | None = None  # branch → versions its documentation lists
    components: Mapping[Word, Text]
    kubernetes: tuple[Dotted, ...] = ()  # lowest and highest minor
    chart_kube_version: Text | None = None
    containerd: tuple[Text, ...] = ()
    os: tuple[Text, ...] = ()
    life_cycle: Text
    cdi_default: Flag | None = None
    cdi: Text | None = None
    driver_crd: Text
    driver_defaults: Mapping[Word, Text] | None = None
