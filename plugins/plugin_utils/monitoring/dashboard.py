# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Grafana dashboard, for the metrics that there are. Panels: stat, timeseries, state-timeline, table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .source import Source

UID = "baremetal-nvidia-gpus"
SCHEMA_VERSION = 39    # Grafana 11; newer ones migrate it
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_LEGEND = "{{@where@}} {{gpu}}"


@dataclass(frozen=True, slots=True)
class _Panel:
    """What tells one panel from another. needs: metrics without which it is left out."""

    title: str
    needs: tuple[str, ...]
    expr: str
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 12
    height: int = 8
    legend: str = _LEGEND
    limits: tuple[tuple[str, float], ...] = ()    # colour from a value on
    top: float | None = None
    about: str = ""
    names: Mapping[str, str] | None = None        # of a state-timeline: value → word


_ONE = '{@where@=~"$node", gpu=~"$gpu"}'
_TABLE = (
    ("Temperature", "DCGM_FI_DEV_GPU_TEMP", "celsius"), ("Power", "DCGM_FI_DEV_POWER_USAGE", "watt"),
    ("Utilisation", "DCGM_FI_DEV_GPU_UTIL", "percent"), ("Memory used", "DCGM_FI_DEV_FB_USED", "decmbytes"),
)


def _each(metric: str) -> str:
    return f"max by (@where@, gpu) ({metric}{_ONE})"


def _instance(metric: str) -> str:
    return f"max by (@where@, gpu, GPU_I_ID) ({metric}{_ONE})"


def _rate(*metrics: str) -> str:
    return " + ".join(f"max by (@where@, gpu) (rate({metric}{_ONE}[$__rate_interval]))" for metric in metrics)


_TEMP, _POWER, _UTIL = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL"
_USED, _FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
_HOT = (("green", 0), ("orange", 85), ("red", 92))
_MIG = "{{@where@}} {{gpu}} {{GPU_I_ID}}"
_OWN = 'alertstate="firing", alertname=~"Gpu.+|DcgmExporterDown"'
_REPLAYS, _CRC = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"
_BY_POD = f'avg by (@namespace@, @pod@) ({_UTIL}{{@where@=~"$node", gpu=~"$gpu", @pod@!=""}})'
_SLOWED = (f"max by (@where@, gpu) (2 * clamp_max(floor(@clocks@{_ONE} / 32) % 2 + floor(@clocks@{_ONE} / 64) % 2, 1)"
           f" + floor(@clocks@{_ONE} / 128) % 2)")


def _share(title: str, metric: str, about: str = "") -> _Panel:
    """Return a panel of a profiling metric, for whole GPUs and MIG instances."""
    return _Panel(title, (metric,), _instance(metric), unit="percentunit", top=1, legend=_MIG, about=about)


def _small(title: str, needs: tuple[str, ...], expr: str, unit: str, **more: Any) -> _Panel:
    return _Panel(title, needs, expr, "stat", unit, 4, 4, **more)


