# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows about drivers, GPUs, fabrics, CUDA and frameworks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .kinds import BranchName, Cuda, Date, Device, Dotted, Flag, Floor, Integer, Number, PciId, Text, Version, Word
from .row import Row

OpenSupport = Literal["unsupported", "supported", "required"]
FlavourRule = Literal["open_only", "both", "proprietary_only"]
RULE: Mapping[str, FlavourRule] = {"unsupported": "proprietary_only", "supported": "both", "required": "open_only"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Row):
    """A driver branch, such as 580. first and latest come from the known versions."""

    name: BranchName
    type: Literal["production", "lts", "new_feature", "legacy"]
    eol: Date | None  # last day of support; None = no date published
    eol_precision: Literal["day", "month"] = "day"
    eol_nominal: Flag = False  # computed by a rule (first release + a year), not stated by NVIDIA
    security_floor: Version | None = None  # newest release that fixes every published bulletin of this branch
    security_bulletin: Integer | None = None
    security_current: Flag = False  # named by the newest driver bulletin: the floor has all known fixes
    open_modules: Literal["none", "optional", "default", "only"]
    min_kernel: Dotted
    cuda: Cuda | None = None  # newest CUDA its driver announces
    last_for: tuple[Word, ...] = ()  # architectures that end here
    fabric_suffix: Flag = True  # fabric packages carry the branch in their name
    ubuntu_suffix: Flag = True  # packages of NVIDIA's Ubuntu repository do
    first: Version | None = None
    first_date: Date | None = None
    latest: Version | None = None
    latest_date: Date | None = None

    def supported_on(self, today: datetime.date) -> bool:
        """False once the branch's end of life lies behind; a branch without date counts as supported."""
        return self.eol is None or today <= self.eol

    @property
    def proprietary_modules(self) -> bool:
        """True if the branch still has proprietary modules in packages."""
        return self.open_modules != "only"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverVersion(Row):
    """A released driver. known_bad: reasons why nobody should run it (empty for most)."""

    version: Version
    branch: BranchName = ""
    date: Date | None = None
    deployed: Flag = False  # widely used in the field
    known_bad: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulletin(Row):
    """A security bulletin of NVIDIA. fixed: branch (drivers) or product (the rest) → first fixed version."""

    id: Integer
    date: Date
    component: Literal["driver", "container", "cuda", "dcgm"]
    fixed: Mapping[Text, Dotted]
    cves: tuple[Word, ...]
    cvss: Number
    url: Text
    title: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture(Row):
    """A GPU architecture: which branches know it, which module flavour runs it, which CUDA compiles for it."""

    name: Word
    title: Text
    order: Integer  # grows with age of design; later architectures have larger numbers
    chips: tuple[Text, ...] = ()
    compute_capability: tuple[Dotted, ...] = ()
    first_branch: BranchName | None = None
    last_branch: BranchName | None = None  # None = still supported by the newest branch
    open_support: OpenSupport
    mig: Flag | None = None
    first_cuda: Cuda | None = None
    last_cuda: Cuda | None = None  # None = still supported by the newest toolkit

    @property
    def flavour_rule(self) -> FlavourRule:
        """Which module flavours run this architecture."""
        return RULE[self.open_support]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip(Row):
    """A chip with the PCI device ids that carry it: what answers for cards without a row of their own."""

    name: Text
    architecture: Word
    ids: Mapping[Device, Text]  # device id → name of the card
    compute_capability: Dotted | None = None
    first: Mapping[Device, Floor] | None = None  # device id → first driver, where it is known
    last_branch: BranchName | None = None  # where it ends before its architecture does


