# SPDX-License-Identifier: GPL-3.0-or-later
"""What is decided for the operator, held against the real charts and CRDs of five releases.

They lie outside the repository; without them these tests are skipped. With ``GPU_OPERATOR_CHARTS``, a directory with a
chart for each release (``v26.7.0/Chart.yaml`` …), the chart itself is rendered by helm as well.
"""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
import run
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import chart
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan_fleet
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.rules import chart_keys, chart_types
from crd_schema import sent, strict
from operator_plans import PLANS, RELEASES, Wanted, made

ROOT = pathlib.Path(__file__).resolve().parents[4]
REFERENCE = ROOT.parent / "shared" / "reference" / "data" / "gpu-operator"
CHARTS = os.environ.get("GPU_OPERATOR_CHARTS")
pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no charts and CRDs of the operator in {REFERENCE}")
KINDS = {"ClusterPolicy": "clusterpolicies", "NVIDIADriver": "nvidiadrivers"}
# What the templates write under another name, or read themselves: the rest stands in the ClusterPolicy as it is.
RENAMED = {"driver.upgradePolicy.gpuPodDeletion": "driver.upgradePolicy.podDeletion"}
CHART_ONLY = (
    "nfd",
    "node-feature-discovery",
    "platform",
    "clusterPolicy",
    "gpuCluster",
    "draDriver",
    "extraObjects",
    "operator",
    "driver.nvidiaDriverCRD",
    "driver.version",
    "devicePlugin.config.create",
    "devicePlugin.config.data",
    "migManager.config.create",
    "migManager.config.data",
    "dcgmExporter.config.create",
    "dcgmExporter.config.data",
)
EVERYTHING = [
    pytest.param(release, wanted, id=f"{release}-{wanted.name}")
    for release in RELEASES
    for wanted in PLANS
    if wanted.fits(release)
]


def crd(kind: str, release: str) -> dict[str, Any]:
    name = f"crd-nvidia.com_{KINDS[kind]}-{release}.yaml"
    return yaml.load((REFERENCE / name).read_text(encoding="utf-8"), Loader=run.LOADER)


@functools.cache
def whole_schema(kind: str, release: str) -> dict[str, Any]:
    stored = next(one for one in crd(kind, release)["spec"]["versions"] if one["storage"])
    return strict(stored["schema"]["openAPIV3Schema"], top=True)


@functools.cache
def defaults(release: str) -> dict[str, Any]:
    return yaml.load((REFERENCE / f"values-{release}.yaml").read_text(encoding="utf-8"), Loader=run.LOADER)


@functools.cache
def fleet_of(name: str, release: str) -> dict[str, Any]:
    return plan_fleet(made(next(one for one in PLANS if one.name == name), release))["operator"]


def parsed(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release[1:].split("."))


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping) and value and key not in chart_keys.FREE:
            yield from leaves(value, path)
        else:
            yield path, value


def below(path: str, parents: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in parents)


def schema_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    here: Any = schema
    for key in path.split("."):
        here = (here.get("properties") or {}).get(key) if isinstance(here, Mapping) else None
    return here


@pytest.mark.parametrize(("release", "wanted"), EVERYTHING)
def test_values_are_of_the_charts_own_types(release: str, wanted: Wanted) -> None:
    fleet = fleet_of(wanted.name, release)
    assert fleet["conflicts"] == []
    assert list(chart_keys.unknown(fleet["values"], parsed(release))) == []
    own = defaults(release)
    for path, value in leaves(fleet["values"]):
        there = chart.at(own, path)
        if there not in (chart.ABSENT, None, "", [], {}):
            assert type(value) is type(there), f"{path}: {value!r} where the chart has {there!r}"


@pytest.mark.parametrize(("release", "wanted"), EVERYTHING)
def test_values_are_what_the_clusterpolicy_takes(release: str, wanted: Wanted) -> None:
    fleet = fleet_of(wanted.name, release)
    spec = whole_schema("ClusterPolicy", release)["properties"]["spec"]
    for path, value in leaves(fleet["values"]):
        if below(path, CHART_ONLY):
            continue
        for old, new in RENAMED.items():
            path = new + path.removeprefix(old) if below(path, (old,)) else path
        schema = schema_at(spec, path)
        assert schema is not None, f"{path} is in no ClusterPolicy of {release}"
        jsonschema.validate(value, schema)


