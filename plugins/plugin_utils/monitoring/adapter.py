# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""prometheus-adapter's rules for metrics of pods that use GPUs, and a HorizontalPodAutoscaler that follows one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .source import Source

UTILISATION = "gpu_utilization"
ENGINE = "gpu_engine_active"    # also for MIG instances, of which there is no utilisation
_SERIES = ((UTILISATION, "DCGM_FI_DEV_GPU_UTIL", 1), (ENGINE, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 100))


def rules(source: Source) -> list[dict[str, Any]]:
    """Return the adapter's rules (its chart takes them as ``rules.custom``): both metrics in percent.

    The mean of two minutes, since a single reading of utilisation jumps.
    """
    pod, namespace = source.pod, source.namespace
    found = []
    for name, series, factor in _SERIES:
        if series in source.metrics:
            scale = f"{factor} * " if factor != 1 else ""
            found.append({
                "seriesQuery": f'{series}{{{namespace}!="",{pod}!=""}}',
                "resources": {"overrides": {namespace: {"resource": "namespace"}, pod: {"resource": "pod"}}},
                "name": {"matches": f"^{series}$", "as": name},
                "metricsQuery": f"{scale}avg(avg_over_time(<<.Series>>{{<<.LabelMatchers>>}}[2m])) by (<<.GroupBy>>)",
            })
    return found


def autoscaler(wanted: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the HorizontalPodAutoscaler for one entry of gpu_operator_autoscaling.

    Scaling down waits ten minutes: a pod that comes back loads its model again.
    """
    kind = wanted.get("kind") or "Deployment"
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": wanted.get("hpa") or f"{wanted['name']}-gpu", "namespace": wanted["namespace"],
                     "labels": dict(labels)},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": wanted["name"]},
            "minReplicas": wanted.get("min") or 1, "maxReplicas": wanted["max"],
            "metrics": [{"type": "Pods", "pods": {
                "metric": {"name": wanted.get("metric") or UTILISATION},
                "target": {"type": "AverageValue", "averageValue": str(wanted.get("target") or 70)}}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600},
                         "scaleUp": {"stabilizationWindowSeconds": 60}},
        },
    }
