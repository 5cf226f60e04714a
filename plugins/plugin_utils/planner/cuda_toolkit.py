# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA on the host itself, where it is asked for: toolkits side by side, without a driver, and a Python environment.

The metapackages ``cuda`` and ``cuda-runtime`` are never taken: they bring the newest driver along.
"""

from __future__ import annotations

from typing import Any

from ..model import version as versions
from ..model.cuda_wishes import PYTORCH_INDEX
from ..model.facts import each
from ..rules import cudas
from ..rules.context import Candidate, Context
from . import candidates, repositories

DISTRO_PACKAGE = "nvidia-cuda-toolkit"
PROFILE = "/etc/profile.d/baremetal-nvidia-cuda.sh"
ENVIRONMENT = "/etc/baremetal-nvidia/cuda.env"
PIN = "/etc/apt/preferences.d/baremetal-nvidia-cuda"
_MANAGED = "# Managed by the Ansible collection baremetal.nvidia: changes are overwritten.\n"
# Of a repository that is there for the toolkit alone no driver may come: the distribution's would be replaced.
PIN_TEXT = (_MANAGED + "# The driver is the distribution's: of NVIDIA's repository only the CUDA toolkit.\n"
            "Package: nvidia-* libnvidia-* cuda-drivers* libcuda1 libcudadebugger1 libxnvctrl* "
            "xserver-xorg-video-nvidia* cuda cuda-[0-9]* cuda-runtime-*\n"
            "Pin: release l=NVIDIA CUDA\nPin-Priority: -1\n")
_TITLES = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}


def fill(context: Context, judged: Candidate) -> None:
    """Fill in ``context.cuda.toolkit`` and ``context.cuda.environment``."""
    if context.wishes.cuda_toolkit:
        context.cuda.toolkit = _toolkit(context, judged)
    if context.wishes.python_env is not None:
        context.cuda.environment = _environment(context, judged, context.wishes.python_env)


def _toolkit(context: Context, judged: Candidate) -> dict[str, Any]:
    wishes = context.wishes
    source = "distro" if wishes.cuda_toolkit_source == "distro" else "nvidia"
    default = wishes.cuda_toolkit_default or wishes.cuda_toolkit[0]
    home = "/usr/lib/cuda" if source == "distro" else f"/usr/local/cuda-{_series(default)}"
    compat = _compat(context, judged, default)
    found: dict[str, Any] = {
        "versions": list(wishes.cuda_toolkit), "default": default, "source": source, "home": home, "packages": {},
        "predicted": False, "missing": [], "repositories": [], "pin": None, "nvcc": _nvcc(context), "compat": compat,
        "profile": {"path": PROFILE, "content": _profile(home, wishes.cuda_toolkit, compat)},
        "environment": {"path": ENVIRONMENT, "content": _variables(home, compat)},
    }
    for wish in wishes.cuda_toolkit:
        _package(context, found, wish, DISTRO_PACKAGE if source == "distro" else f"cuda-toolkit-{_dashed(wish)}")
        if _compat(context, judged, wish):
            _package(context, found, wish, f"cuda-compat-{_dashed(wish)}", exact=False)
    if source == "nvidia":
        _repository(context, found, judged)
    return found


def _package(context: Context, found: dict[str, Any], wish: str, name: str, exact: bool = True) -> None:
    """Add a package at the version that is there and fits, else the newest on offer, else as the matrix has it."""
    host = context.host.packages
    there = host.version(name)
    if isinstance(there, str) and (not exact or _fits(there, wish)):
        found["packages"][name] = there
        return
    offered = host.offers(name)
    offer = next((one for one in each(offered) if not exact or _fits(one, wish)), None)
    if offer is not None:
        found["packages"][name] = offer
    elif _known(context, found["source"]):
        found["missing"].append(name)
    else:
        found["packages"][name] = _predicted(context, wish) if exact and found["source"] == "nvidia" else None
        found["predicted"] = True


def _known(context: Context, source: str) -> bool:
    """Say whether the facts can tell what the source offers: it is there, and its lists were read."""
    host = context.host.packages
    if not isinstance(host.available, dict) or host.cache_age is None:
        return False
    return source == "distro" or candidates.cuda_repository(context)


def _predicted(context: Context, wish: str) -> str | None:
    rows = [row.version for row in context.matrix.cudas() if _fits(row.version, wish)]
    return f"{max(rows, key=cudas.parsed)}-1" if rows else None


def _fits(version: str, wish: str) -> bool:
    """Say whether a version (12.8.1-1, 12.0.140~12.0.1-4build4) is of the release that is asked for."""
    parts = wish.split(".")
    upstream = versions.upstream(version) or version.partition("-")[0]
    return any(one.split(".")[: len(parts)] == parts for one in upstream.replace("~", "-").split("-"))


def _repository(context: Context, found: dict[str, Any], judged: Candidate) -> None:
    """Add the repository where the driver's part of the plan has none, and what keeps its drivers out then."""
    wish, packaging = context.wishes.driver_repository, context.packaging
    if packaging is None or any(one["purpose"] == "driver" for one in context.driver.repositories):
        return
    if wish is not None:
        found["repositories"] = [repositories.own(context, "cuda", wish)]
    elif not candidates.cuda_repository(context):
        row = packaging.driver_repository("nvidia", judged.branch) or packaging.driver_repository("nvidia")
        found["repositories"] = [repositories.describe(context, row)] if row is not None else []
        if row is None:
            found["missing"] = list(found["packages"])
    if judged.source == "distro" and packaging.manager == "apt":
        found["pin"] = {"path": PIN, "content": PIN_TEXT}


