# SPDX-License-Identifier: GPL-3.0-or-later
"""Every metric exists in the exporters that it is asked of: one unknown name stops dcgm-exporter at its start."""

from __future__ import annotations

import csv
import pathlib

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import catalogue, counters

HERE = pathlib.Path(__file__).parent
KNOWN = yaml.safe_load((HERE / "fields.yml").read_text(encoding="utf-8"))
LISTS = sorted((HERE.parents[2] / "shared" / "reference" / "data" / "dcgm").glob("*.csv"))


def _knows(exporter: str, name: str) -> bool:
    listed = KNOWN["fields"].get(name, [])
    return listed == "all" or exporter in listed


@pytest.mark.parametrize("exporter", KNOWN["exporters"])
def test_an_exporter_knows_what_it_is_asked_for(exporter: str) -> None:
    text = counters.text(catalogue.GROUPS, catalogue.exporter(f"{exporter}-distroless"))
    rows = [row for row in csv.reader(text.splitlines()) if not row[0].startswith("#")]
    for row in rows:
        assert len(row) == 3, row    # a comma in a help text is a malformed list
        assert row[1].strip() in ("gauge", "counter", "label")
        assert _knows(exporter, row[0]), f"{row[0]} stops {exporter}"
    names = [row[0] for row in rows]
    assert len(names) == len(set(names)) and len({catalogue.CLOCKS, catalogue.CLOCKS_BEFORE} & set(names)) == 1


def test_since_and_until_are_no_narrower_than_they_need_be() -> None:
    for metric in catalogue.METRICS:
        if metric.group != "own":
            for exporter in KNOWN["exporters"]:
                known = metric.known(catalogue.exporter(exporter))
                assert known == _knows(exporter, metric.name) or metric.name == catalogue.CLOCKS_BEFORE, metric.name


@pytest.mark.skipif(not LISTS, reason="the exporter's own lists are not here (../shared/reference/data/dcgm)")
def test_the_common_metrics_are_in_the_exporters_own_lists() -> None:
    for file in LISTS:
        if "compatibility" in file.name:
            continue
        active = counters.fields(file.read_text(encoding="utf-8")) | {"DCGM_FI_DRIVER_VERSION"}
        missing = {name for name in catalogue.DEFAULT if name not in active}
        assert not missing, f"{file.name}: {missing}"


def test_an_image_tag_tells_the_exporter() -> None:
    assert catalogue.exporter("4.5.3-4.8.2-distroless") == (4, 8, 2)
    assert catalogue.exporter("3.3.9-3.6.1-ubuntu22.04") == (3, 6, 1)
    for odd in (None, "", "latest", "4.5.3", "1-x"):
        assert catalogue.exporter(odd) == ()


def test_the_name_follows_the_list() -> None:
    one, two = counters.config(counters.text(["base"], ())), counters.config(counters.text(["base", "nvlink"], ()))
    assert one["name"] != two["name"] and counters.ours(one["name"]) and not counters.ours("dcgm-metrics")
    assert counters.fields(one["data"]) < counters.fields(two["data"])
    assert "DCGM_FI_DRIVER_VERSION" not in counters.fields(one["data"])    # a label on the others
    assert counters.fields(None) == frozenset()
