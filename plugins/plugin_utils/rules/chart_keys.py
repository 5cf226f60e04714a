# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The value keys that the operator's chart knows, release by release: it has no schema, so Helm swallows any other.

Read 2026-11-30 from deployments/gpu-operator/values.yaml and the ClusterPolicy CRD of v24.9.2, v25.3.4, v25.10.1,
v26.3.0, v26.3.3 and v26.7.0. ``key@26.3`` is known from that release on, ``key<26.3``
before it, the others in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from ..model.version import loose

SOURCE = "https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/deployments/gpu-operator/values.yaml"
FIRST = (24, 9)
# Below these a person may write what they like.
FREE = frozenset((
    "affinity", "annotations", "additionalLabels", "args", "data", "env", "extraObjects", "featureGates",
    "global", "imagePullSecrets", "labels", "node-feature-discovery", "nodeAffinity", "nodeSelector",
    "podSecurityContext", "relabelings", "resources", "tolerations", "podLabelAllowlistRegex",
))
_HELM = frozenset(("global", "nameOverride", "fullnameOverride"))
_KEYS = """
-: ccManager cdi clusterPolicy@26.7 daemonsets dcgm dcgmExporter devicePlugin draDriver@26.7 driver
  extraObjects@26.3 gdrcopy gds gfd gpuCluster@26.7 hostPaths kataManager kataSandboxDevicePlugin@26.3 mig
  migManager nfd node-feature-discovery nodeStatusExporter operator platform psa sandboxDevicePlugin
  sandboxWorkloads toolkit validator vfioManager vgpuDeviceManager vgpuManager
ccManager: args defaultMode enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets repository
  resources version
cdi: enabled nriPluginEnabled@26.3
clusterPolicy: deployCR@26.7
daemonsets: annotations labels podSecurityContext@26.3 priorityClassName rollingUpdate tolerations updateStrategy
daemonsets.rollingUpdate: maxUnavailable
dcgm: args enabled env hostNetwork@26.3.1 hostPort image imagePullPolicy imagePullSecrets repository resources
  version
dcgmExporter: annotations@26.3.1 args config enablePodLabels@26.3.1 enablePodUID@26.3.1 enabled env hostNetwork@26.3
  hostPID@25.10 hpcJobMapping@25.10 image imagePullPolicy imagePullSecrets podLabelAllowlistRegex@26.3.1 repository
  resources service@25.3 serviceMonitor version
dcgmExporter.config: create data name
dcgmExporter.hpcJobMapping: directory@25.10 enabled@25.10
dcgmExporter.service: internalTrafficPolicy@25.3 type@25.3
dcgmExporter.serviceMonitor: additionalLabels enabled honorLabels interval relabelings scrapeTimeout@26.7
devicePlugin: args config enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets mps repository
  resources version
devicePlugin.config: create data default name
devicePlugin.mps: root
draDriver: computeDomains@26.7 featureGates@26.7 gpus@26.7 image@26.7 imagePullPolicy@26.7 imagePullSecrets@26.7
  repository@26.7 version@26.7
draDriver.computeDomains: controller@26.7 enabled@26.7 kubeletPlugin@26.7
draDriver.gpus: kubeletPlugin@26.7
driver: args certConfig enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets kernelModuleConfig
  kernelModuleType@25.3 licensingConfig livenessProbe manager nvidiaDriverCRD rdma readinessProbe repoConfig
  repository resources secretEnv@25.10 startupProbe upgradePolicy useOpenKernelModules<25.3 usePrecompiled version
  virtualTopology
driver.certConfig: name
driver.kernelModuleConfig: name
driver.licensingConfig: configMapName nlsEnabled secretName@25.10
driver.livenessProbe: failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds
driver.manager: env image imagePullPolicy imagePullSecrets repository version
driver.nvidiaDriverCRD: deployDefaultCR driverType enabled nodeSelector
driver.rdma: enabled useHostMofed
driver.readinessProbe: failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds
driver.repoConfig: configMapName
driver.startupProbe: failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds
driver.upgradePolicy: autoUpgrade drain gpuPodDeletion maxParallelUpgrades maxUnavailable waitForCompletion
driver.upgradePolicy.drain: deleteEmptyDir enable force podSelector timeoutSeconds
driver.upgradePolicy.gpuPodDeletion: deleteEmptyDir force timeoutSeconds
driver.upgradePolicy.waitForCompletion: podSelector timeoutSeconds
driver.virtualTopology: config
gdrcopy: args enabled env image imagePullPolicy imagePullSecrets repository version
gds: args enabled env image imagePullPolicy imagePullSecrets repository version
gfd: args enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets repository resources version
gpuCluster: deployCR@26.7
hostPaths: driverInstallDir kubeletRootDir@26.7 rootFS
kataManager: args config enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets repository resources
  version
kataManager.config: artifactsDir runtimeClasses
kataSandboxDevicePlugin: args@26.3 enabled@26.3 env@26.3 hostNetwork@26.3.1 image@26.3 imagePullPolicy@26.3
  imagePullSecrets@26.3 repository@26.3 resources@26.3 version@26.3
mig: strategy
migManager: args config enabled env gpuClientsConfig hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets
  repository resources version
migManager.config: create data default name
migManager.gpuClientsConfig: name
nfd: enabled nodefeaturerules
nodeStatusExporter: args enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets repository resources
  version
operator: affinity annotations cleanupCRD defaultRuntime env@26.7 image imagePullPolicy imagePullSecrets
  initContainer labels logging metrics@26.7 nodeSelector@26.7 priorityClassName repository resources runtimeClass
  tolerations upgradeCRD use_ocp_driver_toolkit
operator.initContainer: image imagePullPolicy imagePullSecrets repository version
operator.logging: develMode level timeEncoding
operator.metrics: serviceMonitor@26.7
operator.metrics.serviceMonitor: additionalLabels@26.7 enabled@26.7 honorLabels@26.7 interval@26.7 relabelings@26.7
  scrapeTimeout@26.7
platform: openshift
psa: enabled
sandboxDevicePlugin: args enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets repository resources
  version
sandboxWorkloads: defaultWorkload enabled mode@26.3
toolkit: args enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets installDir repository resources
  version
validator: args cuda driver env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets plugin repository
  resources toolkit version vfioPCI vgpuDevices vgpuManager
validator.cuda: env
validator.driver: env
validator.plugin: env
validator.toolkit: env
validator.vfioPCI: env
validator.vgpuDevices: env
validator.vgpuManager: env
vfioManager: args driverManager enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets repository
  resources version
vfioManager.driverManager: env image imagePullPolicy imagePullSecrets repository version
vgpuDeviceManager: args config enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets repository
  resources version
vgpuDeviceManager.config: default name
vgpuManager: args driverManager enabled env hostNetwork@26.3.1 image imagePullPolicy imagePullSecrets
  kernelModuleConfig@26.3 repository resources version
vgpuManager.driverManager: env image imagePullPolicy imagePullSecrets repository version
vgpuManager.kernelModuleConfig: name@26.3
"""