def _compat(context: Context, judged: Candidate, wish: str) -> str | None:
    """Return the series of the compatibility package without which this driver runs nothing of a toolkit."""
    cuda = cudas.parsed(wish)[:2]
    lowest = cudas.floor(context, cuda)
    if lowest is None or (judged.parsed or cudas.parsed(judged.branch)) >= cudas.parsed(lowest):
        return None
    return cudas.compat(context, judged, cuda)


def _nvcc(context: Context) -> str | None:
    return context.host.cuda_nvcc if isinstance(context.host.cuda_nvcc, str) else None


def _series(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _dashed(version: str) -> str:
    return _series(version).replace(".", "-")


def _profile(home: str, wishes: list[str], compat: str | None) -> str:
    lines = [f"# CUDA toolkits: {', '.join(wishes)}. Another one: its folder as CUDA_HOME, its bin first in PATH.",
             f"export CUDA_HOME={home}", 'export CUDA_PATH="$CUDA_HOME"',
             'case ":$PATH:" in *":$CUDA_HOME/bin:"*) ;; *) PATH="$CUDA_HOME/bin:$PATH"; export PATH ;; esac']
    if compat:
        lines.append(f'export LD_LIBRARY_PATH="{home}/compat${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"')
    return _MANAGED + "\n".join(lines) + "\n"


def _variables(home: str, compat: str | None) -> str:
    """Return what a unit takes in by EnvironmentFile=, where nothing is expanded."""
    lines = [f"CUDA_HOME={home}", f"CUDA_PATH={home}",
             f"PATH={home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    if compat:
        lines.append(f"LD_LIBRARY_PATH={home}/compat")
    return _MANAGED + "\n".join(lines) + "\n"


def _environment(context: Context, judged: Candidate, wish: Any) -> dict[str, Any]:
    name, version = wish["framework"], wish["version"]
    answer = cudas.framework(context, judged, name, version, wish["cuda"])
    index, dist = answer.wheel_index, _TITLES[name]
    url, extra = wish["index_url"], ""
    if name == "pytorch":
        url = f"{url or PYTORCH_INDEX}/{index}" if index else None
    elif index and index not in ("pypi", "pip"):
        extra = f"[{index}]"
    exact = version if version.count(".") == 2 else f"{version}.*"
    return {
        "path": wish["path"], "framework": name, "version": version, "python": wish["python"], "cuda": answer.cuda,
        "index": index, "index_url": url, "dist": dist, "requirements": [f"{dist}{extra}=={exact}", *wish["packages"]],
        "prerequisites": _prerequisites(context, wish["python"]), "ok": answer.ok, "reason": answer.reason,
    }


def _prerequisites(context: Context, python: str) -> list[str]:
    """Return what the distribution keeps apart from its Python: Debian's venv."""
    if context.packaging is None or context.packaging.manager != "apt":
        return []
    return [f"{python.rpartition('/')[2]}-venv"]
