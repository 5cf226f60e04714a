# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the operator's chart: its CRD names and the shape of its values, small enough to read.

The real chart is not copied here. What the role relies on is the same: CRDs in ``crds/``, a ClusterPolicy made of the
values, a Deployment of the operator, and an NVIDIADriver named ``default`` where the values ask for one.
"""

from __future__ import annotations

import pathlib
from typing import Any

import yaml

_SECTIONS = ("cdi", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd", "mig", "migManager", "daemonsets",
             "nodeStatusExporter", "validator")
_POLICY = """
{{- if .Values.clusterPolicy.deployCR }}
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec:
%s
  operator: {runtimeClass: nvidia}
  driver:
    enabled: {{ .Values.driver.enabled }}
    useNvidiaDriverCRD: {{ .Values.driver.nvidiaDriverCRD.enabled }}
    {{- if not .Values.driver.nvidiaDriverCRD.enabled }}
    version: {{ .Values.driver.version | quote }}
    usePrecompiled: {{ .Values.driver.usePrecompiled }}
    kernelModuleType: {{ .Values.driver.kernelModuleType }}
    {{- end }}
{{- end }}
"""
_DEFAULT_DRIVER = """
{{- if and .Values.driver.nvidiaDriverCRD.enabled .Values.driver.nvidiaDriverCRD.deployDefaultCR }}
apiVersion: nvidia.com/v1alpha1
kind: NVIDIADriver
metadata: {name: default}
spec:
  {driverType: gpu, default: true, version: {{ .Values.driver.version | quote }}, usePrecompiled: false,
   repository: nvcr.io/nvidia, image: driver}
{{- end }}
"""
_OPERATOR = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: gpu-operator}
spec:
  replicas: 1
  selector: {matchLabels: {app: gpu-operator}}
  template:
    metadata: {labels: {app: gpu-operator}}
    spec: {containers: [{name: gpu-operator, image: "registry.invalid/gpu-operator:{{ .Chart.Version }}"}]}
"""
_VALUES: dict[str, Any] = {
    "nfd": {"enabled": True}, "cdi": {"enabled": True, "nriPluginEnabled": False}, "mig": {"strategy": "single"},
    "clusterPolicy": {"deployCR": True}, "operator": {"upgradeCRD": True}, "daemonsets": {},
    "driver": {"enabled": True, "nvidiaDriverCRD": {"enabled": False, "deployDefaultCR": True}, "version": "595.91.07",
               "usePrecompiled": False, "kernelModuleType": "auto"},
    "toolkit": {"enabled": True, "env": []}, "devicePlugin": {"enabled": True, "config": {}},
    "dcgm": {"enabled": False}, "dcgmExporter": {"enabled": True, "serviceMonitor": {"enabled": True}},
    "gfd": {"enabled": True}, "migManager": {"enabled": True}, "nodeStatusExporter": {"enabled": False},
    "validator": {},
}


def write(where: pathlib.Path, version: str = "v26.7.0", values: dict[str, Any] | None = None) -> pathlib.Path:
    """Write the chart to ``where/gpu-operator`` and return that directory."""
    chart = where / "gpu-operator"
    for name in ("templates", "crds"):
        (chart / name).mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "gpu-operator", "version": version,
                                                      "appVersion": version}))
    (chart / "values.yaml").write_text(yaml.safe_dump({**_VALUES, **(values or {})}))
    sections = "\n".join(f"  {name}: {{{{ .Values.{name} | toJson }}}}" for name in _SECTIONS)
    (chart / "templates" / "policy.yaml").write_text(_POLICY % sections)
    (chart / "templates" / "driver.yaml").write_text(_DEFAULT_DRIVER)
    (chart / "templates" / "operator.yaml").write_text(_OPERATOR)
    for crd in crds():
        (chart / "crds" / f"{crd['metadata']['name']}.yaml").write_text(yaml.safe_dump(crd))
    return chart


def crds(without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The two CRDs; ``without`` names keys of the NVIDIADriver's spec that an older one did not have."""
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    driver = {
        "enabled": {"type": "boolean"}, "useNvidiaDriverCRD": {"type": "boolean"}, "version": {"type": "string"},
        "usePrecompiled": {"type": "boolean"}, "kernelModuleType": {"type": "string"},
    }
    policy = {**dict.fromkeys((*_SECTIONS, "operator"), loose), "driver": {"type": "object", "properties": driver}}
    spec = {
        "driverType": {"type": "string", "enum": ["gpu", "vgpu", "vgpu-host-manager"], "default": "gpu"},
        "default": {"type": "boolean", "default": False}, "version": {"type": "string"},
        "usePrecompiled": {"type": "boolean"}, "kernelModuleType": {"type": "string"},
        "repository": {"type": "string"}, "image": {"type": "string"},
        "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    kept = {key: value for key, value in spec.items() if key not in without}
    return [_crd("clusterpolicies", "ClusterPolicy", "v1", policy),
            _crd("nvidiadrivers", "NVIDIADriver", "v1alpha1", kept)]


def _crd(plural: str, kind: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.nvidia.com"},
        "spec": {"group": "nvidia.com", "scope": "Cluster",
                 "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                 "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                               "subresources": {"status": {}}}]},
    }
