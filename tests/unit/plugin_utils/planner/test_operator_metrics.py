# SPDX-License-Identifier: GPL-3.0-or-later
"""The exporter's list of metrics: what GPUs and exporter have, kept while it serves; a person's own one stays."""
from __future__ import annotations

import copy
import datetime
from typing import Any

import run
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.monitoring import counters
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan, plan_fleet

NOW = datetime.date(2026, 11, 30)
HOST = next(case for case in run.load(run.pathlib.Path(run.__file__).parent / "operator_settings.yml")
            if case["id"] == "settings-new-cluster")
WATCHED = {"servicemonitors.monitoring.coreos.com": {}, "prometheusrules.monitoring.coreos.com": {}}


def _plan(gpu: str = "10de:2330", policy: dict[str, Any] | None = None, host: str = "h",
          **cluster: Any) -> dict[str, Any]:
    facts = {**copy.deepcopy(HOST["facts"]), "host": host}
    facts["gpus"] = [{**facts["gpus"][0], "id": gpu}]
    here = {**HOST["cluster"], **cluster}
    return plan(host, facts, {"gpu_driver_owner": "operator", **(policy or {})}, matrix.load(), NOW, here)


def _config(made: dict[str, Any]) -> dict[str, Any] | None:
    return made["decisions"]["operator"]["values"].get("dcgmExporter", {}).get("config")


def _fields(made: dict[str, Any]) -> frozenset[str]:
    config = _config(made)
    return counters.fields(config["data"]) if config else frozenset()


def test_a_gpu_gets_what_it_has() -> None:
    h100, v100, card = _fields(_plan("10de:2330")), _fields(_plan("10de:1db5")), _fields(_plan("10de:2684"))
    assert {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_FI_DEV_FABRIC_MANAGER_STATUS"} <= h100
    assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" in v100 and "DCGM_FI_DEV_RETIRED_PENDING" in v100
    assert not v100 & {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_ROW_REMAP_PENDING"}
    assert "DCGM_FI_DEV_GPU_TEMP" in card and not any("PROF" in name or "NVLINK" in name for name in card)    # RTX 4090


def test_an_older_exporter_is_asked_by_its_own_names() -> None:
    old = _fields(_plan(policy={"gpu_operator_version": "v24.9.2"}))
    assert "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" in old and "DCGM_EXP_GPU_HEALTH_STATUS" not in old
    assert "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" in _fields(_plan())


def test_hosts_of_two_kinds_share_one_list_and_a_limited_run_keeps_it() -> None:
    both = plan_fleet([_plan("10de:2330", host="a"), _plan("10de:1db5", host="b")])["operator"]
    assert both["conflicts"] == [] or all("dcgmExporter" not in one["path"] for one in both["conflicts"])
    data = both["values"]["dcgmExporter"]["config"]["data"]
    assert {"DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_PROF_SM_ACTIVE"} <= counters.fields(data)
    installed = {"operator": {"version": both["version"], "values": both["values"]}}
    again = plan_fleet([_plan("10de:1db5", host="b", **installed)])["operator"]
    assert again["values"]["dcgmExporter"]["config"] == both["values"]["dcgmExporter"]["config"]


def test_a_cluster_that_runs_without_our_list_is_left_alone_unless_it_is_asked_for() -> None:
    version = _plan()["decisions"]["operator"]["version"]
    runs = {"operator": {"version": version, "values": {"dcgmExporter": {"enabled": True}}}, "values": None}
    assert _config(_plan(**runs)) is None
    assert _config(_plan(policy={"gpu_operator_monitoring": "present"}, crds=WATCHED, **runs)) is not None
    own = {"dcgmExporter": {"config": {"name": "mine"}}}
    assert _config(_plan(policy={"gpu_operator_monitoring": "present"}, crds=WATCHED, values=own)) == {"name": "mine"}


def test_absent_takes_ours_away() -> None:
    first = _plan()["decisions"]["operator"]
    installed = {"operator": {"version": first["version"], "values": first["values"]}, "values": None}
    assert _config(_plan(**installed)) == first["values"]["dcgmExporter"]["config"]
    assert _config(_plan(policy={"gpu_operator_monitoring": "absent"}, **installed)) is None


def test_whether_a_fleet_is_watched() -> None:
    def mode(*modes: str) -> str:
        plans = [_plan(policy={"gpu_operator_monitoring": one}, host=f"h{number}") for number, one in enumerate(modes)]
        return str(plan_fleet(plans)["operator"]["monitoring"])

    assert mode("auto", "auto") == "auto" and mode("auto", "present") == "present"
    assert mode("absent", "auto") == "auto" and mode("absent", "absent") == "absent"


def test_the_operators_own_metrics_are_selected_where_its_servicemonitor_takes_labels() -> None:
    chosen = [{"metadata": {"name": "kps"}, "spec": {"serviceMonitorSelector": {"matchLabels": {"release": "kps"}}}}]

    def monitor(**more: Any) -> Any:
        values = _plan(**{"crds": WATCHED, "prometheuses": chosen, **more})["decisions"]["operator"]["values"]
        return values["operator"].get("metrics")

    assert monitor() == {"serviceMonitor": {"additionalLabels": {"release": "kps"}}}
    mine = {"operator": {"metrics": {"serviceMonitor": {"additionalLabels": {"release": "mine", "team": "ai"}}}}}
    assert monitor(values=mine) == mine["operator"]["metrics"]
    assert monitor(policy={"gpu_operator_version": "v26.3.3"}) is None
    assert monitor(crds={}) is None and monitor(prometheuses=[]) is None
