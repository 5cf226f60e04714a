# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about CUDA and the frameworks that bring it."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import cuda_request
from . import cudas
from .context import Candidate, Context
from .registry import Hit, candidate_rule, plan_rule

_COMPAT = "https://docs.nvidia.com/deploy/cuda-compatibility/"


@candidate_rule(
    "CUD001", "error", "The driver is too old for the CUDA that is asked for",
    why="Within a CUDA major version a driver at its floor runs every minor release; below it programs do not start.",
    remedy="take a driver at or above the floor, or an older CUDA",
    sources=[_COMPAT],
)
def driver_too_old(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the driver is below the floor of the wanted CUDA and no compatibility package may help."""
    cuda = cudas.wanted(context)
    lowest = cudas.floor(context, cuda) if cuda else None
    driver = candidate.parsed or cudas.parsed(candidate.branch)
    if lowest is None or driver >= cudas.parsed(lowest) or cudas.compat(context, candidate, cuda):
        return
    yield Hit(f"CUDA {context.wishes.cuda}", f"CUDA {context.wishes.cuda} needs driver {lowest} or newer, and "
                                             f"{candidate.version or 'R' + candidate.branch} is older",
              f"set gpu_driver_version to {lowest} or newer")


@plan_rule(
    "CUD002", "error", "The CUDA that is asked for no longer serves a GPU",
    why="CUDA drops old architectures: its libraries hold no code for them, whatever the driver says.",
    remedy="take an older CUDA for this host",
    sources=["https://docs.nvidia.com/datacenter/tesla/drivers/cuda-toolkit-driver-and-architecture-matrix.html"],
)
def gpu_dropped(context: Context) -> Iterator[Hit]:
    """Fires when the lowest wanted CUDA is above the last one of an architecture."""
    cuda = cudas.wanted(context)
    seen = set()
    for card in cudas.reaches_beyond_gpus(context, cuda) if cuda else ():
        if card.label not in seen:
            seen.add(card.label)
            yield Hit(card.label, f"CUDA {context.wishes.cuda} does not serve {card.architecture.title} "
                                  f"({card.label}); "
                                  f"CUDA {card.architecture.last_cuda} is the last one that does")


@candidate_rule(
    "CUD003", "error", "The driver is too old for a framework",
    why="A framework's wheels bring their own CUDA, and with it a floor for the driver.",
    remedy="take a driver at or above the floor, or an older release of the framework",
    sources=[_COMPAT, "https://pytorch.org/get-started/previous-versions/"],
)
def framework_too_new(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when no wheels of a wanted framework run with the driver on these GPUs."""
    for name, version in context.wishes.frameworks.items():
        answer = cudas.framework(context, candidate, name, version)
        if answer.ok is False and answer.served:
            title = f"{cudas.TITLES.get(name, name)} {version}"
            yield Hit(title, f"{title} does not run with driver {candidate.version or 'R' + candidate.branch}: "
                             f"{answer.reason}",
                      _remedy(answer))


def _remedy(answer: cudas.FrameworkAnswer) -> str | None:
    if answer.min_driver is None or "driver" not in str(answer.reason):
        return None
    return f"set gpu_driver_version to {answer.min_driver} or newer"


@plan_rule(
    "CUD004", "warning", "A framework brings a newer CUDA than the one that is asked for",
    why="Two wishes that do not meet: either the framework does not use the CUDA that was meant, or it does not "
        "install.",
    remedy="raise gpu_cuda, or take a release of the framework that is built for it",
    sources=["https://pytorch.org/get-started/previous-versions/"],
)
def framework_above_cuda(context: Context) -> Iterator[Hit]:
    """Fires when the oldest CUDA of a framework's wheels is above the newest one that is asked for."""
    if context.wishes.cuda is None:
        return
    request = cuda_request.parse(context.wishes.cuda)
    highest = request.low if request.exact else request.high
    for name, version in context.wishes.frameworks.items():
        row = context.matrix.framework(name, version)
        if row is None or not row.wheels or highest is None:
            continue
        oldest = min((wheel.cuda for wheel in row.wheels), key=cudas.parsed)
        if cudas.parsed(oldest)[:2] > (*highest, 0)[:2]:
            title = cudas.TITLES.get(name, name)
            yield Hit(f"{title} {version}", f"{title} {version} is built for CUDA {oldest} and newer, and gpu_cuda "
                                            "asks for "
                                            f"{context.wishes.cuda}", f'set gpu_cuda: "{oldest}" or take an older '
                                                                      f'{title}')


@plan_rule(
    "CUD005", "warning", "A CUDA compatibility library that does not belong here",
    why="It makes an old driver announce a CUDA version that the GPU or the driver cannot run: programs fail at start.",
    remedy="remove the cuda-compat package",
    sources=[_COMPAT + "forward-compatibility.html"],
)
def wrong_compat(context: Context) -> Iterator[Hit]:
    """Fires when a compat library is installed where it is not supported or no longer needed."""
    there, judged = context.host.cuda_compat, context.asked or context.candidate
    if not isinstance(there, str) or judged is None or not context.has_gpus:
        return
    cuda, native = cudas.parsed(there), cudas.native_max(context, judged)
    if cudas.reaches_beyond_gpus(context, cuda):
        reason = f"CUDA {there} does not serve these GPUs"
    elif native is not None and cuda[:2] <= cudas.parsed(native)[:2]:
        reason = f"the driver {judged.version} runs CUDA {native} by itself"
    elif not cudas.all_data_center(context):
        reason = "forward compatibility is for data-center GPUs"
    elif not cudas.compat(context, judged, cuda):
        reason = f"R{judged.branch} is no base for it"
    else:
        return
    yield Hit(f"cuda-compat {there}", f"the compatibility library for CUDA {there} is installed (compat), but {reason}")


@plan_rule(
    "CUD006", "warning", "A framework that the matrix does not know",
    why="Without a row nobody can say which driver it needs.",
    remedy="add a row with gpu_matrix_overlay, or check the release notes of the framework",
    sources=["docs/design.md, section 6"],
)
def unknown_framework(context: Context) -> Iterator[Hit]:
    """Fires for a framework or version without a row."""
    for name, version in context.wishes.frameworks.items():
        if context.matrix.framework(name, version) is None:
            yield Hit(f"{name} {version}", f"the matrix does not know {cudas.TITLES.get(name, name)} {version}: "
                                           "whether it "
                                           "runs with this driver is not decided")


@plan_rule(
    "CUD007", "warning", "An installed CUDA toolkit is newer than the driver allows",
    why="What is compiled with it does not start here.",
    remedy="take a newer driver, or the older toolkit",
    sources=[_COMPAT],
)
def toolkit_too_new(context: Context) -> Iterator[Hit]:
    """Fires when a toolkit on the host is above what the driver runs."""
    judged, toolkits = context.candidate, context.host.cuda_toolkits
    if judged is None or not isinstance(toolkits, tuple):
        return
    for toolkit in toolkits:
        cuda = cudas.parsed(toolkit)
        lowest = cudas.floor(context, cuda) if cuda else None
        driver = judged.parsed or cudas.parsed(judged.branch)
        if lowest is not None and driver < cudas.parsed(lowest) and not cudas.compat(context, judged, cuda):
            yield Hit(f"CUDA toolkit {toolkit}", f"the CUDA toolkit {toolkit} needs driver {lowest} or newer; this "
                                                 "host has or "
                                                 f"gets {judged.version or 'R' + judged.branch}")


@plan_rule(
    "CUD008", "error", "The wheels of a framework hold no code for a GPU",
    why="A GPU runs only code that was compiled for its compute capability; no driver makes up for it.",
    remedy="take a release of the framework that is built for this GPU",
    sources=["https://pytorch.org/get-started/previous-versions/"],
)
def no_code_for_gpu(context: Context) -> Iterator[Hit]:
    """Fires when no wheels of a wanted framework are built for the GPUs of the host."""
    judged = context.asked or context.candidate
    for name, version in context.wishes.frameworks.items() if judged is not None else ():
        answer = cudas.framework(context, judged, name, version) if judged is not None else None
        if answer is not None and not answer.served:
            title = f"{cudas.TITLES.get(name, name)} {version}"
            yield Hit(title, f"no wheels of {title} are built for {cudas.capability_names(context)}")


@plan_rule(
    "CUD009", "warning", "A CUDA version that the matrix does not know",
    why="Without a row nobody can say which driver it needs.",
    remedy="check the number, or add a row with gpu_matrix_overlay",
    sources=["docs/design.md, section 6"],
)
def unknown_cuda(context: Context) -> Iterator[Hit]:
    """Fires when no floor is known for the CUDA that is asked for."""
    cuda, judged = cudas.wanted(context), context.asked or context.candidate
    if not cuda or judged is None or cudas.floor(context, cuda) is not None:
        return
    native = cudas.native_max(context, judged)
    if native is None or cuda[:2] > cudas.parsed(native)[:2]:
        yield Hit(f"CUDA {context.wishes.cuda}", f"the matrix does not know which driver CUDA {context.wishes.cuda} "
                                                 "needs; "
                                                 f"{judged.version or 'R' + judged.branch} runs CUDA "
                                                 f"{native or 'unknown'}")
