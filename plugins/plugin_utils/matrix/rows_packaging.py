# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows about packages: how the driver and its company are packaged on a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .kinds import BranchName, Date, Drivers, Fingerprint, Flag, Package, Regex, Text, Version, Word
from .row import Row

Source = Literal["distro", "nvidia"]
Manager = Literal["apt", "dnf", "zypper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A signing key. fingerprint None: nobody has confirmed it, so it must not be trusted unseen."""

    name: Word
    url: Text | None = None
    path: Text
    fingerprint: Fingerprint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey(Row):
    """A repository signing key and the repositories it signs."""

    name: Word
    url: Text
    path: Text
    fingerprint: Fingerprint | None
    status: Literal["current", "retired"] = "current"
    used_for: tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository(Row):
    """A package repository. content and path: the file to write; in YAML ``{arch}`` is still a placeholder."""

    name: Word
    os: tuple[Text, ...]
    purpose: Literal["driver", "toolkit", "containerd", "distro", "epel"]
    path: Text
    content: Text
    key: Word | None = None  # name of a signing key; resolved into signing_key
    archs: tuple[Word, ...] = ("x86_64",)
    arch_names: Mapping[Word, Word] | None = None  # x86_64 → x86_64, aarch64 → sbsa
    min_branch: BranchName | None = None
    max_branch: BranchName | None = None
    components: tuple[Word, ...] = ()
    signing_key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSet:
    """One flavour of a series.

    packages: what to install; the first one's candidates decide the version. {version}, {release}, {meta} are open.
    versions: package → exact package version, where it differs from the series' own.
    source_package: the package that holds the module source (or the prebuilt module).
    vendor_key: whose key the ready modules are signed with, where the system does not trust it by itself.
    built_by_package: the package builds the module on the host, in its own scripts, though it is called prebuilt.
    """

    packages: tuple[Package, ...]
    source_package: Package | None = None
    dkms_name: Word | None = None
    module: Word = "nvidia"
    precompiled: Package | None = None  # linux-modules-nvidia-580-server-open-{release}, kmod-nvidia-{version}-{kernel}
    built_by_package: Flag = False
    vendor_key: Text | None = None
    precompiled_meta: Package | None = None  # {meta}: generic, generic-hwe-24.04, …
    stream: Text | None = None  # dnf module stream, such as 580-open; None where there are no streams
    companions: tuple[Package, ...] = ()  # wanted too, with versions of their own: never pinned to the driver's
    versions: Mapping[Package, Text] | None = None
    alternatives: tuple[tuple[Package, ...], ...] = ()  # other names under which the same driver may be installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Series(Row):
    """A driver branch as one package source offers it on one system.

    In YAML one row may name several systems and branches; each combination becomes a Series of its own.
    version, package_version: what the source holds at ``checked``; None = follows the branch's newest release.
    transitional_to: the names exist, but install another branch.
    """

    os: Text
    package_source: Source
    branch: BranchName
    variant: Literal["", "server", "tesla", "legacy"] = ""
    method: Literal["dkms", "precompiled"]
    suite: Text | None = None
    version: Version | None = None
    package_version: Text | None = None
    package_pattern: Text | None = None  # package version from a driver version: "{version}-1"
    open: PackageSet | None = None
    proprietary: PackageSet | None = None
    transitional_to: BranchName | None = None
    components: tuple[Word, ...] = ()
    default: Flag = False  # what the distribution itself picks
    priority: int = 0  # among series of one branch and source the highest wins
    archs: tuple[Word, ...] = ()  # empty = all of the system

    def flavour(self, name: str) -> PackageSet | None:
        """The package set of ``open`` or ``proprietary``."""
        return self.open if name == "open" else self.proprietary


@dataclass(frozen=True, slots=True, kw_only=True)
class LyingName(Row):
    """A package name that installs another branch than it says."""

    os: Text
    name: Regex
    installs: BranchName
    until: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricPackage(Row):
    """Package names of a fabric component or the persistence daemon for a source and branches."""

    os: tuple[Text, ...]
    package_source: Source
    component: Literal["fabricmanager", "fabricmanager-dev", "nscq", "imex", "nvsdm", "nvlsm", "persistenced"]
    branches: Drivers
    packages: tuple[Package, ...]
    version_pattern: Text | None = None  # "{version}-1"; None = a version of its own
    lockstep: Flag = True
    service: Text | None = None
    command: Text | None = None  # how the packaged unit starts it, where that matters
    archs: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPackaging(Row):
    """How kernels are packaged on a system. Patterns take {release}.

    family: regular expressions of every package of the kernel family (to hold); keep_moving: those that look like it
    but must not be held. metas: packages that pull new kernels in, installed or not.
    """

    os: Text
    image_pattern: Package
    headers_pattern: Package
    extra_patterns: tuple[Package, ...] = ()
    metas: tuple[Package, ...]
    headers_metas: tuple[Package, ...] = ()
    family: tuple[Regex, ...]
    keep_moving: tuple[Regex, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The compiler package for kernels that were built with it."""

    kernels: Text
    package: Package


@dataclass(frozen=True, slots=True, kw_only=True)
class System(Row):
    """An operating system that is planned for."""

    os: Text  # "debian 12"
    family: Literal["debian", "redhat", "suse"]
    manager: Manager
    codename: Word | None = None
    archs: tuple[Word, ...]
    eol: Date | None = None
    lts_eol: Date | None = None
    cuda_repo: Word | None = None  # directory in NVIDIA's repository
    guide: Flag = True  # named by NVIDIA's current installation guide
    python: Text | None = None  # its own Python
    managed: Flag = True  # False: planned and reported only, without a newer interpreter
    compilers: tuple[Compiler, ...] = ()
    default_compiler: Package | None = None
    build_packages: tuple[Package, ...] = ()
    nouveau_files: tuple[Text, ...] = ()
    mok: Text | None = None  # public key that DKMS signs with
    dkms_guard: Text | None = None


@dataclass(frozen=True, slots=True)
class Packaging:
    """Everything about packages on one system and architecture."""

    os_id: str
    os_version: str
    arch: str
    system: System
    kernel: KernelPackaging
    series: tuple[Series, ...]
    repositories: tuple[Repository, ...]
    fabric: tuple[FabricPackage, ...]
    lying: tuple[LyingName, ...]

    @property
    def manager(self) -> str:
        """apt, dnf or zypper."""
        return self.system.manager

    @property
    def toolkit_repository(self) -> Repository | None:
        """Where nvidia-container-toolkit comes from."""
        return next((one for one in self.repositories if one.purpose == "toolkit"), None)

    @property
    def containerd_repository(self) -> Repository | None:
        """Where containerd.io comes from: Docker's own repository."""
        return next((one for one in self.repositories if one.purpose == "containerd"), None)

    def driver_repository(self, source: str, branch: str | None = None) -> Repository | None:
        """The repository file for a driver source, None where the system's own sources serve (see ``components``)."""
        return next(
            (
                one
                for one in self.repositories
                if one.purpose == ("driver" if source == "nvidia" else "distro")
                and (branch is None or ((one.min_branch or "0") <= branch <= (one.max_branch or "9999")))
            ),
            None,
        )

    def find(
        self,
        branch: str | None = None,
        source: str | None = None,
        flavour: str | None = None,
        method: str | None = None,
        transitional: bool = False,
    ) -> tuple[Series, ...]:
        """Series that match, best first (own choice of the system first, then priority, then newest branch)."""
        return tuple(
            one
            for one in self.series
            if (branch is None or one.branch == branch)
            and (source is None or one.package_source == source)
            and (method is None or one.method == method)
            and (flavour is None or one.flavour(flavour) is not None)
            and (transitional or one.transitional_to is None)
        )

    def fabric_package(self, component: str, version: str, source: str = "nvidia") -> FabricPackage | None:
        """How a fabric component (or ``persistenced``) is packaged for a driver version, with the branch filled in."""
        for one in self.fabric:
            if one.component == component and one.package_source == source and version in one.branches:
                names = tuple(name.replace("{branch}", version.split(".", 1)[0]) for name in one.packages)
                return replace(one, packages=names)
        return None
