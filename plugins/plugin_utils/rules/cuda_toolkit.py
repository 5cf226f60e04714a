# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about CUDA on the host itself: toolkits, and Python environments."""

from __future__ import annotations

from collections.abc import Iterator

from . import cudas
from .context import Candidate, Context
from .registry import Hit, candidate_rule, plan_rule

_COMPAT = "https://docs.nvidia.com/deploy/cuda-compatibility/"
_INSTALL = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/"
_MATRIX = "https://docs.nvidia.com/datacenter/tesla/drivers/cuda-toolkit-driver-and-architecture-matrix.html"


@candidate_rule(
    "CUD010", "error", "The driver is too old for a CUDA toolkit that is asked for",
    why="What the toolkit compiles does not start: a CUDA major version has a floor for the driver.",
    remedy="take a driver at or above the floor, an older toolkit, or a container with its compatibility library",
    sources=[_COMPAT],
)
def driver_too_old(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the driver is below the floor of a wanted toolkit and no compatibility package may help."""
    driver = candidate.parsed or cudas.parsed(candidate.branch)
    for wish in context.wishes.cuda_toolkit:
        cuda = cudas.parsed(wish)[:2]
        lowest = cudas.floor(context, cuda)
        if lowest is not None and driver < cudas.parsed(lowest) and not cudas.compat(context, candidate, cuda):
            yield Hit(f"CUDA toolkit {wish}", f"the CUDA toolkit {wish} needs driver {lowest} or newer, and "
                                              f"{candidate.version or 'R' + candidate.branch} is older",
                      f"set gpu_driver_version to {lowest} or newer, or take an older toolkit")


@plan_rule(
    "CUD011", "error", "A CUDA toolkit that cannot be had",
    why="Exactly what is asked for is installed, or nothing: another release is another compiler.",
    remedy="take a version that is offered, refresh the package lists, or take a container",
    sources=[_INSTALL],
)
def not_offered(context: Context) -> Iterator[Hit]:
    """Fires when no source of the host has a wanted toolkit, or the default is not one of those that are wanted."""
    wishes, decision = context.wishes, context.cuda.toolkit
    default = wishes.cuda_toolkit_default
    if default is not None and default not in wishes.cuda_toolkit:
        yield Hit("gpu_cuda_toolkit_default", f"the default {default} is not in gpu_cuda_toolkit "
                                              f"({', '.join(wishes.cuda_toolkit) or 'empty'})",
                  "name one of gpu_cuda_toolkit, or leave it empty")
    if decision is None:
        return
    for name in decision["missing"]:
        place = "the distribution" if decision["source"] == "distro" else "NVIDIA's repository for this system"
        yield Hit(name, f"{place} does not offer {name} as {' or '.join(wishes.cuda_toolkit)}")
    for repository in decision["repositories"]:
        key = repository["key"]
        if key is not None and not key.get("fingerprint") and repository["missing"]:
            yield Hit(repository["name"], f"the full fingerprint of the key of {repository['name']} is not confirmed",
                      "configure the repository yourself, or name it with its fingerprint in gpu_driver_repository")


@plan_rule(
    "CUD012", "error", "A CUDA toolkit that is asked for no longer serves a GPU",
    why="Its compiler makes no code for the old architecture, and its libraries hold none.",
    remedy="take an older toolkit for this host",
    sources=[_MATRIX],
)
def gpu_dropped(context: Context) -> Iterator[Hit]:
    """Fires when a wanted toolkit is above the last CUDA of an architecture."""
    for wish in context.wishes.cuda_toolkit:
        beyond = {card.label: card.architecture for card in cudas.reaches_beyond_gpus(context, cudas.parsed(wish))}
        for label, row in beyond.items():
            yield Hit(f"CUDA toolkit {wish}", f"the CUDA toolkit {wish} does not serve {row.title} ({label}); "
                                              f"{row.last_cuda} is the last one that does")


@plan_rule(
    "CUD013", "info", "A CUDA toolkit is newer than the driver's own CUDA",
    why="Within a major version programs run on an older driver, but code that is compiled at run time (PTX) needs the "
        "newer one.",
    remedy="compile for the GPUs that are there (nvcc -arch=native), or take a newer driver",
    sources=[_COMPAT + "minor-version-compatibility.html"],
)
def minor_only(context: Context) -> Iterator[Hit]:
    """Fires when a wanted toolkit runs by minor-version compatibility alone."""
    native = cudas.parsed(context.cuda.native_max)[:2]
    for wish in context.wishes.cuda_toolkit if native else ():
        if native < cudas.parsed(wish)[:2] and native[0] == cudas.parsed(wish)[0]:
            yield Hit(f"CUDA toolkit {wish}", f"nvcc is of CUDA {wish}, the driver runs CUDA "
                                              f"{context.cuda.native_max} by itself")


@plan_rule(
    "CUD014", "error", "A Python environment that would not work",
    why="A framework's wheels bring their own CUDA; with a driver or a GPU that they do not suit, nothing starts.",
    remedy="take another release of the framework, another CUDA, or a newer driver",
    sources=["https://pytorch.org/get-started/previous-versions/"],
)
def environment_cannot_be(context: Context) -> Iterator[Hit]:
    """Fires when no wheels of the wanted framework run here, or none are known."""
    decision = context.cuda.environment
    if decision is not None and decision["ok"] is not True:
        title = f"{cudas.TITLES[decision['framework']]} {decision['version']}"
        cuda = (context.wishes.python_env or {}).get("cuda")
        yield Hit(decision["path"], f"{title}{f' for CUDA {cuda}' if cuda else ''}: {decision['reason']}")
