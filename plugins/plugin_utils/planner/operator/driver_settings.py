# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the chart's values say of the driver, in the words of an NVIDIADriver: the operator reads nothing else for it.

The chart's templates do this for the object named ``default`` alone; any other one without it loses registry secrets,
repositories, certificates, RDMA, GDS, tolerations and what else was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import chart

UPGRADES_SINCE = (26, 7)  # upgradePolicy and hostNetwork stand in the object, no longer in the ClusterPolicy alone
SECRETS_SINCE = (25, 10)
# path in the values: path in the spec
_AS_IT_IS = {
    "daemonsets.annotations": "annotations", "daemonsets.labels": "labels", "daemonsets.tolerations": "tolerations",
    "driver.imagePullPolicy": "imagePullPolicy", "driver.imagePullSecrets": "imagePullSecrets",
    "driver.manager": "manager", "driver.startupProbe": "startupProbe", "driver.livenessProbe": "livenessProbe",
    "driver.readinessProbe": "readinessProbe", "driver.rdma": "rdma", "driver.resources": "resources",
    "driver.env": "env", "driver.args": "args", "driver.repoConfig.configMapName": "repoConfig.name",
    "driver.certConfig.name": "certConfig.name", "driver.licensingConfig.configMapName": "licensingConfig.name",
    "driver.licensingConfig.nlsEnabled": "licensingConfig.nlsEnabled",
    "driver.virtualTopology.config": "virtualTopologyConfig.name",
    "driver.kernelModuleConfig.name": "kernelModuleConfig.name",
}
_LATER = {
    "driver.licensingConfig.secretName": ("licensingConfig.secretName", SECRETS_SINCE),
    "driver.secretEnv": ("secretEnv", SECRETS_SINCE), "driver.hostNetwork": ("hostNetwork", UPGRADES_SINCE),
}
_UPGRADES = ("autoUpgrade", "maxParallelUpgrades", "maxUnavailable", "waitForCompletion", "drain")
_BESIDE = {"gds": "nvidia-fs", "gdrcopy": "gdrdrv"}  # containers beside the driver's, with the names of their images


def of(values: Mapping[str, Any], release: tuple[int, ...], components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a spec that is the same for each object; ``components`` are the release's own versions."""
    made: dict[str, Any] = {}
    for path, where in _AS_IT_IS.items():
        _take(values, path, made, where)
    for path, (where, since) in _LATER.items():
        if release >= since:
            _take(values, path, made, where)
    if "licensingConfig" in made and set(made["licensingConfig"]) == {"nlsEnabled"}:
        del made["licensingConfig"]    # nothing to license
    if release >= UPGRADES_SINCE:
        for key in _UPGRADES:
            _take(values, f"driver.upgradePolicy.{key}", made, f"upgradePolicy.{key}")
        _take(values, "driver.upgradePolicy.gpuPodDeletion", made, "upgradePolicy.podDeletion")
    for part, image in _BESIDE.items():
        given = chart.at(values, part)
        if isinstance(given, Mapping) and given.get("enabled") is True:
            own = {"repository": "nvcr.io/nvidia/cloud-native", "image": image, "version": components.get(part)}
            made[part] = {key: value for key, value in {**own, **chart.copy(given)}.items() if value is not None}
    return made


def _take(values: Mapping[str, Any], path: str, made: dict[str, Any], where: str) -> None:
    value = chart.at(values, path)
    if value is not chart.ABSENT and value not in (None, "", [], {}):
        chart.put(made, where, chart.copy(value))
