# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts build a module for others of their shape.

A shape is the digest that a host itself makes of all that a build depends on, so it is exact where the plan of a fleet
(:mod:`.fleet`) can only say which hosts are likely to be alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NEEDS_BUILD = "needs_build"


def builders(looks: Mapping[str, Iterable[Mapping[str, Any]]], stored: Iterable[str]) -> dict[str, list[str]]:
    """Return host → the shapes that it builds: the first host of each shape that is not stored yet.

    ``looks``: what the look of each host says of its kernels (``shape``, ``how``); ``stored``: names of the stored
    builds, NAME-VERSION_KERNEL_SHAPE_SHA256.tar.gz.
    """
    taken = {parts[-2] for name in stored if len(parts := name.rpartition("/")[2].split("_")) >= 4}
    found: dict[str, list[str]] = {}
    for host, kernels in looks.items():
        new = [str(one["shape"]) for one in kernels if one.get("how") == NEEDS_BUILD and one.get("shape")]
        mine = [shape for shape in dict.fromkeys(new) if shape not in taken]
        if mine:
            found[host] = mine
            taken.update(mine)
    return found
