# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the role gpu_operator: CRDs first, then release and values, driver objects and node labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...model import chart
from ...model.cluster import Cluster
from ...model.operator import OperatorDecision
from ...model.plan import Change
from ...rules import chart_keys, mig, plugin_config
from ...rules.context import Context

ROLE = "gpu_operator"
POLICY_CRD = "clusterpolicies.nvidia.com"
_ALWAYS = (POLICY_CRD, "nvidiadrivers.nvidia.com")
_SINCE_26_7 = ("gpuclusters.nvidia.com", "computedomains.resource.nvidia.com",
               "computedomaincliques.resource.nvidia.com")
_NFD = ("nodefeatures.nfd.k8s-sigs.io", "nodefeaturegroups.nfd.k8s-sigs.io", "nodefeaturerules.nfd.k8s-sigs.io")
# Values that only the chart's templates read: they do not reach the ClusterPolicy under these names.
_CHART_ONLY = (
    "operator", "nfd", "node-feature-discovery", "platform", "clusterPolicy", "gpuCluster", "draDriver", "extraObjects",
    "driver.nvidiaDriverCRD", "driver.upgradePolicy.gpuPodDeletion", "devicePlugin.config.create",
    "devicePlugin.config.data", "dcgmExporter.config", "migManager.config", "global",
)
_DEFAULTED = ("driverType", "default", "usePrecompiled", "kernelModuleType", "useOpenKernelModules", "repository",
              "image")
_RESTARTS = ("driver", "toolkit", "cdi")


def changes(context: Context) -> Iterator[Change]:
    """Yield the changes in the order in which the role makes them."""
    decision, here = context.operator, context.cluster
    if decision is None or here is None or decision.version is None:
        return
    yield from _crds(here, decision)
    yield from _labels(context, here, decision)
    yield from _config_maps(here, decision)
    yield from _release(here, decision)
    yield from _objects(here, decision)
    yield from _sharing(context, here, decision)


def _crds(here: Cluster, decision: OperatorDecision) -> Iterator[Change]:
    if not isinstance(here.crds, dict):
        return
    names = [*_ALWAYS, *(_SINCE_26_7 if decision.release >= (26, 7) else ())]
    names += _NFD if chart.flag(decision.values, "nfd.enabled", True) else ()
    for name in names:
        if name not in here.crds:
            yield Change(ROLE, "crd", name, None, decision.version,
                         why=f"the chart of {decision.version} needs it, and Helm adds no CRD at an upgrade")
    dropped = _dropped(here.crds.get(POLICY_CRD), decision)
    if dropped:
        yield Change(ROLE, "crd", POLICY_CRD, "of an older release", decision.version,
                     why=f"the one in the cluster would drop {', '.join(dropped[:5])}")


def _dropped(crd: object, decision: OperatorDecision) -> list[str]:
    """Return the values that a ClusterPolicy CRD does not know and the API server would drop without a word."""
    schema = chart.spec_schema(crd)
    if schema is None:
        return []
    found: list[str] = []
    for path, _value in chart.paths(decision.values):
        if any(path == one or path.startswith(f"{one}.") for one in (*_CHART_ONLY, *found)):
            continue
        if not _knows(schema, path) and not list(chart_keys.unknown(_tree(path), decision.release)):
            found.append(path)
    return found


def _tree(path: str) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    chart.put(tree, path, None)
    return tree


def _knows(schema: Mapping[str, Any], path: str) -> bool:
    """Say whether a schema has a path; where it does not look further into something, it does."""
    here: Any = schema
    for key in path.split("."):
        properties = here.get("properties") if isinstance(here, Mapping) else None
        if not isinstance(properties, Mapping):
            return True
        if key not in properties:
            return bool(here.get("x-kubernetes-preserve-unknown-fields"))
        here = properties[key]
    return True


def _labels(context: Context, here: Cluster, decision: OperatorDecision) -> Iterator[Change]:
    node = here.node_of(context.name)
    for label, value in decision.labels.items():
        there = node.labels.get(label) if node is not None else None
        if there != value:
            yield Change(ROLE, "label", f"{node.name if node is not None else context.name} {label}", there, value)


def _config_maps(here: Cluster, decision: OperatorDecision) -> Iterator[Change]:
    """What a ConfigMap has beyond the host's own part belongs to other hosts."""
    for name, data in decision.config_maps.items():
        there = here.config_maps.get(name)
        differing = [key for key, text in data.items() if not _part(text, (there or {}).get(key))]
        if differing:
            yield Change(ROLE, "config_map", name, None if there is None else ", ".join(sorted(there)),
                         ", ".join(sorted(data)), why=f"new or different: {', '.join(differing)}")


def _part(wanted: str, there: object) -> bool:
    """Say whether a text is there, or, of MIG layouts, each of its layouts is among those that are."""
    if wanted == there or not isinstance(there, str):
        return wanted == there
    mine, theirs = (chart.at(plugin_config.parse(text).tree, "mig-configs") for text in (wanted, there))
    if not isinstance(mine, Mapping) or not isinstance(theirs, Mapping):
        return False
    return all(all(entry in (theirs.get(name) or []) for entry in entries) for name, entries in mine.items())


def _sharing(context: Context, here: Cluster, decision: OperatorDecision) -> Iterator[Change]:
    """The labels by which a node shares its GPUs; a layout of MIG waits while something computes on them."""
    node = here.node_of(context.name)
    busy = isinstance(context.host.driver.processes, int) and context.host.driver.processes > 0
    for label, value in (decision.sharing.get("labels") or {}).items() if node is not None else ():
        there = node.labels.get(label) if node is not None else None
        if there != value:
            waits = busy and label == mig.LAYOUT and not context.wishes.processes_may_stop
            yield Change(ROLE, "label", f"{node.name if node is not None else ''} {label}", there, value,
                         needs="gpu_processes_may_stop" if waits else None)


def _release(here: Cluster, decision: OperatorDecision) -> Iterator[Change]:
    if here.installed is None:
        yield Change(ROLE, "install", "gpu-operator", None, decision.version)
        return
    paths = list(chart.differing(here.installed_values, decision.values))
    restarts = any(path.split(".")[0] in _RESTARTS for path in paths)
    if here.installed != decision.version:
        yield Change(ROLE, "upgrade", "gpu-operator", here.installed, decision.version, "restart")
    elif paths:
        yield Change(ROLE, "values", "gpu-operator", None, ", ".join(paths[:8]), "restart" if restarts else "none")


def _told(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec without the fields that have a default and of which the object, as it was read, says nothing."""
    return {key: value for key, value in after.items() if key not in _DEFAULTED or key in before}


def _objects(here: Cluster, decision: OperatorDecision) -> Iterator[Change]:
    there = {one.name: one.spec for one in here.drivers}
    for one in decision.drivers:
        before, after = there.get(one["name"]), one["spec"]
        if before is None or not chart.within(_told(after, before), before):
            yield Change(ROLE, "driver", one["name"], before and before.get("version"), after["version"], "restart")
