# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows about kernels: what a driver builds on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .kinds import BranchName, Drivers, Flag, Kernels, KernelText, Package, Text, Version, Word
from .row import Row

Flavour = Literal["both", "open", "proprietary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFix(Row):
    """A change of the kernel and the first driver release per branch that copes with it.

    fixed: branch → version, ``never`` (the branch ended without it), ``unknown``, or ``unneeded``.
    """

    id: Word
    kernels: tuple[Kernels, ...]  # upstream kernels that have the change
    change: Text
    flavour: Flavour = "both"
    preempt_rcu: Flag = False  # bites only kernels built with PREEMPT_RCU
    fixed: Mapping[BranchName, Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCeiling(Row):
    """The highest upstream kernel series on which driver versions are expected to build."""

    drivers: tuple[Version, ...]
    highest: KernelText
    flavour: Flavour = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBuild(Row):
    """Somebody compiled this driver against the headers of this kernel (compile and link, nothing loaded)."""

    driver: Version
    package: Package | None = None  # None: the plain source; else the distribution's package, with its patches
    package_version: Text | None = None
    flavour: Literal["open", "proprietary"]
    release: KernelText
    compiler: Word
    result: Literal["builds", "fails"]
    error: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakage(Row):
    """A breakage seen in the field.

    kind: ``build`` makes a kernel unfit; the others are for findings (packaging, runtime, precompiled, scheduling).
    os: ``id version`` prefixes (``ubuntu 22.04``, ``debian``, ``rhel 9``); empty = anywhere.
    """

    id: Word
    kind: Literal["build", "packaging", "runtime", "precompiled", "scheduling", "toolchain"]
    drivers: tuple[Drivers, ...] = ()  # empty = any
    kernels: tuple[Kernels, ...] = ()  # empty = any
    os: tuple[Text, ...] = ()
    flavour: Flavour = "both"
    package_source: Literal["distro", "nvidia"] | None = None
    preempt_rcu: Flag = False
    symptom: Text
    fixed_in: Text | None = None
    workaround: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedPackage(Row):
    """A distribution's driver package and the highest kernel series that its own patches reach."""

    os: Text
    suite: Word
    package: Package
    driver: Version
    package_version: Text
    flavour: Literal["open", "proprietary"]
    highest: KernelText


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPatch(Row):
    """A range for which a packager had to patch the driver: a hint, never a verdict."""

    kernels: Kernels
    drivers: Drivers
    flavour: Flavour = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistroKernel(Row):
    """A kernel line of a distribution: its releases, its compiler and, where it carries backports, what builds on it.

    builds, fails: driver ranges with a verdict for this line, above what the upstream number tells.
    """

    os: Text  # "ubuntu 22.04", "rhel 9.5"
    line: Word  # ga, hwe, backports, minor, cloud
    kernels: Kernels
    compiler: Word | None = None
    backported: Flag = False  # the upstream number understates it: upstream rows do not apply
    preempt_rcu: Flag | None = None
    builds: tuple[Drivers, ...] = ()
    fails: tuple[Drivers, ...] = ()
    released: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAbi(Row):
    """Upstream versions behind the ABI numbers of a distribution (Debian 12: 6.1.0-50 is 6.1.176)."""

    os: Text
    series: KernelText
    abis: Mapping[Word, KernelText]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prebuilt(Row):
    """Prebuilt, signed modules of Canonical for one kernel. driver: what its dependency names, None = not shown."""

    os: Text
    suite: Word
    branch: BranchName
    server: Flag = False
    driver: Version | None = None
    kernel: KernelText
    kernel_flavour: Word = "generic"
    flavour: Flavour
