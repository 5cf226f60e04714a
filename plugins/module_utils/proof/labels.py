# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux labels of module files: with a wrong one the loader may not read the module, and nothing says why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable

from .errors import ProofError

ENFORCE = "sys/fs/selinux/enforce"


def restore(paths: Sequence[str], run: Callable[..., Any], root: str = "/") -> bool:
    """Give files the label that the policy has for their place; whether one was wrong. Nothing without SELinux."""
    if not paths or not os.path.exists(os.path.join(root, ENFORCE)):
        return False
    done = run(["restorecon", "-F", "-v", *paths], timeout=60)
    if not done.ok:
        raise ProofError(f"the modules' SELinux labels are not known to be right: {done.why('restorecon')}")
    return bool(done.out.strip())
