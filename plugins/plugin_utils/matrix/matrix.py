# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix: an immutable set of rows and the questions it answers.

All look-ups are prepared when it is made; a question costs microseconds. Nothing here knows a host.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..model.version import branch_of, try_loose, try_parse
from . import rows
from .devices import Devices, Support
from .fit import KernelFit, Kernels
from .packaging import Systems
from .runtimes import Runtimes

__all__ = ["KernelFit", "Matrix", "Support"]


class Matrix:
    """All rows by section (``tables``), the digest of what they were read from, and the questions."""

    def __init__(self, tables: Mapping[str, tuple[rows.Row, ...]], digest: str, overlays: tuple[str, ...] = ()) -> None:
        put = super().__setattr__
        put("tables", MappingProxyType(dict(tables)))
        put("digest", digest)
        put("overlays", overlays)
        t: Mapping[str, Any] = tables
        put("_versions", {row.version: row for row in t["versions"]})
        by_branch: dict[str, list[rows.DriverVersion]] = {}
        for row in t["versions"]:
            by_branch.setdefault(row.branch or branch_of(row.version), []).append(row)
        put(
            "_by_branch",
            {
                name: tuple(sorted(found, key=lambda row: try_parse(row.version) or (), reverse=True))
                for name, found in by_branch.items()
            },
        )
        put("_branches", {row.name: self._filled(row) for row in sorted(t["branches"], key=lambda row: int(row.name))})
        put("_architectures", {row.name: row for row in sorted(t["architectures"], key=lambda row: row.order)})
        put("devices", Devices(t["products"], t["chips"], self._architectures, self._branches, self._versions))
        put(
            "kernels",
            Kernels(
                self._branches,
                self._versions,
                t["kernel_fixes"],
                t["kernel_ceilings"],
                t["kernel_builds"],
                t["kernel_breakages"],
                t["kernel_patched"],
                t["kernel_lines"],
                t["kernel_abis"],
                t["kernel_prebuilt"],
            ),
        )
        put(
            "systems",
            Systems(
                t["systems"],
                t["kernel_packaging"],
                t["series"],
                t["repositories"],
                t["signing_keys"],
                t["fabric_packages"],
                t["lying_names"],
            ),
        )
        put("runtimes", Runtimes(t))
        put("_bulletins", tuple(sorted(t["bulletins"], key=lambda row: row.date)))
        put("_switches", {f"10de:{device}": row for row in t["nvswitches"] for device in (*row.ids, *row.bridges)})
        put("_fabrics", {device: row for row in t["nvswitches"] for device in row.products})
        put("_mig", {row.name: row for row in t["mig"]})
        toolkits = sorted(t["cuda_toolkits"], key=lambda row: try_parse(row.version) or ())
        put("_cuda", {row.version: row for row in toolkits})
        first: dict[str, rows.CudaToolkit] = {}
        for row in toolkits:
            if row.series not in first or (first[row.series].toolkit_min is None and row.toolkit_min is not None):
                first[row.series] = row
        put("_cuda_series", first)
        put("_cuda_families", {str(row.major): row for row in t["cuda_families"]})
        put("_cuda_compat", {row.cuda: row for row in t["cuda_compat"]})
        put("_frameworks", {(row.name, row.version): row for row in t["frameworks"]})
        put("_components", {row.name: row for row in t["fabric_components"]})

    # The attributes are set once, above.
    tables: Mapping[str, tuple[rows.Row, ...]]
    digest: str
    overlays: tuple[str, ...]
    devices: Devices
    kernels: Kernels
    systems: Systems
    runtimes: Runtimes
    _bulletins: tuple[rows.Bulletin, ...]
    _versions: dict[str, rows.DriverVersion]
    _by_branch: dict[str, tuple[rows.DriverVersion, ...]]
    _branches: dict[str, rows.Branch]
    _architectures: dict[str, rows.Architecture]
    _switches: dict[str, rows.NvSwitch]
    _fabrics: dict[str, rows.NvSwitch]
    _mig: dict[str, rows.Mig]
    _cuda: dict[str, rows.CudaToolkit]
    _cuda_series: dict[str, rows.CudaToolkit]
    _cuda_families: dict[str, rows.CudaFamily]
    _cuda_compat: dict[str, rows.CudaCompat]
    _frameworks: dict[tuple[str, str], rows.Framework]
    _components: dict[str, rows.FabricComponent]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a matrix does not change; load another one")

    __delattr__ = None  # type: ignore[assignment]

    def _filled(self, row: rows.Branch) -> rows.Branch:
        """A branch with its first and latest known release."""
        known = self._by_branch.get(row.name, ())
        if not known:
            return row
        values = {name: getattr(row, name) for name in rows.Branch.__dataclass_fields__}
        values.update(
            first=known[-1].version, first_date=known[-1].date, latest=known[0].version, latest_date=known[0].date
        )
        return rows.Branch(**values)

    # Drivers

    def branches(self) -> tuple[rows.Branch, ...]:
        """All driver branches, oldest first."""
        return tuple(self._branches.values())

    def branch(self, name: str) -> rows.Branch | None:
        """A branch by name: ``580``."""
        return self._branches.get(name)

    def versions(self, branch: str) -> tuple[rows.DriverVersion, ...]:
        """Known releases of a branch, newest first."""
        return self._by_branch.get(branch, ())

    def version(self, version: str) -> rows.DriverVersion | None:
        """A release by its version; None for one that no row knows (it may exist all the same)."""
        return self._versions.get(version)

    def bulletins(self, component: str | None = None) -> tuple[rows.Bulletin, ...]:
        """Security bulletins, oldest first."""
        return (
            self._bulletins
            if component is None
            else tuple(row for row in self._bulletins if row.component == component)
        )

    def open_bulletins(self, version: str) -> tuple[rows.Bulletin, ...]:
        """Driver bulletins whose fix for this branch is newer than a driver version."""
        have, branch = try_parse(version), branch_of(version)
        if have is None:
            return ()
        return tuple(
            row
            for row in self._bulletins
            if row.component == "driver" and (fixed := try_parse(row.fixed.get(branch))) is not None and have < fixed
        )

    # GPUs

    def architectures(self) -> tuple[rows.Architecture, ...]:
        """All architectures, oldest first."""
        return tuple(self._architectures.values())

    def architecture(self, name: str) -> rows.Architecture | None:
        """An architecture by name: ``volta``."""
        return self._architectures.get(name.lower())

    def product(self, device: str, subsystem: str | None = None) -> rows.Product | None:
        """The product of a PCI id (``10de:1eb8``). Cards without a row of their own are told by their chip."""
        return self.devices.product(device.lower(), subsystem.lower() if subsystem else None)

    def supports(self, product: rows.Product, version: str) -> Support:
        """Whether a driver version or branch runs a product."""
        return self.devices.supports(product, version)

    def nvswitch(self, device: str) -> rows.NvSwitch | None:
        """The NVSwitch generation of a PCI id (``10de:22a3``)."""
        return self._switches.get(device.lower())

    def nvswitches(self) -> tuple[rows.NvSwitch, ...]:
        """All fabric generations."""
        found: tuple[Any, ...] = self.tables["nvswitches"]
        return found

    def fabric_of(self, device: str) -> rows.NvSwitch | None:
        """The fabric that a GPU's PCI id tells by itself (NVLink5 boards show no NVSwitch), None for others."""
        return self._fabrics.get(device.lower())

    def fabric_component(self, name: str) -> rows.FabricComponent | None:
        """fabricmanager, nvlsm, imex, nscq or nvsdm."""
        return self._components.get(name)

    def mig(self, name: str) -> rows.Mig | None:
        """MIG of a product family, by the ``mig`` of a product."""
        return self._mig.get(name)

    # CUDA and frameworks

    def cuda(self, version: str) -> rows.CudaToolkit | None:
        """A toolkit. ``12.4.1`` is that release; ``12.4`` the release of the series that asks least of the driver."""
        return self._cuda.get(version) or self._cuda_series.get(version)

    def cudas(self) -> tuple[rows.CudaToolkit, ...]:
        """All toolkits, oldest first."""
        return tuple(self._cuda.values())

    def cuda_family(self, major: str | int) -> rows.CudaFamily | None:
        """What minor-version compatibility of a CUDA major version needs."""
        return self._cuda_families.get(str(major).partition(".")[0])

    def cuda_max(self, driver_version: str) -> str | None:
        """The newest CUDA a driver runs natively: ``580.178.04`` → ``13.0``. Takes a branch, too."""
        branch = self._branches.get(branch_of(driver_version))
        if branch is not None and branch.cuda:
            return branch.cuda
        have = try_parse(driver_version)
        if have is None:
            return None
        fits = [
            row.series
            for row in self._cuda.values()
            if row.decides and (need := try_parse(row.toolkit_min or row.bundled_driver)) is not None and need <= have
        ]
        return max(fits, key=lambda text: try_parse(text) or (), default=None)

    def cuda_compat(self, cuda: str) -> rows.CudaCompat | None:
        """The cuda-compat package of a CUDA series, None where no row knows one."""
        return self._cuda_compat.get(".".join(cuda.split(".")[:2]))

    def framework(self, name: str, version: str) -> rows.Framework | None:
        """A framework release; ``2.7.1`` finds ``2.7``."""
        parts = version.split(".")
        for size in range(len(parts), 0, -1):
            if found := self._frameworks.get((name.lower(), ".".join(parts[:size]))):
                return found
        return None

    def frameworks(self, name: str) -> tuple[rows.Framework, ...]:
        """Known releases of a framework, newest first."""
        return tuple(
            sorted(
                (row for row in self._frameworks.values() if row.name == name.lower()),
                key=lambda row: try_loose(row.version) or (),
                reverse=True,
            )
        )

    # Kernels

    def kernel_fit(
        self,
        driver_version: str,
        flavour: str,
        kernel_release: str,
        distro_id: str,
        distro_version: str,
        source: str = "nvidia",
        package_version: str | None = None,
    ) -> KernelFit:
        """Whether a driver builds on a kernel. source: distro (with its patches) or nvidia."""
        return self.kernels.fit(
            driver_version, flavour, kernel_release, distro_id, distro_version, source, package_version
        )

    def kernel_line(self, os_id: str, os_version: str, release: str) -> rows.DistroKernel | None:
        """The line of a distribution that a kernel release belongs to: its compiler, its peculiarities."""
        return self.kernels.line(os_id, os_version, release)

    def breakages(
        self,
        driver_version: str,
        release: str | None,
        os_id: str,
        os_version: str,
        flavour: str | None = None,
        source: str | None = None,
    ) -> tuple[rows.Breakage, ...]:
        """Breakages reported for a driver version on a system and kernel."""
        return self.kernels.breakages_for(driver_version, release, os_id, os_version, flavour, source)

    def kernel_patches(self, driver_version: str, release: str) -> tuple[rows.KernelPatch, ...]:
        """Hints that packagers patch a driver for a kernel; they decide nothing."""
        found: tuple[Any, ...] = self.tables["kernel_patches"]
        return tuple(row for row in found if driver_version in row.drivers and release in row.kernels)

    # Packages

    def packaging(self, os_id: str, os_version: str, arch: str) -> rows.Packaging | None:
        """How things are packaged on a system, None if no row knows it."""
        return self.systems.packaging(os_id, os_version, arch)

    def system(self, os_id: str, os_version: str) -> rows.System | None:
        """The row of an operating system."""
        return self.systems.find(os_id, os_version)

    def signing_key(self, name: str) -> rows.SigningKey | None:
        """A repository signing key by name."""
        return self.systems.keys.get(name)

    def distro_package(self, os: str, package: str, suite: str | None = None) -> rows.DistroPackage | None:
        """A runtime package of a distribution's archive: ``debian 13``, ``containerd``."""
        found = (row for row in self.runtimes.packages if row.os == os and row.package == package)
        return next((row for row in found if suite in (None, row.suite)), None)

    # Container runtimes, Kubernetes, operator

    def toolkit_floor(self) -> str | None:
        """Oldest nvidia-container-toolkit without known vulnerability."""
        return self.runtimes.floor("nvidia-container-toolkit")

    def toolkit_releases(self) -> tuple[rows.ToolkitRelease, ...]:
        """Known releases of nvidia-container-toolkit, newest first."""
        return self.runtimes.toolkits

    def containerd(self, version: str) -> rows.ContainerdLine | None:
        """The line of a containerd version: ``1.7.24`` → the row of 1.7."""
        return self.runtimes.containerd_line(version)

    def containerd_lines(self) -> tuple[rows.ContainerdLine, ...]:
        """All containerd lines, oldest first."""
        return tuple(self.runtimes.containerd.values())

    def containerd_floor(self, line: str) -> str | None:
        """Oldest release of a containerd line without known vulnerability."""
        return self.runtimes.floor("containerd", line)

    def runc_floor(self, line: str | None = None) -> str | None:
        """Oldest runc without known vulnerability: of a line (``1.2``), or of the oldest line that has one."""
        return self.runtimes.floor("runc", line)

    def open_cves(self, component: str, version: str) -> tuple[rows.Cve, ...]:
        """Vulnerabilities of a component that a version still has."""
        return self.runtimes.open_cves(component, version)

    def operator(self, version: str) -> rows.OperatorRelease | None:
        """A GPU Operator release, with or without leading v."""
        return self.runtimes.operators.get(f"v{version.removeprefix('v')}")

    def operators(self) -> tuple[rows.OperatorRelease, ...]:
        """Known GPU Operator releases, newest first."""
        return tuple(self.runtimes.operators.values())

    def operator_floor(self) -> str | None:
        """Oldest GPU Operator release that has the fix of every known vulnerability."""
        return self.runtimes.operator_floor

    def kubernetes(self, version: str) -> rows.KubernetesRelease | None:
        """A Kubernetes minor release: ``1.34.2`` → the row of 1.34."""
        return self.runtimes.kubernetes.get(".".join(version.removeprefix("v").split(".")[:2]))

    def facts(self, component: str) -> tuple[rows.Fact, ...]:
        """Remarks on a component, in the order of their files."""
        found: tuple[Any, ...] = self.tables["facts"]
        return tuple(row for row in found if row.component == component)

    def unchecked_for(self, today: datetime.date, days: int) -> dict[str, int]:
        """How many rows per section nobody has checked for more than ``days``; others are left out."""
        since = today - datetime.timedelta(days=days)
        counted = {title: sum(row.checked < since for row in found) for title, found in self.tables.items()}
        return {title: number for title, number in counted.items() if number}

    def oldest_check(self) -> datetime.date:
        """The day of the row that nobody has checked for longest."""
        return min(row.checked for found in self.tables.values() for row in found)
