# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about CUDA and frameworks that rules and planner both ask: floors, ceilings and wheels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model import cuda_request
from ..model import version as versions
from ..model.facts import each
from .context import Candidate, Card, Context

TITLES = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}


def parsed(text: object) -> tuple[int, ...]:
    """Return a version as a tuple, empty for none."""
    return tuple(versions.try_loose(text) or ()) if isinstance(text, str) else ()


def wanted(context: Context) -> tuple[int, ...]:
    """Return the lowest CUDA that has to run here, empty if none is asked for."""
    if context.wishes.cuda is None:
        return ()
    return cuda_request.parse(context.wishes.cuda).low or ()


def floor(context: Context, cuda: tuple[int, ...]) -> str | None:
    """Return the lowest driver that runs a CUDA version without a compatibility library."""
    text = ".".join(str(number) for number in (*cuda, 0)[:2])
    row = context.matrix.cuda(text)
    floors = []
    if row is not None:
        floors = [one for one in (row.minor_min, row.toolkit_min) if one]
    if not floors:
        family = context.matrix.cuda_family(cuda[0]) if cuda else None
        floors = [family.min_driver] if family is not None and family.min_driver else []
    return min(floors, key=parsed) if floors else None


def native_max(context: Context, candidate: Candidate) -> str | None:
    """Return the newest CUDA that a driver runs natively."""
    if candidate.version is None:
        row = context.matrix.branch(candidate.branch)
        return str(row.cuda) if row is not None and row.cuda else None
    answer = context.matrix.cuda_max(candidate.version)
    return str(answer) if answer else None


def compat(context: Context, candidate: Candidate, cuda: tuple[int, ...]) -> str | None:
    """Return the series of the cuda-compat package that lets this driver run a newer CUDA; None if none is allowed."""
    row = context.matrix.cuda_compat(".".join(str(number) for number in cuda[:2])) if len(cuda) > 1 else None
    if row is None or candidate.branch not in row.base_branches or not all_data_center(context):
        return None
    return str(row.cuda) if not reaches_beyond_gpus(context, cuda) else None


def all_data_center(context: Context) -> bool:
    """Say whether every GPU is of the data-center line: forward compatibility is for these alone."""
    cards = list(each(context.cards))
    return bool(cards) and all(card.product is not None and card.product.datacenter for card in cards)


def reaches_beyond_gpus(context: Context, cuda: tuple[int, ...]) -> list[Card]:
    """Return the GPUs whose architecture a CUDA version no longer serves."""
    return [card for card in each(context.cards)
            if card.architecture is not None and card.architecture.last_cuda
            and cuda[:2] > parsed(card.architecture.last_cuda)[:2]]


@dataclass(frozen=True, slots=True)
class FrameworkAnswer:
    """Whether a framework runs with a driver on the GPUs of a host, and with which wheels."""

    ok: bool | None
    wheel_index: str | None
    cuda: str | None
    min_driver: str | None
    reason: str | None
    served: bool = True


def framework(context: Context, candidate: Candidate, name: str, version: str,
              cuda: str | None = None) -> FrameworkAnswer:
    """Return the answer for one framework; ``ok`` is None where the matrix does not know the version.

    ``cuda``: of its wheels only those for this series are looked at.
    """
    row = context.matrix.framework(name, version)
    if row is None:
        return FrameworkAnswer(None, None, None, None, f"no row knows {TITLES.get(name, name)} {version}")
    if not row.wheels:
        return FrameworkAnswer(None, None, None, None, f"no wheels of {TITLES.get(name, name)} {version} are known")
    known = [wheel for wheel in row.wheels if cuda is None or parsed(wheel.cuda)[:2] == parsed(cuda)[:2]]
    if not known:
        having = ", ".join(wheel.cuda for wheel in row.wheels)
        return FrameworkAnswer(False, None, None, None, f"its wheels are for CUDA {having}")
    fitting = [wheel for wheel in known if runs_on_gpus(context, wheel)]
    wheels = [wheel for wheel in fitting if wheel.stable] or fitting or known
    driver = candidate.parsed or versions.try_parse(candidate.branch) or ()
    served = wheels if fitting else []
    able = [wheel for wheel in served if driver >= parsed(wheel.min_driver)]
    request = cuda_request.parse(context.wishes.cuda) if context.wishes.cuda else None
    asked = [wheel for wheel in able if request is None or request.holds(parsed(wheel.cuda))]
    least = min((wheel.min_driver for wheel in wheels), key=parsed)
    if able:
        best = (asked or able)[-1]
        return FrameworkAnswer(True, best.index, best.cuda, best.min_driver, None)
    if not served:
        return FrameworkAnswer(False, None, None, least, "its wheels hold no code for these GPUs", served=False)
    least = min((wheel.min_driver for wheel in served), key=parsed)
    return FrameworkAnswer(False, None, None, least, f"it needs driver {least} or newer")


def runs_on_gpus(context: Context, wheel: Any) -> bool:
    """Say whether the wheels hold code for every GPU of the host (as far as capabilities are known)."""
    cuda = parsed(wheel.cuda)[:2]
    for card in each(context.cards):
        row = card.architecture
        if row is not None and row.first_cuda and cuda < parsed(row.first_cuda)[:2] and not wheel.ptx:
            return False
        if row is not None and row.last_cuda and cuda > parsed(row.last_cuda)[:2]:
            return False
    if not wheel.compute_capability:
        return True
    built = sorted(parsed(one) for one in wheel.compute_capability)
    return all(_runs(capabilities, built, wheel.ptx) for card in each(context.cards)
               if (capabilities := _capabilities(card)))


def capability_names(context: Context) -> str:
    """Return the GPUs with their compute capability for messages."""
    told = []
    for card in each(context.cards):
        have = _capabilities(card)
        numbers = " or ".join(".".join(str(part) for part in one) for one in have) or "unknown"
        told.append(f"{card.label}, compute capability {numbers}")
    return "; ".join(dict.fromkeys(told))


def _capabilities(card: Card) -> list[tuple[int, ...]]:
    if card.product is not None and card.product.compute_capability:
        return [parsed(card.product.compute_capability)]
    if card.architecture is not None:
        return [parsed(one) for one in card.architecture.compute_capability]
    return []


def _runs(capabilities: list[tuple[int, ...]], built: list[tuple[int, ...]], ptx: bool) -> bool:
    for have in capabilities:
        if any(have[:1] == code[:1] and have >= code for code in built) or (ptx and built and have >= built[-1]):
            return True
    return False
