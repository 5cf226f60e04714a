# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of NVIDIA's that are in the way and that no file of this collection takes the place of.

Two kinds: NVIDIA's repository for another release of the system, and one repository that two files name. They are
switched off with a backup. Which of two files stays: the one that names a key, then the newer form (deb822), then the
first by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..rules import sources
from ..rules.context import Context
from . import repositories

OURS = "/baremetal-nvidia-"


def find(context: Context) -> list[dict[str, Any]]:
    """Return what is taken out: the file, the address in it, the file that keeps the repository, and why."""
    return [*_of_another_release(context), *_twice(context)]


def _of_another_release(context: Context) -> Iterator[dict[str, Any]]:
    if any(one.get("replaces") for one in context.driver.repositories):
        return  # the right one is written, and takes their place
    for one in repositories.wrong(context):
        yield {"path": one.file, "url": one.url, "keep": None, "why": "it is of another release of the system"}


def _twice(context: Context) -> Iterator[dict[str, Any]]:
    own = [one for one in (repositories.address_in(row) for row in context.driver.repositories) if one]
    for group in sources.groups(context):
        files = [one.file for one in group]
        if not sources.is_nvidia(context, group[0].url) or any(OURS in file for file in files):
            continue
        if any(repositories.same(group[0].url, one) for one in own):
            continue
        stays = min(group, key=lambda one: (not isinstance(one.signed_by, str), not one.file.endswith(".sources"),
                                            one.file))
        for one in group:
            if one.file != stays.file:
                yield {"path": one.file, "url": one.url, "keep": stays.file,
                       "why": f"{stays.file} names the same repository"}
