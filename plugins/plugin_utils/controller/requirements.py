# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller must bring, checked before the first module runs, and what a module's failure really says."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any

#: Bounds of ansible-core, as in meta/runtime.yml (a test keeps them equal).
CORE_MINIMUM = (2, 19)
CORE_BELOW = (2, 22)
TARGET_PYTHON = "3.9"

_TOO_OLD = re.compile(
    r"requires a minimum of Python|SyntaxError|future feature annotations is not defined"
    r"|ansible-core requires a minimum|is not supported by ansible|No module named 'dataclasses'",
    re.IGNORECASE,
)
_NO_PYTHON = re.compile(r"(python[\w./]*: (command )?not found|/python[\w.]*: No such file)", re.IGNORECASE)


def core_problem(version: str) -> str | None:
    """Say why this ansible-core cannot run the collection, or None."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    found = (int(numbers[1]), int(numbers[2])) if numbers else None
    if found is not None and CORE_MINIMUM <= found < CORE_BELOW:
        return None
    low, high = _dotted(CORE_MINIMUM), _dotted(CORE_BELOW)
    return (
        f"ansible-core {version} is not supported: baremetal.nvidia needs at least {low} and less than {high}. "
        f"Install one of these (pip install 'ansible-core>={low},<{high}') or take the execution environment of the "
        f"collection."
    )


def module_problem(result: Mapping[str, Any], core_version: str) -> str | None:
    """Turn the failure of the first module on a host into what it means, or None when it says so itself."""
    text = "\n".join(str(result.get(key) or "") for key in ("msg", "module_stderr", "module_stdout", "exception"))
    if _TOO_OLD.search(text):
        return (
            f"the host's Python is older than {TARGET_PYTHON}, and ansible-core {core_version} cannot run modules on "
            f"it. Install a newer one beside it (EL 8: dnf install python3.11; SLES 15: zypper install python311; "
            f"Ubuntu 20.04: apt-get install python3.9) and set ansible_python_interpreter to it; packages are handled "
            f"by their managers' own programs, so no bindings are missed. Until then the host can be planned and "
            f"reported from stored facts (gpu_facts_file)."
        )
    if _NO_PYTHON.search(text):
        return (
            f"no Python was found on the host; modules need {TARGET_PYTHON} or newer. Install python3 there, or set "
            f"ansible_python_interpreter."
        )
    return None


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


def runtime_file() -> pathlib.Path:
    """Return the path of meta/runtime.yml."""
    return pathlib.Path(__file__).resolve().parents[3] / "meta" / "runtime.yml"