@lru_cache(maxsize=1)
def _table() -> dict[str, tuple[tuple[str, tuple[int, ...], tuple[int, ...] | None], ...]]:
    joined = _KEYS.strip().replace("\n  ", " ")
    table = {}
    for line in joined.splitlines():
        parent, _colon, words = line.partition(": ")
        table["" if parent == "-" else parent] = tuple(_entry(word) for word in words.split())
    return table


def _entry(word: str) -> tuple[str, tuple[int, ...], tuple[int, ...] | None]:
    head, _less, until = word.partition("<")
    name, _at, since = head.partition("@")
    return name, loose(since) if since else (), loose(until) if until else None


@lru_cache(maxsize=64)
def known(release: tuple[int, ...]) -> dict[str, frozenset[str]]:
    """Return the keys below each path of a release; {} for a release before the first one that was read."""
    if release < FIRST:
        return {}
    return {
        parent: frozenset(
            name for name, since, until in entries if release >= since and (until is None or release < until)
        )
        for parent, entries in _table().items()
    }


def unknown(values: object, release: tuple[int, ...]) -> Iterator[tuple[str, str | None]]:
    """Yield each key that the chart of a release does not know, as dotted path, and the nearest one that it does."""
    table = known(release)
    if table:
        yield from _unknown(values, "", table)


def _unknown(values: object, parent: str, table: dict[str, frozenset[str]]) -> Iterator[tuple[str, str | None]]:
    if not isinstance(values, dict) or parent not in table:
        return
    names = table[parent] | (_HELM if not parent else frozenset())
    for key, value in values.items():
        path = f"{parent}.{key}" if parent else str(key)
        if key not in names:
            yield path, nearest(str(key), parent, table)
        elif key not in FREE:
            yield from _unknown(value, path, table)


def nearest(key: str, parent: str, table: dict[str, frozenset[str]]) -> str | None:
    """Return the path of the key that was probably meant: a neighbour, or the same word elsewhere in the component."""
    names = {name.lower(): name for name in sorted(table.get(parent, ()))}
    close = get_close_matches(key.lower(), names, n=1, cutoff=0.75)
    if close:
        return f"{parent}.{names[close[0]]}" if parent else names[close[0]]
    below = [path for path in sorted(table) if key in table[path] and path.startswith(parent.split(".")[0])]
    return f"{below[0]}.{key}" if parent and len(below) == 1 and below[0] else None