_ROWS: tuple[tuple[str, tuple[_Panel, ...]], ...] = (
    ("Overview", (
        _small("GPUs", (_TEMP,), f"count(count by (@where@, UUID) ({_TEMP}{_ONE}))", "short"),
        _small("Firing alerts", (), f"count(ALERTS{{{_OWN}}}) or vector(0)", "short",
               limits=(("green", 0), ("orange", 1), ("red", 5))),
        _small("Utilisation", (_UTIL,), f"avg({_each(_UTIL)})", "percent", top=100),
        _small("Memory used", (_USED, _FREE),
               f"100 * sum({_USED}{_ONE}) / (sum({_USED}{_ONE}) + sum({_FREE}{_ONE}))", "percent", top=100),
        _small("Power", (_POWER,), f"sum({_each(_POWER)})", "watt"),
        _small("Hottest GPU", (_TEMP,), f"max({_TEMP}{_ONE})", "celsius", limits=_HOT),
    )),
    ("Work", (
        _Panel("GPU utilisation", (_UTIL,), _each(_UTIL), unit="percent", top=100,
               about="Share of time in which at least one kernel ran. Not reported for MIG instances."),
        _Panel("Memory used", (_USED,), _each(_USED), unit="decmbytes"),
        _share("Graphics engine active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Also for MIG instances."),
        _share("Tensor pipe active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
        _share("SM active", "DCGM_FI_PROF_SM_ACTIVE"),
        _share("Memory interface active", "DCGM_FI_PROF_DRAM_ACTIVE"),
        _Panel("Utilisation by pod", ("@pods@", _UTIL), _BY_POD, unit="percent", top=100,
               legend="{{@namespace@}}/{{@pod@}}"),
    )),
    ("Heat and power", (
        _Panel("GPU temperature", (_TEMP,), _each(_TEMP), unit="celsius", limits=_HOT),
        _Panel("Memory temperature", ("DCGM_FI_DEV_MEMORY_TEMP",), _each("DCGM_FI_DEV_MEMORY_TEMP"), unit="celsius",
               limits=(("green", 0), ("orange", 95))),
        _Panel("Power", (_POWER,), _each(_POWER), unit="watt"),
        _Panel("SM clock", ("DCGM_FI_DEV_SM_CLOCK",), f"1000000 * {_each('DCGM_FI_DEV_SM_CLOCK')}", unit="hertz"),
        _Panel("Slowed down", ("@clocks@",), _SLOWED, "state-timeline", width=24,
               names={"0": "no", "1": "power brake", "2": "heat", "3": "heat and power brake"}),
    )),
    ("Errors", (
        _Panel("XIDs of the last five minutes", ("DCGM_EXP_XID_ERRORS_COUNT",),
               f"max by (@where@, gpu, xid) (DCGM_EXP_XID_ERRORS_COUNT{_ONE}) > 0",
               legend="{{@where@}} {{gpu}}: XID {{xid}}"),
        _Panel("Uncorrected ECC errors a second", ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",),
               _rate("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")),
        _Panel("Rows remapped for uncorrected errors", ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",),
               _each("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS")),
        _Panel("PCIe replays a second", ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER",), _rate("DCGM_FI_DEV_PCIE_REPLAY_COUNTER")),
        _Panel("NVLink replays and CRC errors a second", (_REPLAYS, _CRC), _rate(_REPLAYS, _CRC)),
    )),
    ("Traffic", (
        _Panel("PCIe received", ("DCGM_FI_PROF_PCIE_RX_BYTES",), _each("DCGM_FI_PROF_PCIE_RX_BYTES"), unit="Bps"),
        _Panel("PCIe sent", ("DCGM_FI_PROF_PCIE_TX_BYTES",), _each("DCGM_FI_PROF_PCIE_TX_BYTES"), unit="Bps"),
    )),
)


def build(source: Source) -> dict[str, Any]:
    """Return the dashboard for what a source has; rows and panels without metrics are left out."""
    panels: list[dict[str, Any]] = []
    line = 0
    for title, listed in _ROWS:
        shown = [panel for panel in listed if _there(panel, source)]
        if not shown:
            continue
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": line, "w": 24, "h": 1}})
        line += 1
        left = deepest = 0
        for panel in shown:
            if left + panel.width > 24:
                line, left, deepest = line + deepest, 0, 0
            place = {"x": left, "y": line, "w": panel.width, "h": panel.height}
            panels.append(_panel(panel, source, len(panels) + 1, place))
            left, deepest = left + panel.width, max(deepest, panel.height)
        line += deepest
    panels.append(_inventory(source, len(panels) + 1, line))
    return {
        "uid": UID, "title": "NVIDIA GPUs", "tags": ["gpu", "nvidia"], "timezone": "browser", "editable": True,
        "description": "GPUs of hosts and clusters; made by baremetal.nvidia for the metrics that are collected.",
        "schemaVersion": SCHEMA_VERSION, "version": 1, "refresh": "30s", "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"}, "timepicker": {}, "links": [],
        "annotations": {"list": [{
            "builtIn": 1, "datasource": {"type": "grafana", "uid": "-- Grafana --"}, "enable": True, "hide": True,
            "iconColor": "rgba(0, 211, 255, 1)", "name": "Annotations & Alerts", "type": "dashboard"}]},
        "templating": {"list": list(_variables(source))}, "panels": panels,
    }


def queries(made: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield panel and expression of each query of a dashboard, with Grafana's variables filled in."""
    for panel in made["panels"]:
        for target in panel.get("targets", ()):
            expr = target["expr"].replace("$__rate_interval", "5m").replace("$node", ".+").replace("$gpu", ".+")
            yield panel["title"], expr


def _there(panel: _Panel, source: Source) -> bool:
    return all(source.kind == "cluster" if name == "@pods@" else source.fill(name) in source.metrics
               for name in panel.needs)


def _variables(source: Source) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {},
           "hide": 0, "includeAll": False, "multi": False, "options": [], "refresh": 1, "regex": "",
           "skipUrlSync": False}
    hosts = f"label_values({_TEMP}, {source.where})"
    cards = f'label_values({_TEMP}{{{source.where}=~"$node"}}, gpu)'
    for name, label, query in (("node", "Host", hosts), ("gpu", "GPU", cards)):
        yield {"name": name, "label": label, "type": "query", "datasource": dict(_DATASOURCE), "definition": query,
               "query": {"query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"}, "refresh": 2,
               "sort": 3, "multi": True, "includeAll": True, "allValue": ".*", "current": {}, "hide": 0, "options": [],
               "regex": "", "skipUrlSync": False}


def _target(expr: str, legend: str, ref: str = "A", table: bool = False) -> dict[str, Any]:
    return {"refId": ref, "datasource": dict(_DATASOURCE), "editorMode": "code", "expr": expr, "legendFormat": legend,
            "instant": table, "range": not table, "format": "table" if table else "time_series"}


def _panel(panel: _Panel, source: Source, ident: int, place: Mapping[str, int]) -> dict[str, Any]:
    steps = [{"color": colour, "value": None if at == 0 else at} for colour, at in panel.limits]
    thresholds = {"mode": "absolute", "steps": steps or [{"color": "green", "value": None}]}
    defaults: dict[str, Any] = {"unit": panel.unit, "mappings": [], "min": 0, "thresholds": thresholds}
    if panel.top is not None:
        defaults["max"] = panel.top
    if panel.names:
        defaults["mappings"] = [{"type": "value", "options": {
            value: {"text": word, "index": index, "color": ("green", "orange", "red", "purple")[index]}
            for index, (value, word) in enumerate(panel.names.items())}}]
    target = _target(source.fill(panel.expr), source.fill(panel.legend))
    options: dict[str, Any]
    if panel.kind == "stat":
        target["legendFormat"] = "__auto"
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "orientation": "auto",
                   "textMode": "auto", "colorMode": "value" if panel.limits else "none", "graphMode": "area",
                   "justifyMode": "auto"}
    elif panel.kind == "state-timeline":
        defaults["custom"] = {"fillOpacity": 80, "lineWidth": 0}
        options = {"mergeValues": True, "showValue": "never", "alignValue": "left", "rowHeight": 0.9,
                   "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                   "tooltip": {"mode": "single", "sort": "none"}}
    else:
        defaults["custom"] = {"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": 5,
                              "showPoints": "never", "spanNulls": False, "thresholdsStyle": {
                                  "mode": "line" if panel.limits else "off"}}
        options = {"legend": {"displayMode": "table", "placement": "right", "calcs": ["mean", "max"],
                              "showLegend": True},
                   "tooltip": {"mode": "multi", "sort": "desc"}}
    return {"id": ident, "type": panel.kind, "title": panel.title, "description": panel.about, "gridPos": dict(place),
            "datasource": dict(_DATASOURCE), "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options,
            "targets": [target]}


def _inventory(source: Source, ident: int, line: int) -> dict[str, Any]:
    """Return the table of all GPUs: one query a column, joined by their labels."""
    columns = [column for column in _TABLE if column[1] in source.metrics]
    by = source.fill("max by (@where@, gpu, UUID, modelName, DCGM_FI_DRIVER_VERSION)")
    refs = "ABCDEFGH"
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True}
    thresholds = {"mode": "absolute", "steps": [{"color": "green", "value": None}]}
    overrides = [{"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": unit}]}
                 for name, _metric, unit in columns]
    return {
        "id": ident, "type": "table", "title": "All GPUs", "description": "",
        "gridPos": {"x": 0, "y": line, "w": 24, "h": 10}, "datasource": dict(_DATASOURCE),
        "fieldConfig": {"defaults": {"custom": custom, "mappings": [], "thresholds": thresholds},
                        "overrides": overrides},
        "options": {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"], "fields": ""},
                    "sortBy": []},
        "targets": [_target(f"{by} ({metric}{source.fill(_ONE)})", "", refs[index], table=True)
                    for index, (_name, metric, _unit) in enumerate(columns)],
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {
                source.where: "Host", "gpu": "GPU", "modelName": "Model", "DCGM_FI_DRIVER_VERSION": "Driver",
                **{f"Value #{refs[index]}": name for index, (name, _metric, _unit) in enumerate(columns)}}}},
        ],
    }