@dataclass(frozen=True, slots=True, kw_only=True)
class Product(Row):
    """A card by PCI device, and by subsystem where one device id has several cards."""

    id: PciId
    subsystems: tuple[PciId, ...] = ()  # empty = the device id as such
    name: Text
    architecture: Word
    chip: Text | None = None
    first_driver: Floor | None = None
    first_basis: Literal["changelog", "open_readme", "supported_gpus", "docs"] | None = None
    first_by_branch: Mapping[BranchName, Version] | None = None  # first release per branch that lists the card
    unlisted: tuple[BranchName, ...] = ()  # branches that never listed the card, while a later one does
    last_branch: BranchName | None = None
    open_support: OpenSupport | None = None  # None = as the architecture
    flavour_rule: FlavourRule | None = None  # filled from open_support
    datacenter: Flag = False
    known: Flag = True  # False: told by chip alone (pci.ids); NVIDIA's own lists were not seen to name it
    fabric: Literal["nvswitch", "nvlink5", "multi_node"] | None = None  # what its baseboard may need
    mig: Word | None = None  # key of its MIG row
    compute_capability: Dotted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NvSwitch(Row):
    """An NVSwitch generation, or a fabric that shows no NVSwitch function. needs: components that must run."""

    name: Word
    title: Text
    generation: Integer
    nvlink: Integer
    ids: tuple[Device, ...] = ()
    bridges: tuple[Device, ...] = ()
    needs: tuple[Word, ...]  # fabricmanager, nvlsm, imex
    min_branch: BranchName | None = None
    detect: Text | None = None
    products: tuple[PciId, ...] = ()  # GPUs that tell it where no switch function does


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricComponent(Row):
    """Software of a fabric. lockstep: must have exactly the driver's version."""

    name: Word
    lockstep: Flag
    min_branch: BranchName | None = None
    service: Text | None = None
    needed_for: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Mig(Row):
    """MIG of one product family."""

    name: Word
    title: Text
    max_instances: Integer
    profiles: tuple[Text, ...] = ()  # empty = not collected
    min_driver: Floor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaToolkit(Row):
    """A CUDA toolkit release. toolkit_min: driver it was released with; minor_min: floor of its major family."""

    version: Cuda
    bundled_driver: Version | None = None
    ships_driver: Flag = True
    toolkit_min: Floor | None = None
    minor_min: Floor | None = None

    @property
    def series(self) -> str:
        """``12.4.1`` → ``12.4``."""
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaFamily(Row):
    """A CUDA major version. min_driver: what minor-version compatibility needs, None = there is none."""

    major: Integer
    min_driver: Floor | None
    min_compute_capability: Dotted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaCompat(Row):
    """A cuda-compat package: forward compatibility of one CUDA series on older driver branches."""

    cuda: Cuda
    base_branches: tuple[BranchName, ...]
    native_from: BranchName


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A build of a framework against one CUDA. index: last part of the wheel index's URL."""

    index: Word
    cuda: Cuda
    stable: Flag = True
    min_driver: Floor  # by minor-version compatibility
    toolkit_min: Floor | None = None
    compute_capability: tuple[Dotted, ...] = ()  # empty = not known
    ptx: Flag = False  # newest of them also as PTX: runs on later GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework(Row):
    """A framework release with what it brings. wheels in the order of their CUDA, oldest first."""

    name: Literal["pytorch", "tensorflow", "jax"]
    version: Dotted
    released: Text | None = None
    wheels: tuple[Wheel, ...]
    default_cuda: Cuda | None = None  # of the plain wheel on PyPI
    python: Text | None = None
    min_compute_capability: Dotted | None = None

    @property
    def cudas(self) -> tuple[str, ...]:
        """CUDA versions it is built for, oldest first."""
        return tuple(wheel.cuda for wheel in self.wheels)

    @property
    def wheel_indexes(self) -> tuple[str, ...]:
        """Wheel indexes, oldest CUDA first."""
        return tuple(wheel.index for wheel in self.wheels)

    @property
    def min_driver(self) -> str | None:
        """Driver floor of its least demanding build."""
        return self.wheels[0].min_driver if self.wheels else None
