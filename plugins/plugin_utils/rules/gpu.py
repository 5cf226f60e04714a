# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about GPUs: what they are, and whether one driver serves them all."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import version as versions
from ..model.facts import UNKNOWN, each
from .context import Candidate, Card, Context
from .registry import Hit, candidate_rule, plan_rule

_OPEN = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/610/kernel-modules.html"
_BRANCHES = "https://docs.nvidia.com/datacenter/tesla/drivers/"


def labels(cards: list[Card]) -> str:
    """Return the cards for a message, each kind once."""
    return ", ".join(dict.fromkeys(card.label for card in cards))


def last_branch(card: Card) -> str | None:
    """Return the last branch that knows a card, None if the newest one still does."""
    if card.product is None:
        return None
    last = card.product.last_branch or (card.architecture.last_branch if card.architecture is not None else None)
    return str(last) if last else None


def title(card: Card) -> str:
    """Return the architecture of a card for messages."""
    return str(card.architecture.title) if card.architecture is not None else "its architecture"


def flavour_rule(card: Card) -> str | None:
    """Return open_only, both or proprietary_only; None for a card that no row knows."""
    if card.product is None:
        return None
    rule = card.product.flavour_rule or (card.architecture.flavour_rule if card.architecture is not None else None)
    return str(rule) if rule else None


@plan_rule(
    "GPU001", "warning", "A GPU that the matrix does not know",
    why="A PCI id without a row may need another branch or another module flavour than the rest; a guess here is an "
        "outage.",
    remedy="add a row for it with gpu_matrix_overlay, or set gpu_driver_branch and gpu_driver_flavour yourself",
    sources=["https://pci-ids.ucw.cz/read/PC/10de"],
)
def unknown_gpu(context: Context) -> Iterator[Hit]:
    """Fires for a GPU without a row."""
    if context.has_gpus:
        cards = [card for card in each(context.cards) if card.product is None]
        for label in dict.fromkeys(card.label for card in cards):
            yield Hit(label, f"no row of the matrix knows {label}: branch and flavour are chosen on the safe side "
                             "(open modules of the newest maintained branch) and nothing vouches for them")


@plan_rule(
    "GPU002", "info", "No NVIDIA GPU on the host",
    why="A host without a GPU needs no driver; installing one would only add something to maintain.",
    remedy="nothing to do; take the host out of the GPU group if it should not be there",
    sources=["docs/design.md, section 5"],
)
def no_gpu(context: Context) -> Iterator[Hit]:
    """Fires when the bus was read and holds no GPU."""
    if (isinstance(context.cards, tuple) and not context.cards) or context.cards is None:
        given = list(each(context.host.gpus))
        text = f"all {len(given)} GPUs are kept for virtual machines" if given else "no NVIDIA GPU is on the PCI bus"
        yield Hit(context.name, f"{text}, so nothing is installed")


@plan_rule(
    "GPU003", "error", "The GPUs could not be read",
    why="Unknown is not the same as none: without the PCI ids no driver can be chosen.",
    remedy="gather facts again as root and see the reason in facts.unknown",
    sources=["docs/design.md, section 3"],
)
def unread_gpus(context: Context) -> Iterator[Hit]:
    """Fires when the facts do not tell the GPUs."""
    if context.cards is UNKNOWN:
        yield Hit(context.name, f"which GPUs this host has is not known: {context.host.why_unknown('gpus')}")


