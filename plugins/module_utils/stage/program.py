# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The managers' programs, with their own words where one fails."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Callable

from .errors import StageError

Runner = Callable[..., Any]
TIMEOUT = 1800.0  # of what moves packages


class Program:
    """Starts programs with one environment. In ``shims`` they find stand-ins first, as for update-grub."""

    def __init__(self, run: Runner, environment: Mapping[str, str], shims: str | None) -> None:
        path = os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        self.run = run
        self.environment = {**environment, **({"PATH": f"{shims}:{path}"} if shims else {})}

    def _call(self, argv: list[str], what: str, timeout: float = 300) -> str:
        result = self.run(argv, timeout=timeout, env=self.environment)
        if result.timed_out or result.rc != 0:
            words = (result.err or result.out).strip().splitlines()
            raise StageError(f"{what}: {argv[0]} failed ({'no answer in time' if result.timed_out else result.rc}): "
                             f"{'; '.join(words[-3:]) or 'no message'}")
        return str(result.out)
