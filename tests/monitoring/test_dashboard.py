# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboard: in the form that Grafana takes, and every query parses (promtool) and asks for what is collected."""

from __future__ import annotations

import json
import pathlib
import re

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import adapter, catalogue, dashboard
from sources import SOURCES, check

KINDS = {"row", "stat", "timeseries", "state-timeline", "table"}    # no graph, singlestat, table-old: Angular is gone


@pytest.mark.parametrize("name", SOURCES)
def test_grafana_takes_the_form(name: str) -> None:
    made = json.loads(json.dumps(dashboard.build(SOURCES[name])))
    assert made["uid"] and len(made["uid"]) <= 40 and made["title"] and made["schemaVersion"] >= 36
    assert "id" not in made and "__inputs" not in made    # provisioned, not imported by hand
    idents = [panel["id"] for panel in made["panels"]]
    assert len(idents) == len(set(idents))
    variables = {one["name"] for one in made["templating"]["list"]}
    assert variables == {"datasource", "node", "gpu"}
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        place = panel["gridPos"]
        assert panel["type"] in KINDS and panel["title"], panel
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
        if panel["type"] == "row":
            assert panel["panels"] == [] and panel["collapsed"] is False
            continue
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"] and {"defaults", "overrides"} == set(panel["fieldConfig"])
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None and [one["value"] for one in steps[1:]] == sorted(
            one["value"] for one in steps[1:])
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs))
        for target in panel["targets"]:
            assert target["expr"] and target["datasource"] == panel["datasource"]
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= {*variables, "__rate_interval"}
            assert target["instant"] is not target["range"]
    assert "@" not in json.dumps(made)


@pytest.mark.parametrize("name", SOURCES)
def test_each_query_parses_and_asks_for_what_is_collected(name: str, tmp_path: pathlib.Path) -> None:
    queries = list(dashboard.queries(dashboard.build(SOURCES[name])))
    assert len(queries) > 12
    for title, expr in queries:
        used = set(re.findall(r"\b(?:DCGM_[A-Z0-9_]+)\b", expr)) - {"DCGM_FI_DRIVER_VERSION"}
        assert used <= SOURCES[name].metrics, title
    rules = [{"record": f"query_{number}", "expr": expr} for number, (_title, expr) in enumerate(queries)]
    for rule in adapter.rules(SOURCES[name]):
        query = rule["metricsQuery"].replace("<<.LabelMatchers>>", 'a="b"').replace("<<.GroupBy>>", "pod")
        for series in catalogue.BY_NAME:
            if re.match(rule["name"]["matches"], series):
                rules.append({"record": "adapter", "expr": query.replace("<<.Series>>", series)})
        rules.append({"record": "adapter_series", "expr": rule["seriesQuery"]})
    done = check(tmp_path, [{"name": "queries", "rules": rules}])
    assert done.returncode == 0, done.stdout


def test_a_query_that_does_not_parse_is_found(tmp_path: pathlib.Path) -> None:
    done = check(tmp_path, [{"name": "queries", "rules": [{"record": "bad", "expr": "sum(by (gpu)"}]}])
    assert done.returncode != 0 and "could not parse" in done.stdout, done.stdout


def test_panels_follow_the_metrics() -> None:
    titles = {name: {panel["title"] for panel in dashboard.build(source)["panels"]} for name, source in SOURCES.items()}
    assert "Tensor pipe active" in titles["full"] and "Tensor pipe active" not in titles["textfile"]
    assert "Utilisation by pod" in titles["plain"] and "Utilisation by pod" not in titles["dcgm"]
    assert "Slowed down" in titles["textfile"] and "Slowed down" not in titles["plain"]
