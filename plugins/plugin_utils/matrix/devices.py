# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver knows which GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..model.version import branch_of, try_parse
from .row import Row
from .rows import Architecture, Branch, Chip, DriverVersion, Product
from .rows_driver import RULE

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a driver version runs a product. why: one sentence. needs: the version that would, where it is known."""

    answer: Answer
    why: str
    rows: tuple[Row, ...] = ()
    needs: str | None = None


def _single(architecture: Architecture | None) -> str | None:
    """The compute capability of an architecture that has one only."""
    known = architecture.compute_capability if architecture else ()
    return known[0] if len(known) == 1 else None


class Devices:
    """Products by PCI id, with chips behind them for cards that have no row of their own."""

    def __init__(
        self,
        products: tuple[Product, ...],
        chips: tuple[Chip, ...],
        architectures: Mapping[str, Architecture],
        branches: Mapping[str, Branch],
        versions: Mapping[str, DriverVersion],
    ) -> None:
        self.architectures, self.branches, self.versions = architectures, branches, versions
        self.by_id: dict[str, Product] = {}
        self.by_subsystem: dict[tuple[str, str], Product] = {}
        for chip in chips:
            for device, name in chip.ids.items():
                self.by_id[f"10de:{device}"] = self._of_chip(chip, device, name)
        plain: dict[str, Product] = {}
        for product in products:
            filled = self._filled(product)
            for subsystem in product.subsystems:
                self.by_subsystem[product.id, subsystem] = filled
            before = plain.get(product.id)  # for a card whose subsystem no row names
            if before is None or (before.subsystems and len(product.subsystems or "x" * 1000) > len(before.subsystems)):
                plain[product.id] = filled
        self.by_id.update(plain)

    def _of_chip(self, chip: Chip, device: str, name: str) -> Product:
        architecture = self.architectures.get(chip.architecture)
        return Product(
            source=chip.source,
            checked=chip.checked,
            confidence=chip.confidence,
            unconfirmed=chip.unconfirmed,
            overlay=chip.overlay,
            note=chip.note,
            id=f"10de:{device}",
            name=name,
            architecture=chip.architecture,
            chip=chip.name,
            first_driver=(chip.first or {}).get(device),
            known=False,
            last_branch=chip.last_branch or (architecture.last_branch if architecture else None),
            open_support=architecture.open_support if architecture else None,
            flavour_rule=architecture.flavour_rule if architecture else None,
            compute_capability=chip.compute_capability or _single(architecture),
        )

    def _filled(self, product: Product) -> Product:
        """A product with what its chip and architecture add."""
        chip = self.by_id.get(product.id)
        architecture = self.architectures.get(product.architecture)
        support = product.open_support or (architecture.open_support if architecture else None)
        values = {name: getattr(product, name) for name in Product.__dataclass_fields__}
        values.update(
            last_branch=product.last_branch or (architecture.last_branch if architecture else None),
            open_support=support,
            flavour_rule=RULE[support] if support else None,
            compute_capability=product.compute_capability
            or (chip.compute_capability if chip else None)
            or _single(architecture),
        )
        return Product(**values)

    def product(self, device: str, subsystem: str | None = None) -> Product | None:
        """The product of a PCI id; the subsystem chooses between cards that share it."""
        if subsystem and (found := self.by_subsystem.get((device, subsystem))):
            return found
        return self.by_id.get(device)

    def first_for(self, product: Product, branch: str) -> str | None:
        """First release of a branch that knows the product, None if that is not known."""
        listed = product.first_by_branch or {}
        if branch in listed:
            return listed[branch]
        if product.first_driver and branch_of(product.first_driver) == branch:
            return product.first_driver
        return None

    def _older(self, version: str, first: str) -> bool:
        """True if a release (or the last one of a branch) came out before another release."""
        known, branch = self.versions.get(version), self.branches.get(version)
        mine = known.date if known else branch.latest_date if branch else None
        theirs = self.versions[first].date if first in self.versions else None
        return mine is not None and theirs is not None and mine < theirs

    def _too_old(
        self, product: Product, version: str, branch: str, first: str | None, needed: str | None
    ) -> str | None:
        """Why a version is too old for a product, None if it is not."""
        if first and int(branch) < int(branch_of(first)) and not needed:
            return f"R{branch} is older than {first}, the first driver for {product.name}"
        if branch in product.unlisted:
            return f"no release of R{branch} lists {product.name}; {first} is the first driver for it"
        if not product.known and not needed and product.first_driver and self._older(version, product.first_driver):
            return f"{version} came out before {product.first_driver}, the first driver for {product.name}"
        if needed and branch != version:
            have, want = try_parse(version), try_parse(needed)
            if have is not None and want is not None and have < want:
                return f"{version} does not know {product.name}; {needed} is the first release that does"
        return None

    def supports(self, product: Product, version: str) -> Support:
        """Whether a driver version (or a branch, as ``580``) runs the product."""
        branch = branch_of(version)
        if try_parse(version) is None:
            return Support("unknown", f"{version!r} is no driver version", (product,))
        architecture = self.architectures.get(product.architecture)
        rows: tuple[Row, ...] = tuple(one for one in (product, architecture) if one is not None)
        title = architecture.title if architecture else product.architecture
        last, first = product.last_branch, product.first_driver or (architecture.first_branch if architecture else None)
        if last and int(branch) > int(last):
            return Support("no", f"R{branch} does not support {title}; R{last} is the last branch", rows, last)
        needed = self.first_for(product, branch)
        too_old = self._too_old(product, version, branch, first, needed)
        if too_old:
            answer: Answer = "no" if product.decides else "unknown"
            return Support(answer, too_old, rows, needed or first)
        if not first:
            return Support("unknown", f"the first driver for {product.name} is not known", rows)
        return Support("yes", f"R{branch} supports {product.name}", rows)
