# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of the data files: sections, their rows, and the check of a YAML row against its dataclass.

The dataclass is the schema: its field names are the keys a row may have, its annotations say what they hold, fields
without default must be there. ``build`` returns the row or raises :class:`Problem` with the path of the bad value.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from . import rows
from .kinds import Kind, Refused

Path = tuple[Any, ...]
Check = Callable[[Any, Path], Any]


class Problem(ValueError):
    """A value that does not fit. path: keys and indexes from the top of the document."""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.message, self.path = message, path


@dataclass(frozen=True)
class Section:
    """A section of the data files. key: the fields that tell rows apart; expand: fields whose lists make rows each."""

    row: type[rows.Row]
    key: tuple[str, ...]
    expand: tuple[str, ...] = ()


SECTIONS: Mapping[str, Section] = types.MappingProxyType(
    {
        "branches": Section(rows.Branch, ("name",)),
        "versions": Section(rows.DriverVersion, ("version",)),
        "bulletins": Section(rows.Bulletin, ("id",)),
        "architectures": Section(rows.Architecture, ("name",)),
        "chips": Section(rows.Chip, ("name",)),
        "products": Section(rows.Product, ("id", "subsystems")),
        "nvswitches": Section(rows.NvSwitch, ("name",)),
        "fabric_components": Section(rows.FabricComponent, ("name",)),
        "mig": Section(rows.Mig, ("name",)),
        "cuda_toolkits": Section(rows.CudaToolkit, ("version",)),
        "cuda_families": Section(rows.CudaFamily, ("major",)),
        "cuda_compat": Section(rows.CudaCompat, ("cuda",)),
        "frameworks": Section(rows.Framework, ("name", "version")),
        "kernel_fixes": Section(rows.KernelFix, ("id",)),
        "kernel_ceilings": Section(rows.KernelCeiling, ("drivers", "flavour")),
        "kernel_builds": Section(rows.KernelBuild, ("driver", "package", "package_version", "flavour", "release")),
        "kernel_breakages": Section(rows.Breakage, ("id",)),
        "kernel_patched": Section(rows.PatchedPackage, ("os", "suite", "package", "package_version")),
        "kernel_patches": Section(rows.KernelPatch, ("kernels", "drivers", "flavour")),
        "kernel_lines": Section(rows.DistroKernel, ("os", "line", "kernels"), ("os",)),
        "kernel_abis": Section(rows.KernelAbi, ("os", "series")),
        "kernel_prebuilt": Section(
            rows.Prebuilt, ("os", "suite", "branch", "server", "kernel", "kernel_flavour", "flavour")
        ),
        "systems": Section(rows.System, ("os",), ("os",)),
        "kernel_packaging": Section(rows.KernelPackaging, ("os",), ("os",)),
        "series": Section(
            rows.Series, ("os", "package_source", "branch", "variant", "method", "suite"), ("os", "branch")
        ),
        "lying_names": Section(rows.LyingName, ("os", "name"), ("os",)),
        "fabric_packages": Section(rows.FabricPackage, ("os", "package_source", "component", "branches")),
        "repositories": Section(rows.Repository, ("name",)),
        "signing_keys": Section(rows.SigningKey, ("name",)),
        "toolkit_releases": Section(rows.ToolkitRelease, ("version",)),
        "cves": Section(rows.Cve, ("id", "component")),
        "containerd_lines": Section(rows.ContainerdLine, ("release",)),
        "kubernetes_releases": Section(rows.KubernetesRelease, ("version",)),
        "distro_packages": Section(rows.DistroPackage, ("os", "suite", "package")),
        "facts": Section(rows.Fact, ("component", "version", "fact")),
        "operator_releases": Section(rows.OperatorRelease, ("version",)),
    }
)


def _scalar(kind: Kind) -> Check:
    def check(value: Any, path: Path) -> Any:
        try:
            return kind.check(value)
        except Refused as refused:
            raise Problem(str(refused), path) from None

    return check


def _plain(value: Any, path: Path) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Problem(f"{value!r} is no whole number", path)
    return value


def _choice(allowed: tuple[Any, ...]) -> Check:
    def check(value: Any, path: Path) -> Any:
        if value not in allowed or isinstance(value, bool):
            raise Problem(f"{value!r} is not one of {', '.join(map(repr, allowed))}", path)
        return value

    return check


def _optional(inner: Check) -> Check:
    return lambda value, path: None if value is None else inner(value, path)


def _list(inner: Check) -> Check:
    def check(value: Any, path: Path) -> Any:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise Problem("a list is wanted", path)
        return tuple(inner(item, (*path, index)) for index, item in enumerate(value))

    return check


def _mapping(key: Check, inner: Check) -> Check:
    def check(value: Any, path: Path) -> Any:
        if not isinstance(value, Mapping):
            raise Problem("a mapping is wanted", path)
        return types.MappingProxyType(
            {key(name, (*path, name)): inner(item, (*path, name)) for name, item in value.items()}
        )

    return check


def _check_for(annotation: Any) -> Check:
    """The check that belongs to an annotation of a row."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _scalar(next(item for item in arguments if isinstance(item, Kind)))
    if origin is typing.Literal:
        return _choice(arguments)
    if origin in (typing.Union, types.UnionType):
        inner = [item for item in arguments if item is not types.NoneType]
        return _optional(_check_for(inner[0]))
    if origin is tuple:
        return _list(_check_for(arguments[0]))
    if annotation is int:
        return _plain
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_check_for(arguments[0]), _check_for(arguments[1]))
    if is_dataclass(annotation) and isinstance(annotation, type):
        return lambda value, path: build(annotation, value, path)
    raise TypeError(f"no check for {annotation!r}")


@functools.cache
def _fields(row: type) -> tuple[Mapping[str, Check], frozenset[str]]:
    hints = typing.get_type_hints(row, include_extras=True)
    checks = {one.name: _check_for(hints[one.name]) for one in fields(row)}
    needed = frozenset(one.name for one in fields(row) if one.default is MISSING and one.default_factory is MISSING)
    return checks, needed


def build(row: type, value: Any, path: Path, **more: Any) -> Any:
    """Check a YAML mapping and make the row of it; ``more`` are values that are not checked (overlay, resolved source).

    Raises Problem with the path of the first bad value.
    """
    if not isinstance(value, Mapping):
        raise Problem("a mapping is wanted", path)
    checks, needed = _fields(row)
    made = dict(more)
    for name, item in value.items():
        if name in made:
            continue
        check = checks.get(name)
        if check is None:
            raise Problem(
                f"unknown key {name!r}; allowed: {', '.join(sorted(set(checks) - {'overlay'}))}", (*path, name)
            )
        made[name] = check(item, (*path, name))
    missing = needed - made.keys()
    if missing:
        raise Problem(f"missing: {', '.join(sorted(missing))}", path)
    return row(**made)


def expand(section: Section, value: Any) -> list[dict[str, Any]]:
    """Rows of one YAML row whose expanding fields are lists: one each (their product)."""
    if not isinstance(value, Mapping):
        return [value]
    made = [dict(value)]
    for name in section.expand:
        if isinstance(value.get(name), list):
            made = [{**one, name: item} for one in made for item in value[name]]
    return made


def key_of(section: Section, value: Mapping[str, Any]) -> Path:
    """The key of a raw row, as far as it is given."""
    found = []
    for name in section.key:
        item = value.get(name)
        found.append(tuple(map(str, item)) if isinstance(item, (list, tuple)) else item if item is None else str(item))
    return tuple(found)
