# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA publishes, as plain values: driver releases, supported GPUs, security advisories (CSAF).

Readers take the parsed JSON and return tuples; a document of another form raises Unreadable and says what is missing.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_VERSION = re.compile(r"\d{3}\.\d+(?:\.\d+)*")
_LINUX_BRANCH = re.compile(r"Linux\s*\(\s*R(\d{3})\s*\)")
_TYPES = {"lts branch": "lts", "production branch": "production", "new feature branch": "new_feature"}
_PRODUCTS = {
    "NVIDIA Container Toolkit": "nvidia-container-toolkit",
    "NVIDIA GPU Operator": "gpu-operator",
    "DCGM": "dcgm",
    "DCGM Exporter": "dcgm-exporter",
}


class Unreadable(ValueError):
    """A document that is not what it was taken for."""


class Release(NamedTuple):
    """A driver release. date None: not given."""

    branch: str
    type: str | None
    version: str
    date: datetime.date | None


class Gpu(NamedTuple):
    """A card of supported-gpus.json. legacy: the last branch for it, None while it is supported."""

    device: str
    subsystem: str | None
    name: str
    legacy: str | None
    open_modules: bool


class Advisory(NamedTuple):
    """A security bulletin. drivers: branch → first fixed data-center driver (Linux); products: component → version."""

    id: int
    title: str
    date: datetime.date
    drivers: dict[str, str]
    products: dict[str, str]
    cves: tuple[str, ...]
    cvss: float


def _date(text: Any) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(str(text)[:10])
    except ValueError:
        return None


def releases(document: Any) -> Iterator[Release]:
    """Driver releases of ``releases.json``: branch → {type, driver_info: [{release_version, release_date}]}."""
    if not isinstance(document, dict) or not all(
        isinstance(info, dict) and "driver_info" in info for info in document.values()
    ):
        raise Unreadable("not a driver releases document: branches with driver_info are wanted")
    for branch, info in document.items():
        for one in info["driver_info"]:
            version = str(one.get("release_version", ""))
            if _VERSION.fullmatch(version) and version.partition(".")[0] == str(
                branch
            ):  # Windows releases have other numbers
                yield Release(
                    str(branch), _TYPES.get(str(info.get("type", "")).lower()), version, _date(one.get("release_date"))
                )


def gpus(document: Any) -> Iterator[Gpu]:
    """Cards of ``supported-gpus.json``: chips: [{devid, subvendorid?, subdeviceid?, name, legacybranch?, features}]."""
    if not isinstance(document, dict) or not isinstance(document.get("chips"), list):
        raise Unreadable("not a supported-gpus.json: a list chips is wanted")
    for chip in document["chips"]:
        subsystem = None
        if chip.get("subdeviceid"):
            subsystem = ":".join(str(chip[key])[2:].lower().zfill(4) for key in ("subvendorid", "subdeviceid"))
        legacy = re.match(r"\d+", str(chip.get("legacybranch") or ""))
        yield Gpu(
            f"10de:{str(chip['devid'])[2:].lower()}",
            subsystem,
            str(chip["name"]).removeprefix("NVIDIA ").strip(),
            legacy.group() if legacy else None,
            "kernelopen" in chip.get("features", ()),
        )


def _leaves(
    branches: list[dict[str, Any]], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    for branch in branches:
        names = (*above, str(branch.get("name", "")))
        if "product" in branch:
            yield names, branch
        yield from _leaves(branch.get("branches", []), names)


def advisory(document: Any) -> Advisory:
    """A CSAF 2.0 document of NVIDIA's product security."""
    try:
        tracking, tree = document["document"]["tracking"], document["product_tree"]["branches"]
        found = {
            str(leaf["product"]["product_id"]): (names, str(leaf["product"]["name"])) for names, leaf in _leaves(tree)
        }
        number, title = int(tracking["id"]), str(document["document"]["title"])
        date = _date(tracking["initial_release_date"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"not a CSAF document of NVIDIA: {error!r} is missing or wrong") from None
    if date is None:
        raise Unreadable("not a CSAF document of NVIDIA: initial_release_date is no date")
    drivers: dict[str, str] = {}
    products: dict[str, str] = {}
    cves, cvss = set(), 0.0
    for vulnerability in document.get("vulnerabilities", []):
        concerns = False
        for product in vulnerability.get("product_status", {}).get("fixed", []):
            names, version = found.get(product, ((), ""))
            branch = _LINUX_BRANCH.fullmatch(names[-2]) if len(names) > 1 else None
            if branch and names[-1] == "Tesla" and _VERSION.fullmatch(version):
                drivers[branch.group(1)] = version
                concerns = True
            component = _PRODUCTS.get(names[-1]) if names else None
            number_of = re.search(r"\d+(?:\.\d+)+", version)
            if component and number_of:
                products[component] = number_of.group()
                concerns = True
        if concerns:
            cves.add(str(vulnerability["cve"]))
            cvss = max(
                [
                    cvss,
                    *(
                        float(score["cvss_v3"]["baseScore"])
                        for score in vulnerability.get("scores", [])
                        if "cvss_v3" in score
                    ),
                ]
            )
    return Advisory(
        number, title.removeprefix("Security Bulletin: "), date, drivers, products, tuple(sorted(cves)), cvss
    )
