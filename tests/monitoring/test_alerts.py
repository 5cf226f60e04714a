# SPDX-License-Identifier: GPL-3.0-or-later
"""Each alert fires on its series and stays silent on the counterpart, at every source that has it: by promtool."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import alerts, catalogue
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring.source import Source
from sources import SOURCES, check, promtool

CASES: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (pathlib.Path(__file__).parent / "alerts.yml").read_text(encoding="utf-8"))
GPU = {"gpu": "0", "UUID": "U0"}


def _rules(source: Source) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in alerts.groups(source) for rule in group["rules"]}


def _series(source: Source, metric: str, labels: str, values: str) -> dict[str, str]:
    given = source.fill(labels)
    if metric.startswith(("DCGM_", "@clocks@")):
        mine = {source.where: "n1", **GPU}
        given = ",".join([*(f'{key}="{value}"' for key, value in mine.items() if f"{key}=" not in given), given])
    return {"series": f"{source.fill(metric)}{{{given.strip(',')}}}", "values": values}


def _tests(name: str) -> Iterator[dict[str, Any]]:
    """Yield a promtool test for each case that this source has."""
    source = SOURCES[name]
    for alert, rule in _rules(source).items():
        for case in CASES.get(alert, []):
            if name not in case.get("sources", [name]) and not (name == "dcgm3" and "full" in case.get("sources", [])):
                continue
            fires = case["fires"]
            labels = {} if fires.get("bare") else {source.where: "n1", **GPU}
            labels.update({source.fill(key): value for key, value in fires.get("labels", {}).items()})
            expected = {key: value for key, value in {**labels, **rule["labels"]}.items() if value is not None}
            yield _test(source, alert, fires, [{"exp_labels": expected}])
            for silent in case["silent"]:
                yield _test(source, alert, silent, [])


def _test(source: Source, alert: str, case: dict[str, Any], expected: list[Any]) -> dict[str, Any]:
    return {"interval": "1m", "input_series": [_series(source, *one) for one in case["series"]],
            "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": expected} for at in case["at"]]}


@pytest.mark.parametrize("name", SOURCES)
def test_each_alert_fires_and_stays_silent(name: str, tmp_path: pathlib.Path) -> None:
    groups = alerts.groups(SOURCES[name])
    for group in groups:
        for rule in group["rules"]:
            del rule["annotations"]    # promtool would want their words, too
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}, width=10000), encoding="utf-8")
    tests = list(_tests(name))
    tried = {(one["alert_rule_test"][0]["alertname"], bool(one["alert_rule_test"][0]["exp_alerts"])) for one in tests}
    assert tried == {(alert, fires) for alert in _rules(SOURCES[name]) for fires in (True, False)}
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests},
                                   width=10000), encoding="utf-8")
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SOURCES)
def test_promtool_takes_the_rules_with_their_annotations(name: str, tmp_path: pathlib.Path) -> None:
    done = check(tmp_path, alerts.groups(SOURCES[name]))
    assert done.returncode == 0, done.stdout


def test_a_test_that_must_fail_fails(tmp_path: pathlib.Path) -> None:
    """The guard of the tests above: the popular form of the XID alert, which never fires, is found out."""
    expr = "DCGM_FI_DEV_XID_ERRORS > 0 and changes(DCGM_FI_DEV_XID_ERRORS[10m]) > 0"
    groups = [{"name": "popular", "rules": [{"alert": "GpuXidCritical", "expr": expr}]}]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    case = next(one for one in CASES["GpuXidCritical"] if "plain" in one["sources"])["fires"]
    test = _test(SOURCES["plain"], "GpuXidCritical", case, [{"exp_labels": {"xid": "79"}}])
    tests = {"rule_files": ["rules.yml"], "tests": [test]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    done = promtool("test", "rules", tmp_path / "tests.yml")
    assert done.returncode != 0 and "got:[]" in done.stdout, done.stdout


def test_every_alert_has_a_case() -> None:
    assert sorted(CASES) == sorted(alerts.names())


@pytest.mark.parametrize("name", SOURCES)
def test_metrics_of_the_alerts_are_collected_there(name: str) -> None:
    source = SOURCES[name]
    for alert, rule in _rules(source).items():
        used = set(re.findall(r"\b(?:DCGM_[A-Z0-9_]+|baremetal_nvidia_[a-z_]+)\b", rule["expr"]))
        assert used <= source.metrics | set(catalogue.OTHERS), alert
        others = set(re.findall(r"\b(?:kube_|gpu_operator_|node_)[a-z_]+\b", rule["expr"]))
        assert others <= set(catalogue.OTHERS), alert
        assert "@" not in str(rule), alert
        assert rule["annotations"]["runbook"] and rule["labels"]["severity"] in ("critical", "warning", "info")


def test_what_is_not_collected_is_named() -> None:
    assert "GpuThermalThrottle" in alerts.left_out(SOURCES["plain"])
    assert alerts.left_out(SOURCES["full"]) == []
