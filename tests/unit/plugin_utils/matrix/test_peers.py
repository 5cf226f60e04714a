# SPDX-License-Identifier: GPL-3.0-or-later
"""Our answers against a peer that knows: Debian's nvidia-detect and NVIDIA's supported-gpus.json.

Every PCI id of the lists is asked. Differences are named with their reason in reviewed_differences.yml; a new one
fails, and so does a reviewed one that is gone.
"""

from __future__ import annotations

import json
import pathlib

import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.version import branch_of

# Directory of nvidia-detect → what its list "nvidia.ids" means: the driver of that suite, all cards it knows.
CURRENT = {
    "nvidia-detect_470.256.02-2": "470.256.02",
    "nvidia-detect_535.261.03-1": "535.261.03",
    "nvidia-detect_550.163.01-5.1": "550.163.01",
    "nvidia-detect_555.58.02-4": "555.58.02",
}
# Its other lists: the last branch that knows a card, for those whose branch we answer for.
LEGACY = ("304", "340", "390")
TESLA = ("418", "440", "450", "460", "470", "535")
JSON = {
    "nvidia-tesla-450-driver_450.248.02-14": "450.248.02",
    "nvidia-tesla-460-driver_460.106.00-24": "460.106.00",
    "nvidia-driver_470.256.02-2": "470.256.02",
    "nvidia-tesla-driver_525.147.05-19": "525.147.05",
    "nvidia-driver_535.261.03-1": "535.261.03",
    "nvidia-tesla-550-driver_550.54.15-5": "550.54.15",
    "nvidia-driver_550.163.01-5.1": "550.163.01",
    "nvidia-driver_555.58.02-4": "555.58.02",
}

LISTED = pathlib.Path(__file__).with_name("reviewed_differences.yml")
# (question, id) → why our answer differs from the list.
REVIEWED = {
    (row["question"], f"10de:{device}"): row["reason"]
    for row in yaml.safe_load(LISTED.read_text())["reviewed"]
    for device in row["ids"]
}


def read_ids(path):
    return {f"10de:{line[4:].strip().lower()}" for line in path.read_text().splitlines() if line.strip()}


def known_by(matrix, device, version):
    """Our answer: does this driver run this card? None = unknown."""
    product = matrix.product(device)
    if product is None:
        return None
    answer = matrix.supports(product, version).answer
    return {"yes": True, "no": False}.get(answer)


class Count:
    """Agreements and differences of one comparison."""

    def __init__(self):
        self.asked, self.differ = 0, {}

    def ask(self, question, device, ours, theirs):
        self.asked += 1
        if ours != theirs:
            self.differ[question, device] = (ours, theirs)

    def report(self, capsys, title, questions=()):
        new = {key: value for key, value in self.differ.items() if key not in REVIEWED}
        gone = [key for key in REVIEWED if key[0] in questions and key not in self.differ]
        reasons = {}
        for key in self.differ:
            reasons.setdefault(REVIEWED.get(key, "NOT REVIEWED"), []).append(f"{key[1]} ({key[0]})")
        with capsys.disabled():
            print(f"\n{title}: {self.asked - len(self.differ)} of {self.asked} agree", end="")
            for reason, listed in reasons.items():
                shown = ", ".join(listed[:4]) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")
                print(f"\n  {len(listed)} differ: {reason}: {shown}", end="")
        assert new == {}, f"{len(new)} differences that nobody reviewed: {dict(list(new.items())[:10])}"
        assert gone == [], f"reviewed differences that are none any more: {gone[:10]}"


def every_id(peers):
    return sorted({device for path in peers.glob("*/*.ids") for device in read_ids(path)})


def test_series_of_debian(matrix, peers, capsys):
    """For every id of every list: does the driver of the suite know the card?"""
    count, ids = Count(), every_id(peers)
    for directory, version in CURRENT.items():
        listed = read_ids(peers / directory / "nvidia.ids")
        for device in ids:
            count.ask(f"series {version}", device, known_by(matrix, device, version), device in listed)
    count.report(capsys, "series of Debian (nvidia-detect, nvidia.ids)", [f"series {one}" for one in CURRENT.values()])


def test_branches_of_the_tesla_and_legacy_lists(matrix, peers, capsys):
    """For every id of the newest lists: which of the older branches know the card?"""
    count, ids = Count(), every_id(peers)
    newest = peers / "nvidia-detect_550.163.01-5.1"
    for branch in TESLA + LEGACY:
        name = f"nvidia-tesla-{branch}.ids" if branch in TESLA else f"nvidia-legacy-{branch}xx.ids"
        listed = read_ids(newest / name)
        for device in ids:
            count.ask(f"branch {branch}", device, known_by(matrix, device, branch), device in listed)
    count.report(capsys, "branches of the tesla and legacy lists", [f"branch {one}" for one in TESLA + LEGACY])


def test_legacy_branch_of_supported_gpus(matrix, peers, capsys):
    """For every id of each supported-gpus.json: the branch it names as the last one for the card, or its own driver."""
    count = Count()
    for name, version in JSON.items():
        chips = json.loads((peers / f"supported-gpus.{name}.json").read_text())["chips"]
        tagged = {}
        for chip in chips:
            tagged.setdefault(f"10de:{chip['devid'][2:].lower()}", set()).add(chip.get("legacybranch"))
        for device, tags in sorted(tagged.items()):
            tag = next(iter(tags)) if len(tags) == 1 else None
            product = matrix.product(device)
            if tag:
                ours = product.last_branch if product else None
                count.ask(f"legacy {version}", device, ours, tag.split(".")[0])
            else:
                count.ask(f"json {version}", device, known_by(matrix, device, version), True)
    count.report(capsys, "legacy branch and support in supported-gpus.json")


def test_open_modules(matrix, peers, capsys):
    """Cards that nvidia-detect or supported-gpus.json call fit for open modules are not proprietary-only for us."""
    count = Count()
    ids = {device for path in peers.glob("*/nvidia-open.ids") for device in read_ids(path)}
    for path in peers.glob("*.json"):
        for chip in json.loads(path.read_text())["chips"]:
            if "kernelopen" in chip["features"]:
                ids.add(f"10de:{chip['devid'][2:].lower()}")
    for device in sorted(ids):
        product = matrix.product(device)
        count.ask("open", device, product is not None and product.flavour_rule in ("both", "open_only"), True)
    count.report(capsys, "open modules")


def test_a_branch_is_what_a_version_begins_with():
    assert {branch_of(version) for version in CURRENT.values()} == {"470", "535", "550", "555"}
