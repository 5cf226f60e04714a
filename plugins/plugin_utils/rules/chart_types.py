# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types that the operator's chart and its ClusterPolicy take, by a key's last word: it means one type everywhere.

Read 2026-11-30 from the values.yaml and the ClusterPolicy CRD of v24.9.2, v25.3.4, v25.10.1, v26.3.3 and v26.7.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .chart_keys import FREE, known


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOOLEANS = _words("""
autoUpgrade cleanupCRD create deleteEmptyDir deployCR deployDefaultCR develMode enable enablePodLabels enablePodUID
enabled force honorLabels hostNetwork hostPID nlsEnabled nodefeaturerules nriPluginEnabled openshift upgradeCRD
useHostMofed useOpenKernelModules usePrecompiled use_ocp_driver_toolkit
""")
_INTEGERS = _words("""
failureThreshold hostPort initialDelaySeconds maxParallelUpgrades periodSeconds successThreshold timeoutSeconds
""")
_TEXTS = _words("""
artifactsDir configMapName defaultMode defaultRuntime defaultWorkload directory driverInstallDir driverType image
imagePullPolicy installDir internalTrafficPolicy interval kernelModuleType kubeletRootDir level mode name podSelector
priorityClassName repository root rootFS runtimeClass scrapeTimeout secretEnv secretName strategy timeEncoding type
updateStrategy version
""")
_LISTS = _words("""
args extraObjects imagePullSecrets podLabelAllowlistRegex relabelings runtimeClasses tolerations
""")
_ALSO_TEXTS = ("driver.virtualTopology.config", "devicePlugin.config.default", "vgpuDeviceManager.config.default")
_DURATION = re.compile(r"(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)\Z")
#: What the ClusterPolicy takes and nothing else.
WORDS: Mapping[str, tuple[str, ...]] = {
    "driver.kernelModuleType": ("auto", "open", "proprietary"),
    "driver.nvidiaDriverCRD.driverType": ("gpu", "vgpu", "vgpu-host-manager"),
    "daemonsets.updateStrategy": ("RollingUpdate", "OnDelete"),
    "sandboxWorkloads.mode": ("kubevirt", "kata"),
    "ccManager.defaultMode": ("on", "off", "devtools"),
    "migManager.config.default": ("all-disabled", ""),
    "operator.defaultRuntime": ("docker", "crio", "containerd"),
}
_DURATIONS = ("dcgmExporter.serviceMonitor.interval", "dcgmExporter.serviceMonitor.scrapeTimeout")


def wrong(values: object, release: tuple[int, ...], parent: str = "") -> Iterator[tuple[str, object, str]]:
    """Yield path, value and what is taken, for each value of another type or outside its words."""
    table = known(release)
    if not isinstance(values, Mapping) or parent not in table:
        return
    for key, value in values.items():
        path = f"{parent}.{key}" if parent else str(key)
        if key not in table[parent] or value is None:
            continue
        taken = _taken(str(key), path, value, path in table)
        if taken is not None:
            yield path, value, taken
        elif key not in FREE:
            yield from wrong(value, release, path)


def _taken(key: str, path: str, value: object, has_keys: bool) -> str | None:
    """Return what is taken, None where the value is that."""
    if has_keys:
        return None if isinstance(value, Mapping) else "a mapping"
    if key in _BOOLEANS:
        return None if isinstance(value, bool) else "true or false, without quotes"
    if key in _INTEGERS:
        return None if isinstance(value, int) and not isinstance(value, bool) else "a whole number, without quotes"
    if key in _LISTS:
        return None if isinstance(value, (list, tuple)) else "a list"
    if key == "maxUnavailable":    # the chart quotes it
        good = isinstance(value, (int, str)) and not isinstance(value, bool)
        return None if good else "a number, or a text such as 25%"
    if key in _TEXTS or path in _ALSO_TEXTS:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not isinstance(value, str) and not (key == "version" and number):
            return "a text; quote it"
    if path in WORDS and value not in WORDS[path]:
        return f"one of {', '.join(word or 'nothing' for word in WORDS[path])}"
    if path in _DURATIONS and (not isinstance(value, str) or not value or not _DURATION.match(value)):
        return "a duration of Prometheus, such as 15s"
    return None