@pytest.mark.parametrize(("release", "wanted"), EVERYTHING)
def test_driver_objects_are_what_their_crd_takes(release: str, wanted: Wanted) -> None:
    fleet = fleet_of(wanted.name, release)
    assert bool(fleet["drivers"]) == wanted.objects
    for one in fleet["drivers"]:
        whole = {
            "apiVersion": "nvidia.com/v1alpha1",
            "kind": "NVIDIADriver",
            "metadata": {"name": one["name"]},
            "spec": one["spec"],
        }
        jsonschema.validate(whole, whole_schema("NVIDIADriver", release))


@pytest.mark.skipif(not CHARTS, reason="GPU_OPERATOR_CHARTS names no directory of charts")
@pytest.mark.parametrize(("release", "wanted"), EVERYTHING)
def test_the_real_chart_makes_what_the_real_crds_take(release: str, wanted: Wanted, tmp_path: pathlib.Path) -> None:
    fleet = fleet_of(wanted.name, release)
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(fleet["values"]))
    helm = subprocess.run([ROOT / "scripts" / "helm.sh"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    done = subprocess.run(
        [
            helm,
            "template",
            "gpu-operator",
            str(pathlib.Path(str(CHARTS)) / release),
            "--namespace",
            "gpu-operator",
            "--values",
            str(tmp_path / "values.yaml"),
        ],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kinds = []
    for one in yaml.load_all(done.stdout, Loader=run.LOADER):
        if one and one["kind"] in KINDS:
            kinds.append(one["kind"])
            jsonschema.validate(sent(one), whole_schema(one["kind"], release))
    assert "ClusterPolicy" in kinds


@pytest.mark.parametrize("release", RELEASES)
def test_a_field_too_many_and_a_type_wrong_are_seen(release: str) -> None:
    spec = whole_schema("ClusterPolicy", release)["properties"]["spec"]
    for wrong in (
        {"driver": {"enbled": True}},
        {"driver": {"enabled": "true"}},
        {"toolkit": {"env": [{"name": "A", "value": 1}]}},
        {"driver": {"upgradePolicy": {"gpuPodDeletion": {}}}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, {**spec, "required": []})


@pytest.mark.parametrize("release", RELEASES)
def test_each_mistyped_key_of_the_chart_is_named_with_its_nearest(release: str) -> None:
    silent, other = [], []
    for path, _value in chart.paths(defaults(release)):
        parent, _dot, key = path.rpartition(".")
        if below(path, ("node-feature-discovery",)) or set(path.split(".")) & chart_keys.FREE or len(key) < 4:
            continue
        tree: dict[str, Any] = {}
        chart.put(tree, f"{parent}.{key[:-2] + key[-1]}" if parent else key[:-2] + key[-1], True)
        told = list(chart_keys.unknown(tree, parsed(release)))
        if path in ("cdi.default", "driver.useOpenKernelModules"):
            continue
        silent += [] if told else [path]
        other += [] if not told or told[0][1] == path else [(path, told[0])]
    assert silent == []
    assert other == []


@pytest.mark.parametrize("release", RELEASES)
def test_the_charts_own_values_are_of_the_types_that_we_take(release: str) -> None:
    assert list(chart_types.wrong(defaults(release), parsed(release))) == []


@pytest.mark.parametrize("release", RELEASES)
def test_types_and_words_are_those_of_the_clusterpolicy(release: str) -> None:
    spec = whole_schema("ClusterPolicy", release)["properties"]["spec"]
    other: list[tuple[str, str, str]] = []
    samples = {"boolean": True, "integer": 3, "string": "15s", "array": []}
    for path, words in chart_types.WORDS.items():
        schema = schema_at(spec, path)
        if schema is not None and "enum" in schema:
            assert set(schema["enum"]) == set(words), path
    for parent, keys in chart_keys.known(parsed(release)).items():
        for key in keys:
            path = f"{parent}.{key}" if parent else key
            schema = schema_at(spec, path)
            if schema is None or str(schema.get("type")) not in samples:
                continue
            if key in chart_keys.FREE or path in chart_types.WORDS or key == "maxUnavailable":
                continue
            for kind, value in samples.items():
                tree: dict[str, Any] = {}
                chart.put(tree, path, value)
                refused = bool(list(chart_types.wrong(tree, parsed(release))))
                if refused is not (kind != schema["type"]) and (kind, key) != ("integer", "version"):
                    other.append((path, kind, schema["type"]))
    assert other == []


def test_the_matrix_is_the_one_that_everybody_has() -> None:
    assert {row.version for row in matrix.load().operators()} >= set(RELEASES)
