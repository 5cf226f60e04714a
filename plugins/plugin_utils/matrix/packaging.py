# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put together what the packaging rows say about one system."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .rows import (
    FabricPackage,
    KernelPackaging,
    Key,
    LyingName,
    PackageSet,
    Packaging,
    Repository,
    Series,
    SigningKey,
    System,
)
from .systems import canonical, matches


def _fill(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _parts(os: str) -> tuple[str, str]:
    name, _space, version = os.partition(" ")
    return name, version


def _dist(os: str) -> str:
    """The dist tag of rpm releases: ``rhel 9`` → ``el9``; empty elsewhere."""
    name, version = _parts(os)
    return f"el{version.split('.')[0]}" if name == "rhel" else ""


def _fill_set(one: PackageSet | None, branch: str) -> PackageSet | None:
    """A package set with the branch filled in; {version} and {release} stay."""
    if one is None:
        return None

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return _fill(value, branch=branch)
        if isinstance(value, tuple):
            return tuple(fill(item) for item in value)
        if isinstance(value, Mapping):
            return {fill(name): fill(item) for name, item in value.items()}
        return value

    return PackageSet(**{field.name: fill(getattr(one, field.name)) for field in dataclasses.fields(one)})


class Systems:
    """The packaging rows by system; one Packaging is put together once and kept."""

    def __init__(
        self,
        systems: tuple[System, ...],
        kernels: tuple[KernelPackaging, ...],
        series: tuple[Series, ...],
        repositories: tuple[Repository, ...],
        keys: tuple[SigningKey, ...],
        fabric: tuple[FabricPackage, ...],
        lying: tuple[LyingName, ...],
    ) -> None:
        self.systems, self.kernels, self.repositories, self.fabric, self.lying = (
            systems,
            kernels,
            repositories,
            fabric,
            lying,
        )
        self.keys = {key.name: key for key in keys}
        self.series = tuple(
            dataclasses.replace(
                one,
                open=_fill_set(one.open, one.branch),
                proprietary=_fill_set(one.proprietary, one.branch),
                package_pattern=_fill(one.package_pattern, dist=_dist(one.os)) if one.package_pattern else None,
            )
            for one in series
        )
        self._made: dict[tuple[frozenset[str], str], Packaging | None] = {}
        patterns = [row.os for row in systems] + [row.os for row in kernels] + [row.os for row in lying]
        patterns += [row.os for row in self.series] + [one for row in repositories for one in row.os]
        self._patterns = sorted({*patterns, *(one for row in fabric for one in row.os)})
        for system in systems:
            for arch in system.archs:
                self.packaging(*_parts(system.os), arch)

    def find(self, os_id: str, os_version: str) -> System | None:
        """The row of a system; ``rocky`` finds ``rhel``, ``9.5`` finds ``9``. The longest match wins."""
        fits = [row for row in self.systems if matches(row.os, os_id, os_version)]
        return max(fits, key=lambda row: len(row.os), default=None)

    def packaging(self, os_id: str, os_version: str, arch: str) -> Packaging | None:
        """Packaging of a system, None for a system or architecture that no row knows."""
        key = (frozenset(one for one in self._patterns if matches(one, os_id, os_version)), arch)
        if key not in self._made:
            self._made[key] = self._make(os_id, os_version, arch)
        made = self._made[key]
        if made is None or (made.os_id, made.os_version) == (os_id, os_version):
            return made
        return dataclasses.replace(made, os_id=os_id, os_version=os_version)

    def _make(self, os_id: str, os_version: str, arch: str) -> Packaging | None:
        system = self.find(os_id, os_version)
        kernels = [row for row in self.kernels if matches(row.os, os_id, os_version)]
        if system is None or not kernels or arch not in system.archs:
            return None
        series = [
            row for row in self.series if matches(row.os, os_id, os_version) and (not row.archs or arch in row.archs)
        ]
        series.sort(key=lambda row: (row.default, row.priority, int(row.branch)), reverse=True)
        return Packaging(
            os_id=os_id,
            os_version=os_version,
            arch=arch,
            system=system,
            kernel=max(kernels, key=lambda row: len(row.os)),
            series=tuple(series),
            repositories=tuple(
                self._repository(row, system, arch)
                for row in self.repositories
                if arch in row.archs and any(matches(one, os_id, os_version) for one in row.os)
            ),
            fabric=tuple(
                dataclasses.replace(row, version_pattern=_fill(row.version_pattern, dist=_dist(system.os)))
                if row.version_pattern
                else row
                for row in self.fabric
                if any(matches(one, os_id, os_version) for one in row.os) and (not row.archs or arch in row.archs)
            ),
            lying=tuple(row for row in self.lying if matches(row.os, os_id, os_version)),
        )

    def _repository(self, row: Repository, system: System, arch: str) -> Repository:
        """A repository with its key and with the placeholders of its file filled in."""
        key = self.keys.get(row.key) if row.key else None
        signing = Key(name=key.name, url=key.url, path=key.path, fingerprint=key.fingerprint) if key else None
        values = {
            "arch": (row.arch_names or {}).get(arch, arch),
            "codename": system.codename or "",
            "repo": system.cuda_repo or "",
            "key_path": key.path if key else "",
            "key_url": key.url if key else "",
        }
        values["key_url"] = _fill(
            values["key_url"], **{name: text for name, text in values.items() if name != "key_url"}
        )
        if signing is not None:
            signing = dataclasses.replace(signing, url=values["key_url"])
        return dataclasses.replace(
            row, path=_fill(row.path, **values), content=_fill(row.content, **values), signing_key=signing
        )

    @staticmethod
    def canonical(os_id: str) -> str:
        """The id that rows use for a system: ``rocky`` → ``rhel``."""
        return canonical(os_id)
