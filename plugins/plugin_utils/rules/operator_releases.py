# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rows of the operator's releases answer: Kubernetes, majors, components."""

from __future__ import annotations

from typing import Any

from ..model.version import try_loose
from .context import Context


def row(context: Context) -> Any:
    """Return the row of the decided release, None if there is none."""
    version = context.operator.version if context.operator is not None else None
    return context.matrix.operator(version) if version is not None else None


def fits_kubernetes(release: Any, version: str | None) -> bool | None:
    """Say whether a release names a Kubernetes version as supported; None if nobody can tell."""
    have = try_loose(version) if version else None
    if have is None or len(release.kubernetes) != 2:
        return None
    low, high = (try_loose(end) for end in release.kubernetes)
    return low <= have[:2] <= high if low is not None and high is not None else None


def containerd(context: Context) -> tuple[int, ...] | None:
    """Return the release of containerd on the host, None if nobody could tell."""
    there = context.host.containers.containerd
    if isinstance(there, str):
        return try_loose(there)
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    runtime = node.runtime if node is not None else None
    return try_loose(runtime.removeprefix("containerd://")) if runtime and runtime.startswith("containerd://") else None


def fits_containerd(release: Any, have: tuple[int, ...] | None) -> bool | None:
    """Say whether a release names a containerd line as supported; None if nobody can tell."""
    lines = [try_loose(end) for told in release.containerd for end in told.split("-")]
    known = [line for line in lines if line is not None]
    return min(known) <= have[:2] <= max(known) if have is not None and known else None


def majors(context: Context) -> list[tuple[int, ...]]:
    """Return the majors that there are, oldest first: (25, 10), (26, 3), (26, 7)."""
    found = {loose[:2] for one in context.matrix.operators() if (loose := try_loose(one.version.removeprefix("v")))}
    return sorted(found)


def component(release: Any, name: str) -> tuple[int, ...] | None:
    """Return the version of a component of the chart: ``v1.17.4-ubuntu20.04`` is (1, 17, 4)."""
    return image_version(release.components.get(name)) if release is not None else None


def image_version(tag: object) -> tuple[int, ...] | None:
    """Return the version that an image tag begins with, None for a digest or a word."""
    head = str(tag or "").removeprefix("v").split("-")[0]
    return try_loose(head) if head[:1].isdigit() and "." in head else None