@candidate_rule(
    "GPU004", "error", "The driver is older than the GPU",
    why="A driver does not start a GPU whose id it does not have.",
    remedy="take a driver that knows the GPU, or leave gpu_driver_branch: auto",
    sources=[_BRANCHES],
)
def too_old(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the version is below the first one that knows a card."""
    for label, first in dict.fromkeys(_first_drivers(context, candidate)):
        version = candidate.parsed or versions.try_parse(candidate.branch)
        if version is not None and version < (versions.try_parse(first) or ()):
            yield Hit(label, f"{candidate.version or 'R' + candidate.branch} does not know {label}: "
                             f"the first driver for it is {first}", f"set gpu_driver_version to {first} or newer")


def _first_drivers(context: Context, candidate: Candidate) -> Iterator[tuple[str, str]]:
    for card in each(context.cards):
        if card.product is None:
            continue
        by_branch = card.product.first_by_branch or {}
        first = by_branch.get(candidate.branch) or card.product.first_driver
        if first is None and card.architecture is not None:
            first = card.architecture.first_branch
        if first:
            yield card.label, str(first)


@candidate_rule(
    "GPU005", "error", "The branch has dropped the GPU",
    why="Each architecture has a last branch; later drivers do not see the card at all.",
    remedy="stay on the last branch that knows the GPU",
    sources=[_BRANCHES],
)
def dropped(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when the branch is newer than the last one of a card."""
    for card in _once(context):
        last = last_branch(card)
        if last is not None and _number(candidate.branch) > _number(last):
            yield Hit(card.label, f"R{candidate.branch} does not support {title(card)} ({card.label}); "
                                  f"R{last} is the last branch", f'set gpu_driver_branch: "{last}" or leave it auto')


@candidate_rule(
    "GPU006", "error", "The module flavour does not run the GPU",
    why="Open modules need the GPU's own processor (Turing and later); Grace Hopper and Blackwell run with nothing "
        "else.",
    remedy="leave gpu_driver_flavour: auto",
    sources=[_OPEN],
)
def wrong_flavour(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when a card cannot run with the modules of this flavour."""
    for card in _once(context):
        rule = flavour_rule(card)
        if rule == "proprietary_only" and candidate.flavour == "open":
            yield Hit(card.label, f"open modules do not run {title(card)} ({card.label}): it needs the proprietary "
                                  "ones",
                      "set gpu_driver_flavour: proprietary or leave it auto")
        if rule == "open_only" and candidate.flavour == "proprietary":
            yield Hit(card.label, f"proprietary modules do not run {title(card)} ({card.label}): only open ones do",
                      "set gpu_driver_flavour: open or leave it auto")


@candidate_rule(
    "GPU009", "error", "Proprietary modules for a GPU that nobody knows",
    why="Every new generation runs with open modules only; proprietary ones would leave such a card dark.",
    remedy="set gpu_driver_flavour: proprietary if you know better, or add a row with gpu_matrix_overlay",
    sources=[_OPEN],
)
def closed_for_unknown(context: Context, candidate: Candidate) -> Iterator[Hit]:
    """Fires when proprietary modules would be chosen for an unknown PCI id without being asked for."""
    if candidate.flavour != "proprietary" or candidate.installed or context.wishes.driver_flavour != "auto":
        return
    for card in _once(context):
        if card.product is None:
            yield Hit(card.label, f"nothing says that proprietary modules run {card.label}", "take open modules")


@plan_rule(
    "GPU007", "error", "No one driver serves all GPUs of the host",
    why="A host has one driver; GPUs whose branches or flavours do not overlap cannot work side by side.",
    remedy="move the GPUs to different hosts, or hide some of them from the driver (vfio)",
    sources=[_OPEN, _BRANCHES],
)
def no_common_driver(context: Context) -> Iterator[Hit]:
    """Fires when some cards exclude the flavour or the branches of others."""
    cards = list(_once(context))
    open_only = [card for card in cards if flavour_rule(card) == "open_only"]
    closed_only = [card for card in cards if flavour_rule(card) == "proprietary_only"]
    if open_only and closed_only:
        yield Hit(context.name, f"{labels(open_only)} runs with open modules only, {labels(closed_only)} with "
                                "proprietary "
                                "ones only: no one driver serves both")
    lasts = [(card, _number(name)) for card in cards if (name := last_branch(card)) is not None]
    firsts = [(card, versions.try_parse(str(card.product.first_driver)) or ()) for card in cards
              if card.product is not None and card.product.first_driver]
    for card, last in lasts:
        for other, first in firsts:
            if first and first[0] > last:
                yield Hit(context.name, f"R{last} is the last branch for {card.label}, and {other.label} needs "
                                        f"{other.product.first_driver} or newer: no one driver serves both")


@plan_rule(
    "GPU008", "warning", "The driver shows fewer GPUs than the bus has",
    why="A GPU that the loaded module cannot run is left out without an error; the query tool still reports success.",
    remedy="compare the module flavour and branch with each GPU; then look for a failed or fallen-off card in the "
           "kernel log",
    sources=["https://github.com/NVIDIA/open-gpu-kernel-modules/issues/696"],
)
def fewer_gpus(context: Context) -> Iterator[Hit]:
    """Fires when nvidia-smi counts fewer GPUs than there are."""
    shown, cards = context.host.driver.smi_gpus, context.cards
    if isinstance(cards, tuple) and isinstance(shown, (int, float)) and context.host.driver.smi_status == "ok":
        bound = list(cards)
        if shown < len(bound):
            missing = [card for card in bound if card.gpu.driver != "nvidia"]
            yield Hit(labels(missing) or context.name,
                      f"nvidia-smi shows {int(shown)} of {len(bound)} GPUs; without a driver: "
                      f"{labels(missing) or 'unknown'}")


def _once(context: Context) -> Iterator[Card]:
    """Yield each kind of card once."""
    seen = set()
    for card in each(context.cards):
        if card.gpu.id not in seen:
            seen.add(card.gpu.id)
            yield card


def _number(branch: str) -> int:
    parsed = versions.try_parse(branch)
    return parsed[0] if parsed else 0
