#!/usr/bin/env python
# SPDX-License-Identifier: GPL-3.0-or-later
"""Propose matrix rows from what NVIDIA publishes, as a diff for a person to read.

    scripts/matrix_refresh.py --releases https://docs.nvidia.com/datacenter/tesla/drivers/releases.json
    scripts/matrix_refresh.py --gpus supported-gpus.json --driver 580.178.04
    scripts/matrix_refresh.py --csaf 5821.json --csaf 5850.json

Sources are files or https URLs. Nothing is written: apply the diff with ``patch -p1`` once you have read it. Proposed
rows pass the schema before they are shown. Exit status: 0 nothing to propose, 1 proposals, 2 a source cannot be read.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import shutil
import sys
import tempfile
import urllib.request
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import matrix_published as published
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import MatrixError, loader
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.version import parse
from matrix_edit import DataFile

LARGEST = 64 << 20
RELEASES = "https://docs.nvidia.com/datacenter/tesla/drivers/releases.json"


def read(source: str) -> Any:
    """Parse the JSON of a file or an https URL; raises OSError or ValueError."""
    if source.startswith("https://"):
        with urllib.request.urlopen(source, timeout=60) as response:
            text = response.read(LARGEST + 1)
    elif "://" in source:
        raise ValueError("only files and https URLs are read")
    else:
        text = pathlib.Path(source).read_bytes()
    if len(text) > LARGEST:
        raise ValueError(f"larger than {LARGEST >> 20} MiB")
    return json.loads(text)


class Proposal:
    """The data files with the proposed edits, and remarks for what needs a person."""

    def __init__(self, today: datetime.date, data: pathlib.Path = loader.DATA) -> None:
        self.today, self.data = today, data
        self.files = {path.name: DataFile(path) for path in sorted(data.glob("*.yml"))}
        self.matrix = loader.load()
        self.remarks: list[str] = []

    def _origin(self, name: str, text: str) -> str:
        self.files["sources.yml"].add_source(name, text)
        return name

    def _index(self, file: str, section: str, **wanted: Any) -> int | None:
        return next(
            (
                number
                for number, row in enumerate(self.files[file].rows(section))
                if all(row.get(key) == value for key, value in wanted.items())
            ),
            None,
        )

    def _change(self, file: str, section: str, index: int, **fields: Any) -> None:
        row = {**self.files[file].rows(section)[index], **fields, "checked": self.today}
        self.files[file].replace(
            section, index, {key: value for key, value in row.items() if value is not None or key == "eol"}
        )

    def releases(self, document: Any, source: str) -> None:
        """Versions that no row has; dates that were unknown; branches that are new or changed their type."""
        versions = self.files["versions.yml"]
        origin = f"nvidia-releases-{self.today}"
        seen_branches = set()
        for one in sorted(published.releases(document), key=lambda release: parse(release.version)):
            known = self.matrix.version(one.version)
            branch = self.matrix.branch(one.branch)
            if branch is None:
                if one.branch not in seen_branches:
                    self.remarks.append(
                        f"R{one.branch} is new ({one.type}): add a row to branches.yml by hand; "
                        "open_modules, min_kernel and cuda are not published there"
                    )
            elif one.type and one.type != branch.type and one.branch not in seen_branches:
                self.remarks.append(f"R{one.branch} is {branch.type} here and {one.type} there")
            seen_branches.add(one.branch)
            if known is not None:
                if known.date is None and one.date:
                    index = self._index("versions.yml", "versions", version=one.version)
                    if index is not None:
                        self._change(
                            "versions.yml",
                            "versions",
                            index,
                            date=one.date,
                            source=[self._origin(origin, f"{source} ({self.today})")],
                        )
                elif one.date and known.date and abs((known.date - one.date).days) > 3:
                    self.remarks.append(f"{one.version} is of {known.date} here and of {one.date} there")
                continue
            older = [
                number
                for number, row in enumerate(versions.rows("versions"))
                if parse(row["version"]) < parse(one.version)
            ]
            versions.add(
                "versions",
                {
                    "version": one.version,
                    "date": one.date,
                    "checked": self.today,
                    "source": [self._origin(origin, f"{source} ({self.today})")],
                },
                older[-1] if older else None,
            )

    def gpus(self, document: Any, source: str, driver: str) -> None:
        """Cards that no row and no chip knows; cards whose last branch differs."""
        origin = f"nvidia-supported-gpus-{driver}"
        listed = {device for row in self.matrix.tables["chips"] for device in row.ids}
        asked = set()
        for one in published.gpus(document):
            if (one.device, one.subsystem) in asked:
                continue
            asked.add((one.device, one.subsystem))
            product = self.matrix.product(one.device, one.subsystem)
            if product is None:
                near = min(listed, key=lambda device: (abs(int(device, 16) - int(one.device[5:], 16)), device))
                guess = self.matrix.product(f"10de:{near}").architecture
                self.files["products.yml"].add(
                    "products",
                    {
                        "id": one.device,
                        **({"subsystems": [one.subsystem]} if one.subsystem else {}),
                        "name": one.name,
                        "architecture": guess,
                        "first_driver": driver,
                        "first_basis": "supported_gpus",
                        **({"last_branch": one.legacy} if one.legacy else {}),
                        "note": f"architecture guessed from the neighbour {near}: confirm it, then drop unconfirmed",
                        "source": [self._origin(origin, f"supported-gpus.json of {driver} ({source})")],
                        "checked": self.today,
                        "unconfirmed": True,
                    },
                )
            elif one.legacy and product.last_branch != one.legacy:
                self.remarks.append(
                    f"{one.device} ({one.name}): last branch {product.last_branch} here, {one.legacy} there"
                )
            elif not one.legacy and self.matrix.supports(product, driver).answer == "no":
                self.remarks.append(
                    f"{one.device} ({one.name}): {self.matrix.supports(product, driver).why}; "
                    f"the list of {driver} names it"
                )
            elif one.open_modules and product.flavour_rule == "proprietary_only":
                self.remarks.append(f"{one.device} ({one.name}): open modules run it by the list, not by our rows")

    def csaf(self, document: Any, source: str) -> None:
        """Bulletins that are new, the security floors that follow from them, and CVEs of container components."""
        one = published.advisory(document)
        if not one.cves:
            self.remarks.append(f"{source}: bulletin {one.id} ({one.title}) names nothing that the matrix follows")
            return
        fixed = one.drivers or one.products
        if self._index("bulletins.yml", "bulletins", id=one.id) is not None:
            self.remarks.append(f"{source}: bulletin {one.id} is known")
            return
        origin = self._origin(f"nvidia-csaf-{one.id}", f"NVIDIA product-security CSAF document {one.id} ({source})")
        component = "driver" if one.drivers else "dcgm" if "dcgm" in one.products else "container"
        names = {
            "nvidia-container-toolkit": "NVIDIA Container Toolkit",
            "gpu-operator": "NVIDIA GPU Operator",
            "dcgm": "DCGM",
            "dcgm-exporter": "DCGM Exporter",
        }
        self.files["bulletins.yml"].add(
            "bulletins",
            {
                "id": one.id,
                "date": one.date,
                "component": component,
                "title": one.title,
                "fixed": {names.get(key, key): version for key, version in sorted(fixed.items())},
                "cvss": one.cvss,
                "cves": list(one.cves),
                "url": f"https://nvidia.custhelp.com/app/answers/detail/a_id/{one.id}",
                "source": [origin],
                "checked": self.today,
            },
        )
        newest = max((row.date for row in self.matrix.bulletins("driver")), default=one.date)
        if one.drivers:
            self._floors(one, origin, one.date >= newest)
        for cve in one.cves if one.products else ():
            self._cve(cve, one, origin)

    def _floors(self, one: published.Advisory, origin: str, newest: bool) -> None:
        for number, row in enumerate(self.files["branches.yml"].rows("branches")):
            version = one.drivers.get(row["name"])
            current = row.get("security_current", False)
            if version and ("security_floor" not in row or parse(version) > parse(row["security_floor"])):
                sources = row["source"] if isinstance(row["source"], list) else [row["source"]]
                self._change(
                    "branches.yml",
                    "branches",
                    number,
                    security_floor=version,
                    security_bulletin=one.id,
                    security_current=True if newest else current or None,
                    source=[*sources, origin],
                )
            elif current and newest and not version:
                self._change("branches.yml", "branches", number, security_current=None)

    def _cve(self, cve: str, one: published.Advisory, origin: str) -> None:
        for component in sorted(set(one.products) - {"gpu-operator"}):
            if self._index("runtimes.yml", "cves", id=cve, component=component) is None:
                self.files["runtimes.yml"].add(
                    "cves",
                    {
                        "id": cve,
                        "component": component,
                        "fixed": [one.products[component]],
                        **({"operator_fixed": one.products["gpu-operator"]} if "gpu-operator" in one.products else {}),
                        "cvss": one.cvss,
                        "source": [origin],
                        "checked": self.today,
                    },
                )

    def check(self) -> None:
        """Load the edited files; raises MatrixError if a proposed row does not pass the schema."""
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            for file in self.files.values():
                shutil.copy(file.path, directory)
                (directory / file.path.name).write_text(file.text, encoding="utf-8")
            loader.check(directory)

    def diff(self) -> str:
        """All edits as one unified diff."""
        return "".join(file.diff() for file in self.files.values())


def main(arguments: list[str] | None = None) -> int:
    """Command line; see the text of the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--releases", metavar="FILE|URL", nargs="?", const=RELEASES, help="driver releases JSON")
    parser.add_argument("--gpus", metavar="FILE|URL", help="supported-gpus.json; needs --driver")
    parser.add_argument("--driver", metavar="VERSION", help="the driver that supported-gpus.json belongs to")
    parser.add_argument(
        "--csaf", metavar="FILE|URL", action="append", default=[], help="CSAF advisory; may be repeated"
    )
    parser.add_argument(
        "--today", type=datetime.date.fromisoformat, default=datetime.date.today(), help="date of the check"
    )
    options = parser.parse_args(arguments)
    if not (options.releases or options.gpus or options.csaf):
        parser.error("name at least one of --releases, --gpus, --csaf")
    if options.gpus and not options.driver:
        parser.error("--gpus needs --driver: the file does not say which driver it belongs to")
    proposal = Proposal(options.today)
    todo = [
        (options.releases, proposal.releases),
        (options.gpus, lambda text, source: proposal.gpus(text, source, options.driver)),
        *((one, proposal.csaf) for one in sorted(options.csaf)),
    ]
    for source, take in todo:
        if not source:
            continue
        try:
            take(read(source), source)
        except (OSError, ValueError) as error:
            print(f"{source}: {error}", file=sys.stderr)
            return 2
    try:
        proposal.check()
    except MatrixError as error:
        print(f"a proposed row does not pass the schema: {error}", file=sys.stderr)
        return 2
    for remark in proposal.remarks:
        print(f"# {remark}")
    diff = proposal.diff()
    print(diff, end="")
    return 1 if diff or proposal.remarks else 0


if __name__ == "__main__":
    sys.exit(main())
